import Cluster
import Ground
import Tiers

/// Start and leave of nodes, by the rules of real nodes.
extension InvalidationSimulation {
    /// Starts a process from the node's storage, unless one is running.
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
        nodes[index].startup = SimulatedStartup(of: nodes[index].replica, &world)
        nodes[index].scheduleHousekeeping(&world)
    }

    /// Starts all nodes that are down.
    mutating func startAll() {
        for index in nodes.indices { start(index) }
    }

    /// Returns true if a majority of the voters is down, not counting `index`.
    private func isMajorityAway(without index: Int) -> Bool {
        guard let set = world.oracle.decidedSets.last else { return false }
        let away = nodes.indices.filter { $0 != index && !nodes[$0].isUp }.map {
            world.members[$0].id
        }
        return set.isMajority(away)
    }

    /// Ends the process, if any; a part of the unsynced writes is lost, and connections break.
    mutating func crash(_ index: Int) {
        guard nodes[index].isUp else { return }
        nodes[index].replica.crash(&world)
        for other in nodes.indices where other != index { disconnect(index, other) }
    }

    // MARK: Joining

    /// Resolves the seeds' names to all initial nodes, or temporarily to only one.
    mutating func seedsResolved(_ index: Int) {
        let isComplete = world.isQuiescent || !world.chance(oneIn: 3)
        nodes[index].startup.seedsResolved(isComplete: isComplete, scenario)
        for other in 0..<scenario.nodes where !nodes[other].isUp {
            nodes[index].startup.dialFailed(other)
        }
        guard !isComplete else { return }
        world.schedule(
            .seedsResolved(index, run: nodes[index].replica.run),
            after: world.milliseconds(200...1_500))
    }

    /// Reevaluates the formation rule, and whether the node may serve; repeats this until it serves
    /// and has a voter set.
    mutating func checkDiscovery(_ index: Int) {
        let others = nodes[index].view.discoveryView(world)
        let reading = nodes[index].clock(at: now)
        let isCounting = nodes[index].voterSet != nil
        let rule = nodes[index].startup.updateFormationRule(others, at: reading, scenario.mutation)
        if let rule {
            deliver(index, .formationRuleChanged(rule))
            let isOpener = nodes[index].voterSet?.founder == world.members[index].id
            if !isCounting, isOpener { world.cover(.clusterBootstrapped) }
        }
        if nodes[index].startup.beginServing(others, hasVoterSet: isCounting, at: reading) {
            world.log("node \(index) serves")
        }
        guard !nodes[index].startup.isServing || nodes[index].voterSet == nil else { return }
        world.schedule(
            .checkDiscovery(index, run: nodes[index].replica.run), after: .milliseconds(40))
    }

    // MARK: Leaving

    /// Starts the shutdown of a node, with its handoff to other owners; does nothing if it is down
    /// or leaving, or no more than two nodes are up.
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

    /// Schedules the next look at the shutdown of a node.
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
        let next = step.next(isIdle: !nodes[index].fetches.isServingClients)
        nodes[index].shutdown = (next, now)
        switch next {
        case .finishingRequests: break
        case .abortingResponses:
            world.cover(.responsesAbortedAtLeave)
            nodes[index].fetches.leave { $0 == .client }
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
