package import Ground

/// The fence and the counted members of one node: the shell has this one thing to tell.
///
/// In every event what is said of the count is taken in before the contact is counted, and the
/// window is moved last: no decision is made between.
package struct FenceCoordinator: Sendable {
    package internal(set) var consensus: VoterSetConsensus
    package internal(set) var fence: Fence
    let own: NodeID
    /// The directory holds nothing that was ever served: this node may be the first of a cluster.
    private var mayBootstrap: Bool
    private(set) var synced = PositionVector()
    /// Streams that were retired here, the last one last; still in ``synced``.
    private var retired: [ProcessID] = []
    /// Connected members, by id.
    private(set) var reachableMembers: [NodeID] = []
    /// Until when members are young, as far as this node can tell; see ``VoterSetView/isYoung``.
    private var recentlyStartedUntil = SortedTable<NodeID, Instant>()
    /// Sets whose majorities may have proven somebody current who is so still: until when, once so
    /// few may follow each still that they are no majority.
    private var formerSets: [(set: VoterSet, until: Instant?)] = []
    /// The fence stays closed until then: a member of the line that a recovered one has replaced,
    /// or a newcomer to it, may be current by answers from before.
    private var closedUntil: Instant?
    /// When anything came from a member last.
    private(set) var lastHeardAt = SortedTable<NodeID, Instant>()
    private var nextRound: Instant
    /// With which of ``reached`` the next round begins that does not go to all.
    private var nextQueryIndex = 0
    var isLeaving = false
    /// Members that go, or went, by their own word.
    private(set) var leftMembers: Set<NodeID> = []
    /// Members that do not run, by the operator's word.
    var membersToForget: Set<NodeID> = []
    /// What is wished for, and since when.
    var plannedChange: (change: VoterSetChange, since: Instant)?
    /// The demand that was last asked for.
    private var lastRequirement: Fence.QuorumRequirement?
    /// What is to be done; whoever does it takes it out.
    package var output = FenceOutput()

    /// A node that starts, with what the log's last checkpoint kept, nil if there is none, and the
    /// records of the count that the log holds, anybody's, in any order.
    ///
    /// It may open a cluster only if the log is neither damaged nor lost and the directory holds
    /// nothing that was ever served under a count. `firstRound` is drawn by dice.
    package init(
        own: NodeID, persistentState: VoterSetConsensus.PersistentState?,
        replaying log: [ConsensusRecord],
        mayBootstrap: Bool, settings: Fence.Settings, firstRound: UInt64, now: Instant
    ) {
        self.own = own
        consensus = VoterSetConsensus(own: own, memory: persistentState, replaying: log, now: now)
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

    private var quorumRequirement: Fence.QuorumRequirement? {
        closedUntil == nil ? consensus.quorumRequirement : nil
    }

    /// To be published to whoever decides, after each event.
    package var window: FenceWindow { fence.window }

    /// What to say of this node with an answer or a confirmation, and what it has synced; both of
    /// this moment, and not to be kept for later.
    package func view(at now: Instant) -> (view: VoterSetView, holds: [StreamPosition]) {
        // One that goes is connected for a moment after it was forgotten, and must not be counted
        // again: nobody could settle that.
        let isCurrent = window.isCurrent(at: now) && !isLeaving
        var view = consensus.view(isCurrent: isCurrent)
        view.isRecentlyStarted = recentlyStartedUntil[own] != nil
        return (view, synced.positions)
    }

    /// A node may be current of which no member knows: it asked a majority, and all of that have
    /// started anew since, or count no more.
    var mayHaveUnknownNodes: Bool {
        guard let set = consensus.configuration?.set else { return false }
        let sets = [set] + formerSets.map(\.set)
        let isUnknown = sets.contains { former in
            former.isMajority(
                former.members.filter { !set.contains($0) } + recentlyStartedUntil.keys)
        }
        // What this node itself has forgotten of the set before: it may have had a member less.
        let isYoung = recentlyStartedUntil[own] != nil
        return isUnknown || (isYoung && recentlyStartedUntil.count > (set.members.count - 1) / 2)
    }

    private mutating func expireTimers(_ now: Instant) {
        for member in recentlyStartedUntil.keys
        where recentlyStartedUntil[member].map({ $0 <= now }) ?? false {
            recentlyStartedUntil[member] = nil
        }
        formerSets.removeAll { $0.until.map { $0 <= now } ?? false }
        if let closedUntil, closedUntil <= now { self.closedUntil = nil }
    }

    /// Takes note that the set has changed, since it was `former`.
    private mutating func recordSetChange(_ former: VoterSet?, _ now: Instant) {
        guard let set = consensus.configuration?.set, set != former,
            let span = fence.settings.duration
        else {
            return
        }
        if let former { formerSets.append((former, nil)) }
        for member in set.members where former?.contains(member) == false {
            lastHeardAt[member] = max(lastHeardAt[member] ?? now, now)
        }
        let recovery = former?.lineage.recovery ?? 0
        if set.lineage.recovery > recovery { closedUntil = now + span }
    }

    /// Takes note of former sets that no majority follows any more.
    private mutating func expireFormerSets(_ now: Instant) {
        guard let span = fence.settings.duration, let set = consensus.configuration?.set else {
            return
        }
        for index in formerSets.indices where formerSets[index].until == nil {
            if isSuperseded(formerSets[index].set, by: set) { formerSets[index].until = now + span }
        }
    }

    /// No majority of `former` follows it any more: its members have said so; or the set after it
    /// has been changed too, by a majority that followed that; or the operator says that it does
    /// not run.
    private func isSuperseded(_ former: VoterSet, by set: VoterSet) -> Bool {
        guard former.lineage == set.lineage, set.generation == former.generation + 1 else {
            return true
        }
        return !former.isMajority(former.members.filter { !consensus.hasSuperseded(former, $0) })
    }

    /// The round to name in a question that is about to be sent anyway.
    package mutating func round(at now: Instant) -> UInt64 { fence.round(at: now) }

    /// `member` is to be asked, for there is a new connection with it.
    mutating func queryMember(_ member: NodeID, now: Instant) {
        output.roundRequests.append(.init(members: [member], round: round(at: now)))
    }

    /// When ``FenceEvent/ticked`` is wanted; changes with every event.
    package var nextTick: Instant {
        let ends = recentlyStartedUntil.values + formerSets.compactMap(\.until)
        let vote = consensus.repeatVoteDeadline(after: fence.settings.proposalTimeout)
        return [
            nextRound, consensus.proposal?.deadline, proposalDue, closedUntil, vote, ends.min(),
        ]
        .compactMap { $0 }.min() ?? nextRound
    }

    /// Takes in what happened at `now`; what is to be done is news.
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
            for member in lastHeardAt.keys where !known.contains(member) {
                lastHeardAt[member] = nil
            }
        case .responseReceived(let response, let member): responseReceived(response, member, now)
        case .positionsApplied(let positions): fence.applied(positions)
        case .positionsSynced(let positions):
            synced.merge(positions)
            if !retired.isEmpty {
                let goOn = Set(positions.map(\.process))
                retired.removeAll { goOn.contains($0) }
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
        case .bootstrapRequested(let byOrder):
            guard mayBootstrap || byOrder, consensus.configuration == nil else { break }
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

    /// Nobody is to be counted or forgotten, as far as this node can tell.
    private var areAllReachableVoters: Bool {
        guard let standing = consensus.configuration, standing.isSettled, consensus.isVoter else {
            return false
        }
        return reachableMembers.allSatisfy(standing.set.contains)
    }

    private func isKnown(_ member: NodeID) -> Bool {
        reachableMembers.contains(member) || consensus.configuration?.set.contains(member) == true
    }

    private mutating func tick(_ now: Instant) {
        guard nextRound <= now else { return }
        let span = fence.settings.contactLifetime
        guard areAllReachableVoters, window.isCurrent(at: now) else {
            nextRound = now + min(Self.retryInterval, Interval(nanoseconds: span.nanoseconds / 8))
            return queryAll(now)
        }
        // One round may come to nothing, and the next is in time all the same.
        nextRound = now + Interval(nanoseconds: span.nanoseconds * 2 / 5)
        let isInTime = window.isCurrent(at: now + Interval(nanoseconds: span.nanoseconds / 2))
        guard isInTime, let needed = consensus.configuration?.set.members.count else {
            return queryAll(now)
        }
        queryQuorum(needed / 2, now)
    }

    /// How soon those are asked again who have to say something before anything goes on.
    private static let retryInterval = Interval.milliseconds(500)

    private mutating func queryAll(_ now: Instant) {
        guard !reachableMembers.isEmpty else { return }
        output.roundRequests.append(
            .init(members: reachableMembers, round: fence.beginRound(at: now)))
    }

    /// Asks as many as a majority needs beside this node, each in its turn; who does not answer is
    /// made up for by all in the next round.
    private mutating func queryQuorum(_ count: Int, _ now: Instant) {
        guard count < reachableMembers.count else { return queryAll(now) }
        let round = fence.beginRound(at: now)
        let members = (0..<count).map {
            reachableMembers[(nextQueryIndex + $0) % reachableMembers.count]
        }
        nextQueryIndex = (nextQueryIndex + count) % reachableMembers.count
        output.roundRequests.append(.init(members: members.sorted(), round: round))
    }

    private mutating func responseReceived(
        _ response: FenceResponse, _ member: NodeID, _ now: Instant
    ) {
        guard member != own, isKnown(member) else { return }
        lastHeardAt[member] = now
        membersToForget.remove(member)
        recentlyStartedUntil[member] =
            response.view.isRecentlyStarted ? fence.settings.duration.map { now + $0 } : nil
        guard consensus.recordView(response.view, synced: response.synced, of: member, now: now)
        else { return }
        guard let round = response.round else { return }
        fence.responseReceived(round, by: member, synced: response.synced, now: now)
    }

    /// What follows from everything that has happened, in one order.
    mutating func advance(_ now: Instant, using dice: inout SplitMix64) {
        if consensus.configuration != nil { mayBootstrap = false }
        if let join = consensus.takeJoinRecord() { output.records.append(join) }
        let demand = self.quorumRequirement
        fence.update(demand, now: now)
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
        // A vote that was just given is one more demand.
        if self.quorumRequirement != demand { fence.update(self.quorumRequirement, now: now) }
        scheduleRound(now)
    }

    /// What a vote names: what is held, and of what is retired, which all counted members had
    /// before, so much as there is room for, the last first.
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

    /// Contacts from before a demand are of no use to it: who is fenced asks again at once, and so
    /// does everybody when the set is settled.
    private mutating func scheduleRound(_ now: Instant) {
        let demand = consensus.quorumRequirement
        guard demand != lastRequirement else { return }
        let isSettled = demand?.settledAt != nil && demand?.settledAt != lastRequirement?.settledAt
        lastRequirement = demand
        if isSettled || (demand != nil && !window.isCurrent(at: now)) { nextRound = now }
    }
}

/// What happens to a ``FenceCoordinator``; the shell tells it in the order in which it happened.
package enum FenceEvent: Hashable, Sendable {
    /// ``FenceCoordinator/nextTick`` has come; coming earlier does no harm.
    case ticked
    /// All members that are connected.
    case reachableMembersChanged([NodeID])
    /// A member's answer or confirmation, in the order of its connection.
    case responseReceived(FenceResponse, NodeID)
    /// No decision from here on misses what lies up to these positions.
    case positionsApplied([StreamPosition])
    /// They are synced here, and were applied before.
    case positionsSynced([StreamPosition])
    /// The log holds nothing more of the stream but how far it went; told at a start, too.
    case streamRetired(StreamPosition)
    /// The log has forgotten even that.
    case streamForgotten(ProcessID)
    /// A record of the count was read: another's, or this node's own, which is then synced.
    case consensusRecordRead(ConsensusRecord)
    /// The node is to open a cluster, as ``ClusterFormation`` or the operator says; nothing happens
    /// to one that follows a count, or whose directory may hold what was served under one, unless
    /// that is the operator's order. May be told again and again.
    case bootstrapRequested(byOperator: Bool = false)
    /// The log holds one number with two contents.
    case recordConflictFound(StreamPosition)
    /// Those of whom membership says that they have gone by their own word; all of them.
    case membersLeft([NodeID])
    /// The node goes for good: it is to be forgotten by its own word.
    case leaveRequested
    /// The operator says that a line is to begin with this node, in the place of all others.
    case recoveryRequested
}

/// What a member says when asked, or of itself.
package struct FenceResponse: Hashable, Sendable {
    /// The number in the question; nil if nobody asked.
    package var round: UInt64?
    /// What it has synced; the fence closes nobody who has applied all that.
    package var synced: [StreamPosition]
    /// Made together with ``holds``, after the question was read.
    package var view: VoterSetView

    package init(round: UInt64?, holds: [StreamPosition], view: VoterSetView) {
        self.round = round
        self.synced = holds
        self.view = view
    }
}

/// What a ``FenceCoordinator`` wants done.
package struct FenceOutput: Hashable, Sendable {
    /// These members are to be asked which invalidations they have; the frames may wait, for the
    /// time runs already.
    package struct RoundRequest: Hashable, Sendable {
        package var members: [NodeID]
        package var round: UInt64
    }

    package var roundRequests: [RoundRequest] = []
    /// To be appended to this process's stream; when one is synced
    /// ``FenceEvent/recorded(_:)`` tells so, and it is pushed no earlier.
    package var records: [ConsensusRecord] = []

    package init() {}
}
