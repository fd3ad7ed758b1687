package import Ground

/// The fence and the voter set consensus of one node, driven by events.
///
/// In every event the reported voter set is processed before the contact is counted, and the window
/// moves last. No decision falls between these steps. Not thread-safe.
package struct FenceCoordinator: Sendable {
    /// The voter set and this node's part in changing it.
    package internal(set) var consensus: VoterSetConsensus
    /// The fence.
    package internal(set) var fence: Fence
    let own: NodeID
    /// True if the directory holds nothing that was ever served: this node may open a cluster.
    private var mayBootstrap: Bool
    private(set) var synced = PositionVector()
    /// The streams that were retired here, in order of retirement; still in ``synced``.
    private var retired: [ProcessID] = []
    /// The connected members, by id.
    private(set) var reachableMembers: [NodeID] = []
    /// Until when members count as recently started; see ``VoterSetView/isRecentlyStarted``.
    private var recentlyStartedUntil = SortedTable<NodeID, Instant>()
    /// Former sets whose majorities may have proven a node current that still is.
    ///
    /// `until` is set once too few members may still follow the set for a majority.
    private var formerSets: [(set: VoterSet, until: Instant?)] = []
    /// The time until which the fence stays closed after a recovery.
    ///
    /// Before it a member of the replaced lineage, or a newcomer to it, may be current by earlier
    /// responses.
    private var closedUntil: Instant?
    /// When a member last sent a response or confirmation.
    private(set) var lastReceivedAt = SortedTable<NodeID, Instant>()
    private var nextRound: Instant
    /// The index in ``reachableMembers`` at which the next round to a quorum begins.
    private var nextQueryIndex = 0
    /// True once this node has begun to leave.
    var isLeaving = false
    /// The members that leave, or have left, on their own.
    private(set) var leftMembers: Set<NodeID> = []
    /// The members to remove by order of the operator, which do not run.
    var membersToRemove: Set<NodeID> = []
    /// The change that this node plans to propose, and since when.
    var plannedChange: (change: VoterSetChange, since: Instant)?
    /// The requirement that the last rounds were scheduled for.
    private var lastRequirement: Fence.QuorumRequirement?
    /// The pending output, which the caller removes and carries out.
    package var output = FenceOutput()

    /// Creates the coordinator of a node that starts.
    ///
    /// - Parameters:
    ///   - own: This node.
    ///   - persistentState: The state of the log's last checkpoint, or `nil` if there is none.
    ///   - log: The consensus records of all members that the log holds, in any order.
    ///   - mayBootstrap: True only if the log is neither damaged nor lost and the directory holds
    ///     nothing that was ever served under a voter set.
    ///   - settings: The settings.
    ///   - firstRound: A random number for the first round.
    ///   - now: The current time.
    package init(
        own: NodeID, persistentState: VoterSetConsensus.PersistentState?,
        replaying log: [ConsensusRecord],
        mayBootstrap: Bool, settings: Fence.Settings, firstRound: UInt64, now: Instant
    ) {
        self.own = own
        consensus = VoterSetConsensus(
            own: own, persistentState: persistentState, replaying: log, now: now)
        fence = Fence(own: own, settings: settings, firstRound: firstRound, now: now)
        self.mayBootstrap = mayBootstrap && consensus.configuration == nil
        nextRound = now
        if let set = consensus.configuration?.set, let span = settings.duration,
            !settings.isSingleNode
        {
            recentlyStartedUntil[own] = now + span
            if set.lineage.recovery > 0 { closedUntil = now + span }
        }
        fence.update(quorumRequirement, now: now)
    }

    /// The contacts that are needed now; `nil` closes the fence.
    private var quorumRequirement: Fence.QuorumRequirement? {
        closedUntil == nil ? consensus.quorumRequirement : nil
    }

    /// The fence's window, to be published to the event loops after each event.
    package var window: FenceWindow { fence.window }

    /// Returns this node's view of the voter set and its synced positions, for a response or
    /// confirmation.
    ///
    /// Both are of this moment and must not be kept for later.
    package func view(at now: Instant) -> (view: VoterSetView, synced: [StreamPosition]) {
        // A node that leaves stays connected for a moment after it was removed. It must not be
        // added again: no majority could settle that set.
        let isCurrent = window.isCurrent(at: now) && !isLeaving
        var view = consensus.view(isCurrent: isCurrent)
        view.isRecentlyStarted = recentlyStartedUntil[own] != nil
        return (view, synced.positions)
    }

    /// True if a node may be current that no member knows.
    ///
    /// Such a node was proven current by a majority all of whose members have restarted since, or
    /// are no voters any more.
    var mayHaveUnknownNodes: Bool {
        guard let set = consensus.configuration?.set else { return false }
        let sets = [set] + formerSets.map(\.set)
        let isUnknown = sets.contains { former in
            former.isMajority(
                former.members.filter { !set.contains($0) } + recentlyStartedUntil.keys)
        }
        // After a restart this node does not know the former set, which may have been smaller by
        // one.
        let isRecentlyStarted = recentlyStartedUntil[own] != nil
        return isUnknown
            || (isRecentlyStarted && recentlyStartedUntil.count > (set.members.count - 1) / 2)
    }

    /// Ends what has expired: recently started members, former sets, and the closing after a
    /// recovery.
    private mutating func expireTimers(_ now: Instant) {
        for member in recentlyStartedUntil.keys
        where recentlyStartedUntil[member].map({ $0 <= now }) ?? false {
            recentlyStartedUntil[member] = nil
        }
        formerSets.removeAll { $0.until.map { $0 <= now } ?? false }
        if let closedUntil, closedUntil <= now { self.closedUntil = nil }
    }

    /// Records that the set has changed from `former`, if it has; no effect without a fence
    /// duration.
    ///
    /// New voters count as heard of now, and after a recovery the fence stays closed for its
    /// duration.
    private mutating func recordSetChange(_ former: VoterSet?, _ now: Instant) {
        guard let set = consensus.configuration?.set, set != former,
            let span = fence.settings.duration
        else {
            return
        }
        if let former { formerSets.append((former, nil)) }
        for member in set.members where former?.contains(member) == false {
            lastReceivedAt[member] = max(lastReceivedAt[member] ?? now, now)
        }
        let recovery = former?.lineage.recovery ?? 0
        if set.lineage.recovery > recovery { closedUntil = now + span }
    }

    /// Sets the expiry of former sets without a majority that follows them.
    private mutating func expireFormerSets(_ now: Instant) {
        guard let span = fence.settings.duration, let set = consensus.configuration?.set else {
            return
        }
        for index in formerSets.indices where formerSets[index].until == nil {
            if isSuperseded(formerSets[index].set, by: set) { formerSets[index].until = now + span }
        }
    }

    /// Returns true if a majority of `former` no longer follows it.
    ///
    /// Either its members have reported so; or the next set was changed too, by a majority that
    /// followed it; or by order of the operator the old lineage does not run.
    private func isSuperseded(_ former: VoterSet, by set: VoterSet) -> Bool {
        guard former.lineage == set.lineage, set.generation == former.generation + 1 else {
            return true
        }
        return !former.isMajority(former.members.filter { !consensus.hasSuperseded(former, $0) })
    }

    /// Returns the round number for a request that is about to be sent anyway.
    package mutating func round(at now: Instant) -> UInt64 { fence.round(at: now) }

    /// Requests a round with `member`, because there is a new connection with it.
    mutating func queryMember(_ member: NodeID, now: Instant) {
        output.roundRequests.append(.init(members: [member], round: round(at: now)))
    }

    /// When ``FenceEvent/ticked`` is due; changes with every event.
    package var nextTick: Instant {
        let ends = recentlyStartedUntil.values + formerSets.compactMap(\.until)
        let vote = consensus.repeatVoteDeadline(after: fence.settings.proposalTimeout)
        return [
            nextRound, consensus.proposal?.deadline, proposalDue, closedUntil, vote, ends.min(),
        ]
        .compactMap { $0 }.min() ?? nextRound
    }

    /// Processes an event at `now` and adds the results to ``output``.
    package mutating func handle(_ event: FenceEvent, now: Instant, using dice: inout SplitMix64) {
        expireTimers(now)
        let former = consensus.configuration?.set
        switch event {
        case .ticked: tick(now)
        case .reachableMembersChanged(let members):
            reachableMembers = members.filter { $0 != own }.sorted()
            let known = Set(reachableMembers + (consensus.configuration?.set.members ?? []))
            consensus.retainViews(of: known)
            fence.retainContacts(of: known)
            for member in lastReceivedAt.keys where !known.contains(member) {
                lastReceivedAt[member] = nil
            }
        case .responseReceived(let response, let member): responseReceived(response, member, now)
        case .positionsApplied(let positions): fence.applied(positions)
        case .positionsSynced(let positions):
            synced.merge(positions)
            if !retired.isEmpty {
                let continued = Set(positions.map(\.process))
                retired.removeAll { continued.contains($0) }
            }
            consensus.recordOwnPositions(synced.positions, now: now)
        case .streamRetired(let position):
            synced.merge([position])
            fence.applied([position])
            retired.removeAll { $0 == position.process }
            retired.append(position.process)
            consensus.recordOwnPositions([position], now: now)
        case .streamForgotten(let process):
            synced.remove(process)
            retired.removeAll { $0 == process }
            fence.removeStream(process)
            consensus.removeStream(process)
        case .consensusRecordRead(let record): consensus.apply(record, now: now)
        case .bootstrapRequested(let byOperator):
            guard mayBootstrap || byOperator, consensus.configuration == nil else { break }
            consensus.bootstrap(now: now)
        case .recordConflictFound(let position):
            consensus.conflict = consensus.conflict ?? .conflictingRecords(position)
        case .membersLeft(let members): leftMembers = Set(members).subtracting([own])
        case .leaveRequested: isLeaving = true
        case .recoveryRequested: consensus.recover(now: now)
        }
        recordSetChange(former, now)
        expireFormerSets(now)
        advance(now, using: &dice)
    }

    /// True if the set is settled, and this node and all reachable members are in it.
    private var areAllReachableVoters: Bool {
        guard let configuration = consensus.configuration, configuration.isSettled,
            consensus.isVoter
        else {
            return false
        }
        return reachableMembers.allSatisfy(configuration.set.contains)
    }

    /// Returns true if the member is connected or a voter.
    private func isKnown(_ member: NodeID) -> Bool {
        reachableMembers.contains(member) || consensus.configuration?.set.contains(member) == true
    }

    /// Requests the round that is due, and schedules the next one.
    ///
    /// The round is with a quorum if this node is current for long enough and all reachable members
    /// are voters of a settled set; otherwise it is with all reachable members.
    private mutating func tick(_ now: Instant) {
        guard nextRound <= now else { return }
        let span = fence.settings.contactLifetime
        guard areAllReachableVoters, window.isCurrent(at: now) else {
            nextRound = now + min(Self.retryInterval, Interval(nanoseconds: span.nanoseconds / 8))
            return queryAll(now)
        }
        // One round may fail, and the next is still in time.
        nextRound = now + Interval(nanoseconds: span.nanoseconds * 2 / 5)
        let isInTime = window.isCurrent(at: now + Interval(nanoseconds: span.nanoseconds / 2))
        guard isInTime, let needed = consensus.configuration?.set.members.count else {
            return queryAll(now)
        }
        queryQuorum(needed / 2, now)
    }

    /// The interval between rounds while responses are needed to proceed.
    private static let retryInterval = Interval.milliseconds(500)

    /// Requests a round with all reachable members, if there are any.
    private mutating func queryAll(_ now: Instant) {
        guard !reachableMembers.isEmpty else { return }
        output.roundRequests.append(
            .init(members: reachableMembers, round: fence.beginRound(at: now)))
    }

    /// Requests a round with `count` reachable members in turn, which make a majority with this
    /// node.
    ///
    /// If one does not respond, the next round is with all; so is this one if no more are
    /// reachable.
    private mutating func queryQuorum(_ count: Int, _ now: Instant) {
        guard count < reachableMembers.count else { return queryAll(now) }
        let round = fence.beginRound(at: now)
        let members = (0..<count).map {
            reachableMembers[(nextQueryIndex + $0) % reachableMembers.count]
        }
        nextQueryIndex = (nextQueryIndex + count) % reachableMembers.count
        output.roundRequests.append(.init(members: members.sorted(), round: round))
    }

    /// Records a response of a reachable member or voter, which ends an order to remove it; ignores
    /// others.
    private mutating func responseReceived(
        _ response: FenceResponse, _ member: NodeID, _ now: Instant
    ) {
        guard member != own, isKnown(member) else { return }
        lastReceivedAt[member] = now
        membersToRemove.remove(member)
        recentlyStartedUntil[member] =
            response.view.isRecentlyStarted ? fence.settings.duration.map { now + $0 } : nil
        guard consensus.recordView(response.view, synced: response.synced, of: member, now: now)
        else { return }
        guard let round = response.round else { return }
        fence.responseReceived(round, by: member, synced: response.synced, now: now)
    }

    /// Derives all consequences of the events so far, in a fixed order.
    mutating func advance(_ now: Instant, using dice: inout SplitMix64) {
        if consensus.configuration != nil { mayBootstrap = false }
        if let join = consensus.takeJoinRecord() { output.records.append(join) }
        let requirement = self.quorumRequirement
        fence.update(requirement, now: now)
        let isCurrent = window.isCurrent(at: now)
        consensus.expireProposal(at: now)
        propose(now, using: &dice)
        if consensus.isVoteDue {
            consensus.vote(synced: votedPositions, isCurrent: isCurrent, records: &output.records)
        }
        if let due = consensus.repeatVoteDeadline(after: fence.settings.proposalTimeout), due <= now
        {
            consensus.repeatVote(synced: votedPositions, records: &output.records)
        }
        // A vote that was just cast may change the requirement.
        if self.quorumRequirement != requirement { fence.update(self.quorumRequirement, now: now) }
        scheduleRound(now)
    }

    /// The positions that a vote names: all held streams, then the latest retired ones as space
    /// permits.
    ///
    /// All voters had the retired streams before.
    private var votedPositions: [StreamPosition] {
        let positions = synced.positions
        guard positions.count > ConsensusRecord.positionsMax else { return positions }
        let retired = Set(self.retired)
        let held = positions.filter { !retired.contains($0.process) }
        let room = max(0, ConsensusRecord.positionsMax - held.count)
        let rest = PositionVector(positions)
        return held.prefix(ConsensusRecord.positionsMax)
            + self.retired.suffix(room).map {
                StreamPosition(process: $0, count: rest.count(of: $0))
            }
    }

    /// Schedules a round at once if a new requirement needs it.
    ///
    /// Contacts from before a requirement do not serve it. So a fenced node requests a round at
    /// once, and every node does when the set is settled.
    private mutating func scheduleRound(_ now: Instant) {
        let requirement = consensus.quorumRequirement
        guard requirement != lastRequirement else { return }
        let settledAt = requirement?.settledAt
        let isSettled = settledAt != nil && settledAt != lastRequirement?.settledAt
        lastRequirement = requirement
        if isSettled || (requirement != nil && !window.isCurrent(at: now)) { nextRound = now }
    }
}
