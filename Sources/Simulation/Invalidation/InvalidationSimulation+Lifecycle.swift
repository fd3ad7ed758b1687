import Cluster
import Ground
import Tiers

/// Start, leave and replacement of nodes, by the rules of real nodes.
extension InvalidationSimulation {
    static func address(_ index: Int) -> PeerAddress { PeerAddress(host: "n\(index)", port: 1) }

    /// Returns true if the node accepts client requests.
    func acceptsClients(_ index: Int) -> Bool {
        guard nodes[index].shutdown != nil else { return nodes[index].isServing }
        return scenario.mutation == .leaveBeforeRequestsFinish
    }

    /// Returns true if the node `index` is, or is connected with, `member`.
    func isConnected(_ member: NodeID, by index: Int) -> Bool {
        let other = self.index(of: member)
        guard nodes[other].id == member else { return false }
        return other == index || link(index, other).isOpen
    }

    // MARK: Joining

    /// Starts the search of a starting node for its cluster; it serves no client before.
    mutating func beginJoining(_ index: Int) {
        var settings = ClusterDiscovery.Settings(
            hasSeeds: true, expects: scenario.expectedNodeCount)
        settings.timeMax = .seconds(6)
        settings.membersTimeMax = .seconds(2)
        nodes[index].discovery = ClusterDiscovery(settings, now: clock(index))
        nodes[index].formationRule = nil
        (nodes[index].isServing, nodes[index].hasTable) = (false, false)
        let run = nodes[index].run
        let isStranger =
            !isQuiescent && nodes[index].storage.persistentState == nil && chance(oneIn: 8)
        nodes[index].wrongSecretUntil = isStranger ? now + milliseconds(500...4_000) : .zero
        let delay =
            !isQuiescent && chance(oneIn: 4) ? milliseconds(200...3_000) : milliseconds(1...20)
        eventQueue.schedule(.seedsResolved(index, run: run), at: now + delay)
        eventQueue.schedule(.checkDiscovery(index, run: run), at: now + .milliseconds(10))
    }

    /// Resolves the seeds' names to all initial nodes, or temporarily to only one.
    mutating func seedsResolved(_ index: Int) {
        let isWhole = isQuiescent || !chance(oneIn: 3)
        let seeds = (0..<scenario.nodes).map(Self.address)
        nodes[index].discovery?.seedsResolved(isWhole ? seeds : [seeds[0]], isComplete: isWhole)
        for other in 0..<scenario.nodes where !nodes[other].isUp {
            nodes[index].discovery?.dialFailed(Self.address(other))
        }
        guard !isWhole else { return }
        eventQueue.schedule(
            .seedsResolved(index, run: nodes[index].run), at: now + milliseconds(200...1_500))
    }

    /// Reevaluates the formation rule, and whether the node may serve.
    mutating func checkDiscovery(_ index: Int) {
        guard let watch = nodes[index].discovery, let exchange = nodes[index].replication else {
            return
        }
        let others = joinView(index)
        let isCounting = exchange.voterConfiguration != nil
        var rule = watch.formationRule(others)
        let isSilent = clock(index) >= watch.startedAt + .seconds(1) && !others.hasMemberTable
        if scenario.mutation == .bootstrapOnSilence, isSilent { rule = .unanimous }
        if rule != nodes[index].formationRule {
            nodes[index].formationRule = rule
            deliver(index, .formationRuleChanged(rule))
            let isOpener =
                nodes[index].replication?.voterConfiguration?.set.founder == nodes[index].id
            if !isCounting, isOpener { cover(.clusterBootstrapped) }
        }
        if !nodes[index].isServing,
            watch.isComplete(others, hasVoterSet: isCounting, now: clock(index))
        {
            nodes[index].isServing = true
            log("node \(index) serves")
        }
        guard !nodes[index].isServing || nodes[index].replication?.voterConfiguration == nil else {
            return
        }
        eventQueue.schedule(
            .checkDiscovery(index, run: nodes[index].run), at: now + .milliseconds(40))
    }

