import Cluster
import Ground
import Serving

/// Connections between nodes, and what membership reports of them.
extension InvalidationSimulation {
    /// Connects two nodes that are up and can reach each other, or schedules another attempt; a
    /// node that turns out to have a restored directory is restarted instead.
    mutating func connect(_ one: Int, _ other: Int) {
        guard nodes[one].isUp, nodes[other].isUp, !world.network.areConnected(one, other) else {
            return
        }
        let ends = [(one, other), (other, one)]
        let isReachable = ends.allSatisfy { here, there in
            nodes[here].pausedUntil <= now && nodes[here].startup.wrongSecretUntil <= now
                && !world.network.isBlocked(from: here, to: there, at: now)
        }
        guard isReachable else {
            for (here, there) in ends { nodes[here].startup.dialFailed(there) }
            return world.schedule(.reconnect(one, other), after: world.milliseconds(100...400))
        }
        guard !detectsRestoredCopy(one, other), !detectsRestoredCopy(other, one) else { return }
        let number = world.network.open(one, other, at: now)
        for (here, there) in ends {
            let id = world.members[there].id
            nodes[here].startup.connected(there, id)
            deliver(here, .connected(id, on: ConnectionID(number)))
        }
    }

    /// Breaks a connection, if there is one, and schedules a new one; messages in transit are lost,
    /// and waiting requests go elsewhere.
    mutating func disconnect(_ one: Int, _ other: Int) {
        guard world.network.close(one, other, at: now) else { return }
        for (here, there) in [(one, other), (other, one)] where nodes[here].isUp {
            nodes[here].disconnected(there, &world)
        }
        world.schedule(.reconnect(one, other), after: world.milliseconds(20...600))
    }

    /// Blocks traffic between two nodes for `interval` and breaks their connection.
    mutating func block(_ one: Int, _ other: Int, for interval: Interval) {
        world.network.setBlock(one, other, until: now + interval)
        disconnect(one, other)
    }

    /// Blocks traffic from random nodes to the others, perhaps one way; connections break as a
    /// result.
    mutating func partition(for interval: Interval) {
        let side = nodes.indices.filter { _ in Bool.random(using: &world.dice) }
        let isOneWay = world.chance(oneIn: 3)
        world.log("partition of \(side) for \(interval.milliseconds) ms, one way: \(isOneWay)")
        if interval > SimulatedReplica.forgetAfter, !side.isEmpty, side.count < nodes.count {
            world.cover(.longPartition)
        }
        for from in nodes.indices {
            for to in nodes.indices where side.contains(from) != side.contains(to) {
                guard side.contains(from) || !isOneWay, !world.chance(oneIn: 5) else { continue }
                world.network.block(from: from, to: to, until: now + interval)
                let link = world.network.link(from, to)
                guard link.isOpen else { continue }
                world.schedule(
                    .breakLink(from, to, line: link.number), after: world.milliseconds(800...3_000))
            }
        }
    }

    /// Isolates one of the nodes that have just joined, before the others know it well.
    mutating func isolate() {
        let index = Int.random(in: scenario.nodes..<nodes.count, using: &world.dice)
        let end = now + world.milliseconds(300...3_000)
        world.log("node \(index) is cut off until \(end.nanoseconds / 1_000) us")
        for other in nodes.indices where other != index {
            world.network.block(from: index, to: other, until: end)
            world.network.block(from: other, to: index, until: end)
            disconnect(index, other)
        }
    }

    // MARK: Membership

    /// Updates the nodes' views of the members, without simulating the membership protocol.
    mutating func updateMembership() {
        world.schedule(.updateMembership, after: .milliseconds(world.isLarge ? 500 : 200))
        for index in nodes.indices where nodes[index].isUp && nodes[index].pausedUntil <= now {
            nodes[index].updateView(&world)
        }
    }
}
