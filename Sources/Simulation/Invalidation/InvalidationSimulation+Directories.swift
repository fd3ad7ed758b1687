import Cluster
import Ground
import Tiers

/// Lost and restored directories, and the repairs that operators make.
extension InvalidationSimulation {
    /// Ends the process, deletes its directory, and schedules a start with a new id.
    mutating func loseDirectory(_ index: Int) {
        crash(index)
        world.cover(.replaced)
        assignNewID(index)
        nodes[index].replica.storage = SimulatedStorage()
        let delay = world.isQuiescent ? world.milliseconds(1...50) : world.milliseconds(20...2_000)
        world.schedule(.start(index), after: delay)
        guard scenario.losses == .unnamedNodes, world.chance(oneIn: 2) else { return }
        world.schedule(.runOperator, after: world.milliseconds(500...4_000))
    }

    /// Gives the node a new id, effective from its next start.
    private mutating func assignNewID(_ index: Int) {
        let isNamed = scenario.losses != .unnamedNodes
        let high = isNamed ? world.members[index].id.high : world.dice.next()
        world.assign(NodeID(low: world.dice.next(), high: high), to: index)
        nodes[index].copy = nil
        nodes[index].undetectedCopyEpoch = nil
        for other in nodes.indices { nodes[other].view.forget(index) }
        world.log("node \(index) is \(world.members[index].id) from now on")
    }

    /// Copies the directory of a running node, or restores a copy that all others can detect.
    mutating func copyOrRestoreDirectory(_ index: Int) {
        guard nodes[index].isUp else { return }
        guard let copy = nodes[index].copy else {
            nodes[index].copy = nodes[index].replica.storage
            return world.log("the directory of \(index) is copied")
        }
        // Only a node that has seen a later start can detect the copy; see <doc:Fence>.
        let isKnown = nodes.indices.allSatisfy { other in
            guard other != index else { return true }
            let seen = nodes[other].epochs[world.members[index].id]?.epoch ?? 0
            return nodes[other].isUp && seen > copy.epoch
        }
        guard isKnown else { return }
        crash(index)
        world.cover(.restoredCopy)
        nodes[index].replica.storage = copy
        nodes[index].copy = nil
        nodes[index].undetectedCopyEpoch =
            scenario.mutation == .restoredCopyAccepted ? nil : copy.epoch
        world.log("the directory of \(index) is as it was in epoch \(copy.epoch)")
        world.schedule(.start(index), after: world.milliseconds(20...2_000))
    }

    /// Deletes restored directories before a start after which no node could detect them as copies.
    mutating func discardUndetectedCopies(before index: Int) {
        for other in nodes.indices {
            guard let epoch = nodes[other].undetectedCopyEpoch else { continue }
            if other != index || nodes[other].replica.storage.epoch > epoch { loseDirectory(other) }
        }
    }

    /// Copies a directory, restarts its node and schedules a partition.
    mutating func copyAndCutOff() {
        let index = Int.random(in: nodes.indices, using: &world.dice)
        guard nodes[index].isUp else { return }
        nodes[index].copy = nodes[index].replica.storage
        world.log("the directory of \(index) is copied")
        crash(index)
        world.schedule(.start(index), after: .milliseconds(100))
        world.schedule(.cutOff(from: index), after: .seconds(4))
    }

    /// Partitions the nodes, so that less than half of them miss the purges that it schedules, and
    /// schedules the restoration of the copy of `index`.
    mutating func cutOff(from index: Int) {
        let others = nodes.indices.filter { $0 != index }.shuffled(using: &world.dice)
        let apart = others.prefix((nodes.count - 1) / 2)
        for one in apart {
            for other in nodes.indices where !apart.contains(other) {
                block(one, other, for: .seconds(14))
            }
        }
        purgeAll()
        world.schedule(.putBack(index), after: .seconds(3))
    }

    /// Restores the older copy with connections only to nodes that missed the purges.
    mutating func restoreCopy(_ index: Int) {
        for other in nodes.indices where other != index {
            if world.network.isBlocked(from: index, to: other, at: now) {
                world.network.setBlock(index, other, until: now)
            } else {
                block(index, other, for: .seconds(11))
            }
        }
        copyOrRestoreDirectory(index)
    }

    /// Updates all objects at the origin and schedules two purges of each.
    private mutating func purgeAll() {
        for key in world.keys.indices {
            world.oracle.update(key, at: now)
            world.schedule(.purge(key: key), after: .milliseconds(100))
            world.schedule(.purge(key: key), after: .milliseconds(200))
        }
    }

    /// Returns true if `other` knows a later start of `index` than its directory records.
    ///
    /// The node then gives up its identity and is started as a new member. Otherwise `other`
    /// records the present start, unless it knows a later one.
    mutating func detectsRestoredCopy(_ index: Int, _ other: Int) -> Bool {
        let (id, node) = (world.members[index].id, nodes[index])
        let (epoch, process) = (node.replica.epoch, node.process)
        let known = nodes[other].epochs[id] ?? (0, process)
        let isOlder = known.process != process && known.epoch >= epoch && node.startup.isJoining
        guard isOlder, scenario.mutation != .restoredCopyAccepted else {
            if known.epoch <= epoch { nodes[other].epochs[id] = (epoch, process) }
            return false
        }
        world.log("node \(index) is an older copy of itself, as \(other) knows")
        crash(index)
        assignNewID(index)
        nodes[index].replica.storage = nodes[index].replica.storage.withoutPromises
        world.schedule(.start(index), after: world.milliseconds(20...500))
        return true
    }

    // MARK: Operators

    /// Deletes the directories of all nodes but one, after purges that the remaining one missed.
    mutating func loseMajority() {
        let left = Int.random(in: nodes.indices, using: &world.dice)
        world.log("all but \(left) are lost")
        for other in nodes.indices where other != left { block(left, other, for: .seconds(4)) }
        purgeAll()
        for other in nodes.indices where other != left && nodes[other].isUp {
            world.schedule(.directoryLost(other, run: nodes[other].replica.run), after: .seconds(3))
        }
        world.schedule(.runOperator, after: .seconds(5))
    }

    /// Repairs what needs an operator, who knows which nodes run: removes lost members, forms a
    /// cluster, or recovers it from a lost majority.
    mutating func runOperator() {
        guard !ClusterHealth(of: nodes, in: world).isHealthy else { return }
        if world.isQuiescent { world.schedule(.runOperator, after: .seconds(4)) }
        let ids = world.members.map(\.id)
        for index in nodes.indices where nodes[index].isUp {
            let gone = nodes[index].voterSet?.members.filter { !ids.contains($0) } ?? []
            guard !gone.isEmpty, nodes[index].forget(gone, &world) else { continue }
            world.log("the operator has \(index) forget \(gone)")
            return world.cover(.removedByOperator)
        }
        guard world.isQuiescent || scenario.losses == .majority else { return }
        let candidates = nodes.indices.filter { nodes[$0].voterSet != nil }
        if world.isQuiescent, candidates.isEmpty, nodes[0].isUp {
            deliver(0, .formationRuleChanged(.operatorOrdered))
        }
        let hasLostMajority = { (index: Int) in
            nodes[index].voterSet.map { !$0.isMajority(ids) } ?? false
        }
        guard let index = candidates.first(where: hasLostMajority) else { return }
        world.log("the operator has the count begin anew with \(index)")
        world.cover(.recovered)
        deliver(index, .recoveryRequested)
    }
}