    private func joinView(_ index: Int) -> DiscoveryView {
        let others = nodes.indices.filter { $0 != index && nodes[$0].wasStarted }
        let members = others.map { other in
            let isConnected = link(index, other).isOpen
            return DiscoveryView.Peer(
                id: nodes[other].id, address: Self.address(other), isConnected: isConnected,
                isLive: isConnected || nodes[index].visibleNodes[other])
        }
        return DiscoveryView(
            own: nodes[index].id, address: Self.address(index), members: members,
            hasDuplicate: false, hasMemberTable: members.contains(where: \.isConnected))
    }

    // MARK: Leaving

    /// Starts the shutdown of a node, with its handoff to other owners.
    mutating func leave(_ index: Int) {
        guard nodes[index].isUp, nodes[index].shutdown == nil, nodes.filter(\.isUp).count > 2
        else { return }
        log("leave \(index)")
        nodes[index].isDraining = true
        offerAll(index, .drain)
        nodes[index].shutdown = (.finishingRequests, now)
        if scenario.mutation == .leaveBeforeRequestsFinish { deliver(index, .leaveRequested) }
        let run = nodes[index].run
        eventQueue.schedule(.advanceShutdown(index, run: run), at: now + milliseconds(0...1_500))
        // The container may be stopped before the shutdown is complete.
        guard chance(oneIn: 2) else { return }
        let delay = milliseconds(300...1_500)
        eventQueue.schedule(.stop(index, run: run), at: now + delay)
        eventQueue.schedule(.start(index), at: now + delay + milliseconds(50...8_000))
    }

    /// Advances the shutdown when a step is over, or checks it again later.
    mutating func advanceShutdown(_ index: Int) {
        guard let (step, since) = nodes[index].shutdown else { return }
        let isLate = step.timeMax.map { now - since >= $0 } ?? true
        if step == .leavingVoterSet, !isLate, nodes[index].replication?.isLeaveComplete == false {
            let run = nodes[index].run
            return eventQueue.schedule(
                .advanceShutdown(index, run: run), at: now + .milliseconds(20))
        }
        let next = step.next(isIdle: !isAnswering(index))
        nodes[index].shutdown = (next, now)
        switch next {
        case .finishingRequests: break
        case .abortingResponses:
            cover(.responsesAbortedAtLeave)
            abortResponses(index)
        case .leavingVoterSet: deliver(index, .leaveRequested)
        case .announcingLeave:
            if nodes[index].replication?.isVoter == false { cover(.leftGracefully) }
            nodes[index].hasLeft = true
            return announceLeave(index)
        case .stopped:
            crash(index)
            return eventQueue.schedule(.start(index), at: now + milliseconds(50...8_000))
        }
        eventQueue.schedule(
            .advanceShutdown(index, run: nodes[index].run), at: now + .milliseconds(20))
    }

    /// Waits for acknowledgements of the leave, with or without connections.
    private mutating func announceLeave(_ index: Int) {
        let wait = chance(oneIn: 2) ? milliseconds(20...100) : milliseconds(100...2_000)
        eventQueue.schedule(.advanceShutdown(index, run: nodes[index].run), at: now + wait)
        guard chance(oneIn: 2) else { return }
        for other in nodes.indices where other != index { block(index, other, for: wait) }
    }

    private func isAnswering(_ index: Int) -> Bool {
        nodes[index].fetches.values.contains { fetch in
            fetch.readers.contains { $0.waiter == .client }
        }
    }

    private mutating func abortResponses(_ index: Int) {
        for number in nodes[index].fetches.keys {
            nodes[index].fetches[number]?.leave { $0 == .client }
        }
    }

    // MARK: Lost directories

    /// Ends the process and deletes its directory.
    mutating func loseDirectory(_ index: Int) {
        crash(index)
        cover(.replaced)
        assignNewID(index)
        nodes[index].storage = SimulatedStorage()
        let delay = isQuiescent ? milliseconds(1...50) : milliseconds(20...2_000)
        eventQueue.schedule(.start(index), at: now + delay)
        guard scenario.losses == .unnamedNodes, chance(oneIn: 2) else { return }
        eventQueue.schedule(.runOperator, at: now + milliseconds(500...4_000))
    }

