import Ground

/// Transfers results between the log and the fence until both are stable.
extension InvalidationReplication {
    /// Delivers an event to the fence.
    mutating func notifyFence(_ event: FenceEvent, _ now: Instant, _ dice: inout SplitMix64) {
        fenceCoordinator.handle(event, now: now, using: &dice)
    }

    /// Processes all consequences until none are left, then appends the effects.
    mutating func runToCompletion(
        _ now: Instant, _ dice: inout SplitMix64, _ effects: inout [InvalidationEffect]
    ) {
        bootstrapIfDue(now, &dice)
        repeat {
            forwardLogOutput(now, &dice)
            updateLogVoters(now, &effects)
            recoveryAdopted(&effects)
            issueConsensusRecords(now, &effects)
        } while log.hasOutput
        emitOutput(now, &effects)
    }

    /// Delivers the log's results to the fence.
    mutating func forwardLogOutput(_ now: Instant, _ dice: inout SplitMix64) {
        while log.hasOutput {
            let (applied, events) = log.takeOutput()
            let positions = applied.sorted().compactMap {
                log.streams.stream(of: $0)?.contiguousPosition
            }
            if !positions.isEmpty { notifyFence(.positionsApplied(positions), now, &dice) }
            for event in events { notifyFence(event, now, &dice) }
        }
    }

    /// Passes the current voters to the log.
    mutating func updateLogVoters(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let members = fenceCoordinator.consensus.configuration?.set.members ?? []
        log.votersChanged(members, now: now, effects: &effects)
    }

    /// Marks all entries soft once when this node adopts a recovered lineage.
    ///
    /// It may lack purges that were durable in another lineage.
    private mutating func recoveryAdopted(_ effects: inout [InvalidationEffect]) {
        guard let next = fenceCoordinator.consensus.configuration?.set.lineage.recovery else {
            return
        }
        let isTrusting = settings.fence.mutations.contains(.recoveryTrustsStoredEntries)
        if (followedRecovery ?? 0) < next, !isTrusting { log.applied.markAllSoft(&effects) }
        followedRecovery = next
    }

    /// Issues the pending consensus records; those for which the log has no capacity wait, and
    /// those that it does not accept are dropped.
    private mutating func issueConsensusRecords(
        _ now: Instant, _ effects: inout [InvalidationEffect]
    ) {
        while let record = fenceCoordinator.output.records.first {
            let invalidation = Invalidation(id: [], .consensus(record))
            let issuance = try? log.issue(invalidation, now: now, effects: &effects)
            guard issuance != .busy else { return }
            fenceCoordinator.output.records.removeFirst()
        }
    }

    /// Opens a cluster if this node follows none and the formation rule permits it.
    private mutating func bootstrapIfDue(_ now: Instant, _ dice: inout SplitMix64) {
        guard fenceCoordinator.consensus.configuration == nil else { return }
        let others = Set(log.receipts.members.liveMembers + fenceCoordinator.reachableMembers)
            .sorted()
        let opens = formation.evaluate(
            own: fenceCoordinator.own,
            others: others.map { ($0, fenceCoordinator.consensus.views[$0]) })
        if opens {
            notifyFence(
                .bootstrapRequested(byOperator: formation.rule == .operatorOrdered), now, &dice)
        }
    }

    /// Returns this node's view of the voter set, with the nominee if this node follows none.
    func view(at now: Instant) -> VoterSetView {
        var view = fenceCoordinator.view(at: now).view
        if view.configuration == nil { view.nominee = formation.nominee }
        return view
    }

    /// Appends the effects for peers, for the disk and for the published window.
    private mutating func emitOutput(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let consensus = fenceCoordinator.consensus
        // A new lineage is on disk before it is followed after a restart.
        if consensus.hasJoined, !consensus.hasSamePersistentState(as: persistedConsensus) {
            log.applied.writes.add(.consensusState(consensus.persistentState))
            persistedConsensus = consensus
        }
        if let conflict = consensus.conflict, conflict != reportedConflict {
            effects.append(.reportConflict(conflict))
        }
        reportedConflict = consensus.conflict
        log.flush(now, &effects)
        let (view, members) = (view(at: now), log.knownMembers)
        for (positions, nodes) in log.takeConfirmations() {
            effects.append(.send(.confirmation(positions, members: members, view: view), to: nodes))
        }
        for request in fenceCoordinator.output.roundRequests.takeAll() {
            effects.append(.send(.roundRequest(request.round, digest: digest), to: request.members))
        }
        guard window != publishedWindow else { return }
        publishedWindow = window
        effects.append(.publishWindow(publishedWindow))
    }
}
