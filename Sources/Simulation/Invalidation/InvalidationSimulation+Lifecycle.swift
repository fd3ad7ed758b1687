import Cluster
import Ground
import Tiers

/// Start and leave of nodes, by the rules of real nodes.
extension InvalidationSimulation {
    /// Starts a process from the node's storage.
    mutating func start(_ index: Int) {
        guard !nodes[index].isUp else { return }
        discardUndetectedCopies(before: index)
        if nodes[index].replica.storage.epoch > 0, isMajorityAway(without: index) {
            world.cover(.restartOfOldDisk)
        }
        nodes[index].start(&world)
        for other in nodes.indices where other != index && nodes[other].isUp {
            world.schedule(.reconnect(index, other), after: world.milliseconds(0...60))
        }
        beginJoining(index)
        nodes[index].scheduleHousekeeping(&world)
    }

    private func isMajorityAway(without index: Int) -> Bool {
        guard let set = world.oracle.decidedSets.last else { return false }
        let away = nodes.indices.filter { $0 != index && !nodes[$0].isUp }.map {
            world.members[$0].id
        }
        return set.isMajority(away)
    }

    /// Ends the process; any part of the unsynced writes is lost.
    mutating func crash(_ index: Int) {
        guard nodes[index].isUp else { return }
        nodes[index].replica.crash(&world)
        for other in nodes.indices where other != index { disconnect(index, other) }
    }

    // MARK: Joining

    /// Starts the search of a starting node for its cluster; it serves no client before.
    private mutating func beginJoining(_ index: Int) {
        var settings = ClusterDiscovery.Settings(
            hasSeeds: true, expects: scenario.expectedNodeCount)
        settings.timeMax = .seconds(6)
        settings.membersTimeMax = .seconds(2)
        nodes[index].discovery = ClusterDiscovery(settings, now: nodes[index].clock(at: now))
        nodes[index].formationRule = nil
        (nodes[index].isServing, nodes[index].hasTable) = (false, false)
        let run = nodes[index].replica.run
        let isStranger =
            !world.isQuiescent && nodes[index].replica.storage.persistentState == nil
            && world.chance(oneIn: 8)
        nodes[index].wrongSecretUntil = isStranger ? now + world.milliseconds(500...4_000) : .zero
        let isSlow = !world.isQuiescent && world.chance(oneIn: 4)
        let delay = isSlow ? world.milliseconds(200...3_000) : world.milliseconds(1...20)
        world.schedule(.seedsResolved(index, run: run), after: delay)
        world.schedule(.checkDiscovery(index, run: run), after: .milliseconds(10))
    }

    /// Resolves the seeds' names to all initial nodes, or temporarily to only one.
    mutating func seedsResolved(_ index: Int) {
        let isWhole = world.isQuiescent || !world.chance(oneIn: 3)
        let seeds = (0..<scenario.nodes).map(PeerAddress.simulated)
        nodes[index].discovery?.seedsResolved(isWhole ? seeds : [seeds[0]], isComplete: isWhole)
        for other in 0..<scenario.nodes where !nodes[other].isUp {
            nodes[index].discovery?.dialFailed(.simulated(other))
        }
        guard !isWhole else { return }
        world.schedule(
            .seedsResolved(index, run: nodes[index].replica.run),
            after: world.milliseconds(200...1_500))
    }

    /// Reevaluates the formation rule, and whether the node may serve.
    mutating func checkDiscovery(_ index: Int) {
        guard let discovery = nodes[index].discovery, nodes[index].isUp else { return }
        let others = nodes[index].view.discoveryView(world)
        let reading = nodes[index].clock(at: now)
        let isCounting = nodes[index].voterSet != nil
        var rule = discovery.formationRule(others)
        let isSilent = reading >= discovery.startedAt + .seconds(1) && !others.hasMemberTable
        if scenario.mutation == .bootstrapOnSilence, isSilent { rule = .unanimous }
        if rule != nodes[index].formationRule {
            nodes[index].formationRule = rule
            deliver(index, .formationRuleChanged(rule))
            let isOpener = nodes[index].voterSet?.founder == world.members[index].id
            if !isCounting, isOpener { world.cover(.clusterBootstrapped) }
        }
        if !nodes[index].isServing,
            discovery.isComplete(others, hasVoterSet: isCounting, now: reading)
        {
            nodes[index].isServing = true
            world.log("node \(index) serves")
        }
        guard !nodes[index].isServing || nodes[index].voterSet == nil else { return }
        world.schedule(
            .checkDiscovery(index, run: nodes[index].replica.run), after: .milliseconds(40))
    }

    // MARK: Leaving

    /// Starts the shutdown of a node, with its handoff to other owners.
    mutating func leave(_ index: Int) {
        guard nodes[index].isUp, nodes[index].shutdown == nil, nodes.count(where: \.isUp) > 2
        else { return }
        world.log("leave \(index)")
        world.members[index].isDraining = true
        nodes[index].offerAll(.drain, &world)
        nodes[index].shutdown = (.finishingRequests, now)
        if scenario.mutation == .leaveBeforeRequestsFinish { deliver(index, .leaveRequested) }
        advanceShutdown(index, after: world.milliseconds(0...1_500))
        // The container may be stopped before the shutdown is complete.
        guard world.chance(oneIn: 2) else { return }
        let delay = world.milliseconds(300...1_500)
        world.schedule(.stop(index, run: nodes[index].replica.run), after: delay)
        world.schedule(.start(index), after: delay + world.milliseconds(50...8_000))
    }

    private mutating func advanceShutdown(_ index: Int, after delay: Interval) {
        world.schedule(.advanceShutdown(index, run: nodes[index].replica.run), after: delay)
    }

    /// Advances the shutdown when a step is over, or checks it again later.
    mutating func advanceShutdown(_ index: Int) {
        guard let (step, since) = nodes[index].shutdown else { return }
        let isLate = step.timeMax.map { now - since >= $0 } ?? true
        let replication = nodes[index].replica.replication
        if step == .leavingVoterSet, !isLate, replication?.isLeaveComplete == false {
            return advanceShutdown(index, after: .milliseconds(20))
        }
        let next = step.next(isIdle: !nodes[index].isServingClients)
        nodes[index].shutdown = (next, now)
        switch next {
        case .finishingRequests: break
        case .abortingResponses:
            world.cover(.responsesAbortedAtLeave)
            nodes[index].abortResponses()
        case .leavingVoterSet: deliver(index, .leaveRequested)
        case .announcingLeave:
            if replication?.isVoter == false { world.cover(.leftGracefully) }
            world.members[index].hasLeft = true
            return announceLeave(index)
        case .stopped:
            crash(index)
            return world.schedule(.start(index), after: world.milliseconds(50...8_000))
        }
        advanceShutdown(index, after: .milliseconds(20))
    }

    /// Waits for acknowledgements of the leave, with or without connections.
    private mutating func announceLeave(_ index: Int) {
        let isQuick = world.chance(oneIn: 2)
        let wait = isQuick ? world.milliseconds(20...100) : world.milliseconds(100...2_000)
        advanceShutdown(index, after: wait)
        guard world.chance(oneIn: 2) else { return }
        for other in nodes.indices where other != index { block(index, other, for: wait) }
    }
}

extension SimulatedCacheNode {
    /// True while a client waits for a response.
    fileprivate var isServingClients: Bool {
        fetches.values.contains { $0.readers.contains { $0.waiter == .client } }
    }

    fileprivate mutating func abortResponses() {
        for number in fetches.keys { fetches[number]?.leave { $0 == .client } }
    }
}