    /// Gives the node a new id, effective from its next start.
    private mutating func assignNewID(_ index: Int) {
        let isNamed = scenario.losses != .unnamedNodes
        let high = isNamed ? nodes[index].id.high : dice.next()
        nodes[index].id = NodeID(low: dice.next(), high: high)
        nodes[index].copy = nil
        nodes[index].undetectedCopyEpoch = nil
        places[nodes[index].id] = index
        for other in nodes.indices { nodes[other].visibleNodes[index] = false }
        log("node \(index) is \(nodes[index].id) from now on")
    }

    /// Copies the directory, or restores an earlier copy.
    mutating func copyOrRestoreDirectory(_ index: Int) {
        guard nodes[index].isUp else { return }
        guard let copy = nodes[index].copy else {
            nodes[index].copy = nodes[index].storage
            return log("the directory of \(index) is copied")
        }
        // Only a node that has seen a later start can detect the copy; see <doc:Fence>.
        let isKnown = nodes.indices.allSatisfy { other in
            guard other != index else { return true }
            let seen = nodes[other].epochs[nodes[index].id]?.epoch ?? 0
            return nodes[other].isUp && seen > copy.epoch
        }
        guard isKnown else { return }
        crash(index)
        cover(.restoredCopy)
        nodes[index].storage = copy
        nodes[index].copy = nil
        nodes[index].undetectedCopyEpoch =
            scenario.mutation == .restoredCopyAccepted ? nil : copy.epoch
        log("the directory of \(index) is as it was in epoch \(copy.epoch)")
        eventQueue.schedule(.start(index), at: now + milliseconds(20...2_000))
    }

    /// Deletes restored directories before a start after which no node could detect them as copies.
    mutating func discardUndetectedCopies(before index: Int) {
        for other in nodes.indices {
            guard let epoch = nodes[other].undetectedCopyEpoch else { continue }
            if other != index || nodes[other].storage.epoch > epoch { loseDirectory(other) }
        }
    }

    /// Copies a directory, restarts its node and schedules a partition.
    mutating func copyAndCutOff() {
        let index = Int.random(in: nodes.indices, using: &dice)
        guard nodes[index].isUp else { return }
        nodes[index].copy = nodes[index].storage
        log("the directory of \(index) is copied")
        crash(index)
        eventQueue.schedule(.start(index), at: now + .milliseconds(100))
        eventQueue.schedule(.cutOff(from: index), at: now + .seconds(4))
    }

    /// Partitions the nodes, so that less than half of them miss the purges that follow.
    mutating func cutOff(from index: Int) {
        let others = nodes.indices.filter { $0 != index }.shuffled(using: &dice)
        let apart = others.prefix((nodes.count - 1) / 2)
        for one in apart {
            for other in nodes.indices where !apart.contains(other) {
                block(one, other, for: .seconds(14))
            }
        }
        purgeAll()
        eventQueue.schedule(.putBack(index), at: now + .seconds(3))
    }

    /// Restores the older copy with connections only to nodes that missed the purges.
    mutating func restoreCopy(_ index: Int) {
        for other in nodes.indices where other != index {
            let isApart = blocked[index * nodes.count + other] > now
            if isApart {
                blocked[index * nodes.count + other] = now
                blocked[other * nodes.count + index] = now
            } else {
                block(index, other, for: .seconds(11))
            }
        }
        copyOrRestoreDirectory(index)
    }

    private mutating func block(_ one: Int, _ other: Int, for interval: Interval) {
        blocked[one * nodes.count + other] = now + interval
        blocked[other * nodes.count + one] = now + interval
        disconnect(one, other)
    }

