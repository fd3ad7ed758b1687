import Cluster
import Ground

/// The end of a run without faults.
///
/// The cluster must become healthy, and edit, purge and refetch must behave as users of a detail
/// page expect.
extension InvalidationSimulation {
    /// Maximum time after the faults until all nodes are voters, current and in agreement.
    private static let recoveryMax = Interval.seconds(40)

    /// Runs the whole simulation.
    mutating func run() {
        play(until: end)
        guard violation == nil else { return }
        quiesce()
        guard violation == nil else { return }
        for key in 0..<3 { refetch(key, isHard: key != 1) }
        if scenario.losses == .namedNodes, nodes.count > 2 { replaceAll() }
    }

    /// Replaces one node after the other by a new one of the same name; no other node may be
    /// fenced.
    private mutating func replaceAll() {
        for index in nodes.indices where violation == nil {
            loseDirectory(index)
            let limit = now + .seconds(5)
            repeat {
                play(until: now + .milliseconds(5))
                for other in nodes.indices
                where other != index && !nodes[other].replica.isCurrent(at: now) {
                    world.fail("node \(other) is fenced while \(index) is replaced")
                }
                if now > limit {
                    world.fail("who replaces \(index) is not counted: \(health.problems)")
                }
            } while violation == nil && !health.isHealthy
        }
    }

    private mutating func quiesce() {
        world.log("calm")
        world.isQuiescent = true
        world.originDownUntil = now
        world.network.unblockAll()
        for index in nodes.indices {
            world.members[index].isDraining = false
            if !nodes[index].isUp { start(index) }
        }
        for one in nodes.indices {
            for other in 0..<one where !world.network.areConnected(one, other) {
                world.schedule(.reconnect(one, other), at: now)
            }
        }
        world.schedule(.runOperator, after: .seconds(10))
        let limit = now + Self.recoveryMax
        // By then pending leaves are complete, and the events of paused processes are handled.
        play(until: now + .seconds(7))
        while violation == nil, !health.isHealthy {
            for index in nodes.indices where !nodes[index].isUp { start(index) }
            guard now < limit else { return world.fail("no healthy cluster: \(health.problems)") }
            play(until: now + .milliseconds(100))
        }
    }

    private var health: ClusterHealth { ClusterHealth(of: nodes, in: world) }

    /// Edits and purges a key, awaits the receipt, then reads at every node at once; the origin
    /// must get one request.
    private mutating func refetch(_ key: Int, isHard: Bool) {
        for index in nodes.indices { world.schedule(.read(index, key: key), at: now) }
        play(until: now + .seconds(1))
        // An earlier request may still wait for a peer that was cut off, and would be counted.
        let end = now + .seconds(20)
        while nodes.contains(where: { $0.fetches.values.contains { $0.key == key } }) {
            guard now < end, violation == nil else { return world.fail("a read waits for ever") }
            play(until: now + .milliseconds(5))
        }
        world.oracle.update(key, at: now)
        let issuer = Int.random(in: nodes.indices, using: &world.dice)
        let purge = Purge(isHard ? .hard : .soft, [.url(world.keys[key].urlName)])
        let id = Array("calm \(key)".utf8)
        guard violation == nil,
            let number = issue(Invalidation(id: id, .purge(purge)), at: issuer)
        else { return world.fail("a purge was refused in calm") }
        let name = world.oracle.purges[number].name
        // For one fence after a removal an unknown node may be current.
        let limit = now + SimulatedReplica.fence + .seconds(2)
        while nodes[issuer].replica.replication?.receipt(of: name)?.isConfirmedByAll != true {
            guard now < limit, violation == nil else { return world.fail("no receipt in calm") }
            play(until: now + .milliseconds(5))
        }
        ReceiptAudit.recordConfirmed(number, by: nodes, &world)
        world.report.quiescentFetches[key] = 0
        world.report.quiescentReads[key] = 0
        let floors = world.report.floorsApplied
        for index in nodes.indices { world.schedule(.read(index, key: key), at: now) }
        play(until: now + .seconds(1))
        let (reads, fetches) = (
            world.report.quiescentReads[key], world.report.quiescentFetches[key]
        )
        if reads != nodes.count { world.fail("\(reads) reads were served, of \(nodes.count)") }
        // A gap of a dead process requires one revalidation of everything.
        if fetches != 1, world.report.floorsApplied == floors {
            world.fail("\(fetches) origin fetches after one \(purge.mode) purge of key \(key)")
        }
    }
}
