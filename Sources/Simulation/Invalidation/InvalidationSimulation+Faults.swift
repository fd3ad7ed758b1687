import Cluster
import Ground

/// Random faults.
extension InvalidationSimulation {
    /// Schedules the next fault, and injects a random one unless all faults have ended.
    mutating func injectFault() {
        world.schedule(.fault, after: world.milliseconds(200...2_500))
        guard !world.isQuiescent else { return }
        let index = Int.random(in: nodes.indices, using: &world.dice)
        switch Int.random(in: 0..<24, using: &world.dice) {
        case 22...23: lag(index)
        case 0...4: crashAndRestart([index])
        case 5: crashAndRestart(nodes.indices.filter { _ in Bool.random(using: &world.dice) })
        case 6...8:
            let pause = world.milliseconds(world.chance(oneIn: 3) ? 2_000...6_000 : 50...2_000)
            // Its deferred events were scheduled for the end of the present pause.
            guard nodes[index].pausedUntil <= now else { return }
            nodes[index].pausedUntil = now + pause
            world.log("pause \(index) for \(pause.milliseconds) ms")
        case 9...12: partition(for: world.milliseconds(200...4_000))
        case 13: partition(for: world.milliseconds(6_500...12_000))
        case 14: world.originDownUntil = now + world.milliseconds(100...2_000)
        case 15: leave(index)
        case 18 where scenario.losses != .none: loseDirectory(index)
        case 19 where scenario.losses != .none: copyOrRestoreDirectory(index)
        case 16...17: removeConcurrently()
        default:
            let other = Int.random(in: nodes.indices, using: &world.dice)
            if other != index { disconnect(index, other) }
        }
    }

    /// Delays everything that a node receives, perhaps by more than its fence, in order.
    private mutating func lag(_ index: Int) {
        let delay = world.milliseconds(500...4_000)
        let end = now + world.milliseconds(1_000...8_000)
        world.network.lag(index, by: delay, until: end)
        world.log("node \(index) hears all \(delay.milliseconds) ms late")
    }

    /// Crashes those of the nodes that are up, and schedules their starts.
    private mutating func crashAndRestart(_ indices: [Int]) {
        for index in indices where nodes[index].isUp {
            crash(index)
            let isLong = world.chance(oneIn: 4)
            let delay = world.milliseconds(isLong ? 3_000...9_000 : 20...3_000)
            world.schedule(.start(index), after: delay)
        }
    }

    /// Has operators at several nodes each remove another unreachable member.
    private mutating func removeConcurrently() {
        var begun: Set<NodeID> = []
        for index in nodes.indices where nodes[index].isUp && nodes[index].pausedUntil <= now {
            guard nodes[index].replica.hasOpenWindow(at: now), let set = nodes[index].voterSet
            else { continue }
            let away = set.members.filter { !world.isConnected($0, by: index) }
            guard let member = away.randomElement(using: &world.dice) else { continue }
            if nodes[index].forget([member], &world) { begun.insert(member) }
        }
        if begun.count > 1 { world.cover(.concurrentRemoval) }
    }

    /// Ends all faults, after which operators repair what remains.
    mutating func quiesce() {
        world.log("calm")
        world.isQuiescent = true
        world.originDownUntil = now
        world.network.unblockAll()
        for index in nodes.indices { world.members[index].isDraining = false }
        startAll()
        for one in nodes.indices {
            for other in 0..<one where !world.network.areConnected(one, other) {
                world.schedule(.reconnect(one, other), at: now)
            }
        }
        world.schedule(.runOperator, after: .seconds(10))
    }
}