    private mutating func purgeAll() {
        for key in keys.indices {
            oracle.update(key, at: now)
            eventQueue.schedule(.purge(key: key), at: now + .milliseconds(100))
            eventQueue.schedule(.purge(key: key), at: now + .milliseconds(200))
        }
    }

    /// Returns true if `other` knows a later start of `index` than its directory records.
    ///
    /// The node then gives up its identity and starts as a new member.
    mutating func detectsRestoredCopy(_ index: Int, _ other: Int) -> Bool {
        let known = nodes[other].epochs[nodes[index].id] ?? (0, nodes[index].process)
        let isNew = known.process != nodes[index].process
        let isOlder = isNew && known.epoch >= nodes[index].epoch && nodes[index].isJoining
        guard isOlder, scenario.mutation != .restoredCopyAccepted else {
            if known.epoch <= nodes[index].epoch {
                nodes[other].epochs[nodes[index].id] = (nodes[index].epoch, nodes[index].process)
            }
            return false
        }
        log("node \(index) is an older copy of itself, as \(other) knows")
        crash(index)
        assignNewID(index)
        // All kept entries need one revalidation, and the promises belong to another member.
        var storage = SimulatedStorage()
        storage.epoch = nodes[index].storage.epoch
        storage.entries = nodes[index].storage.entries
        storage.sequence = nodes[index].storage.sequence
        let version = InvalidationVersion(epoch: storage.epoch, count: .max)
        storage.marks = [InvalidationMark(.everything, isSoft: true, version: version)]
        storage.validateBefore = version
        nodes[index].storage = storage
        eventQueue.schedule(.start(index), at: now + milliseconds(20...500))
        return true
    }

    // MARK: Operators

    /// Deletes the directories of all nodes but one, after purges that the remaining one missed.
    mutating func loseMajority() {
        let left = Int.random(in: nodes.indices, using: &dice)
        log("all but \(left) are lost")
        for other in nodes.indices where other != left { block(left, other, for: .seconds(4)) }
        purgeAll()
        for other in nodes.indices where other != left && nodes[other].isUp {
            eventQueue.schedule(.directoryLost(other, run: nodes[other].run), at: now + .seconds(3))
        }
        eventQueue.schedule(.runOperator, at: now + .seconds(5))
    }

    /// Performs the repairs that need an operator, who knows which nodes are running.
    mutating func runOperator() {
        guard !isHealthy else { return }
        if isQuiescent { eventQueue.schedule(.runOperator, at: now + .seconds(4)) }
        let ids = Set(nodes.map(\.id))
        for index in nodes.indices where nodes[index].isUp {
            let members = nodes[index].replication?.voterConfiguration?.set.members ?? []
            let gone = members.filter { !ids.contains($0) }
            guard !gone.isEmpty, forget(gone, at: index) else { continue }
            log("the operator has \(index) forget \(gone)")
            return cover(.removedByOperator)
        }
        guard isQuiescent || scenario.losses == .majority else { return }
        let candidates = nodes.indices.filter { nodes[$0].replication?.voterConfiguration != nil }
        if isQuiescent, candidates.isEmpty, nodes[0].isUp {
            deliver(0, .formationRuleChanged(.operatorOrdered))
        }
        guard let index = candidates.first(where: { hasLostMajority($0, ids) }) else { return }
        log("the operator has the count begin anew with \(index)")
        cover(.recovered)
        deliver(index, .recoveryRequested)
    }

    /// Has a node remove members; returns false if it refuses.
    @discardableResult
    mutating func forget(_ members: [NodeID], at index: Int) -> Bool {
        var isBegun = false
        run(index) { exchange, now, dice, effects in
            do throws(FenceCoordinator.RemovalRefusal) {
                try exchange.forget(members, now: now, using: &dice, effects: &effects)
                isBegun = true
            } catch {
                isBegun = false
            }
        }
        return isBegun
    }

    private func hasLostMajority(_ index: Int, _ ids: Set<NodeID>) -> Bool {
        nodes[index].replication?.voterConfiguration.map { !$0.set.isMajority(Array(ids)) } ?? false
    }
}
