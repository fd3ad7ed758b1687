package import Ground

/// Who is to be counted and forgotten.
extension FenceCoordinator {
    /// When this node proposes what it wishes for, if nobody else has.
    var proposalDue: Instant? {
        guard let plannedChange, consensus.proposal == nil else { return nil }
        // Nobody else wishes that.
        if plannedChange.change == .remove([own]) { return plannedChange.since }
        let delay = fence.settings.proposalDelay.nanoseconds
        return plannedChange.since
            + Interval(nanoseconds: delay * Int64(rank(at: plannedChange.since)))
    }

    /// Only an unfenced node proposes, and one change at a time.
    mutating func propose(_ now: Instant, using dice: inout SplitMix64) {
        guard window.isCurrent(at: now), consensus.isVoter, let change = nextChange(now) else {
            plannedChange = nil
            return
        }
        if plannedChange?.change != change { plannedChange = (change, now) }
        guard consensus.proposal == nil, let due = proposalDue, due <= now else { return }
        let patience = fence.settings.proposalTimeout
        let jitter = Int64.random(in: 0..<max(1, patience.nanoseconds), using: &dice)
        let end = now + patience + Interval(nanoseconds: jitter)
        consensus.startProposal(change, until: end, records: &output.records)
        plannedChange = nil
    }

    /// How many counted members that this node is in contact with come before it.
    private func rank(at now: Instant) -> Int {
        let members = consensus.configuration?.set.members ?? []
        return members.count { $0 < own && fence.isInContact(with: $0, at: now) }
    }

    /// What has begun goes first, then leaving, forgetting and counting; each by id.
    private mutating func nextChange(_ now: Instant) -> VoterSetChange? {
        guard let set = consensus.configuration?.set else { return nil }
        membersToForget.formIntersection(set.members)
        if let change = consensus.undecidedChange { return change }
        if isLeaving, set.members.count > 1 { return .remove([own]) }
        if let gone = set.members.first(where: { isRemovalDue($0, now) }) { return .remove([gone]) }
        let newcomer = reachableMembers.first { isCaughtUp($0, with: set, now) }
        return newcomer.map { .add($0) }
    }

    /// Gone by its own word; or away while another node has its name; or silent for too long to a
    /// node that could hear: time in which this one was fenced, or stood still, counts against
    /// nobody.
    private func isRemovalDue(_ member: NodeID, _ now: Instant) -> Bool {
        guard member != own else { return false }
        // Told to stop while it was being counted, it may have gone before it was.
        if leftMembers.contains(member) || membersToForget.contains(member) { return true }
        let isReplaced =
            !reachableMembers.contains(member)
            && ([own] + reachableMembers).contains(where: member.hasSameName)
        if isReplaced, !fence.settings.mutations.contains(.replacedVotersStay) { return true }
        guard let openSince = fence.currentSince else { return false }
        let since = max(lastHeardAt[member] ?? openSince, openSince)
        return now - since >= fence.settings.removeAfter
    }

    private func isCaughtUp(_ member: NodeID, with set: VoterSet, _ now: Instant) -> Bool {
        guard !set.contains(member), !leftMembers.contains(member),
            fence.isInContact(with: member, at: now)
        else { return false }
        guard let view = consensus.views[member] else { return false }
        return view.isCurrent && view.configuration?.set == set
    }

    /// This node has left by its own word, and what only it had is synced elsewhere: it may stop.
    package var hasLeft: Bool {
        isLeaving && !consensus.isVoter && consensus.configuration?.isSettled == true
    }

    /// Waiting any longer for ``hasLeft`` is in vain, or nobody is to be waited for: it has, it is
    /// alone, or fewer counted members are reached than have to agree.
    package var isLeaveComplete: Bool {
        guard !hasLeft, let set = consensus.configuration?.set, set.members.count > 1 else {
            return true
        }
        return !set.isMajority(reachableMembers + [own])
    }

    // MARK: The operator's word

    /// Why a member is not forgotten.
    package enum ForgetRefusal: Error, Hashable, Sendable {
        /// This node has no count, or has found a contradiction that comes first.
        case noVoterSet
        /// These are not counted.
        case notVoters([NodeID])
        /// This node cannot forget itself; it can leave.
        case isOwnNode
        /// These answered within the last fence; they can leave.
        case stillResponding([NodeID])
        /// This change is under way, and done or given up soon.
        case changeInProgress(VoterSetChange)
        /// So few of those that would stay answer, of so many needed: name all that are gone.
        case tooFewResponding(count: Int, needed: Int)
        /// Those that stay are so few that what was durable may be known to none of them; see
        /// ``FenceEvent/recovers``.
        case mayLosePurges
    }

    /// Begins to forget members by the operator's word; see the table for when it is done.
    ///
    /// Of an unfenced node this is no more than ``Fence/Settings/forgetAfter`` come early. Of a
    /// fenced one it is the operator's promise that the nodes do not run, and that he says nothing
    /// else to nodes that this one does not reach.
    ///
    /// - Throws: ``ForgetRefusal``; nothing was begun.
    package mutating func forget(
        _ members: [NodeID], now: Instant, using dice: inout SplitMix64
    ) throws(ForgetRefusal) {
        let members = Set(members).sorted()
        guard let standing = consensus.configuration, consensus.conflict == nil, consensus.isVoter,
            consensus.hasJoined
        else { throw .noVoterSet }
        let set = standing.set
        let strangers = members.filter { !set.contains($0) }
        guard strangers.isEmpty, !members.isEmpty else { throw .notVoters(strangers) }
        guard !members.contains(own) else { throw .isOwnNode }
        let alive = members.filter { isResponding($0, now) }
        guard alive.isEmpty else { throw .stillResponding(alive) }
        if let change = consensus.proposal?.change { throw .changeInProgress(change) }
        // Without a fence nothing is proven, and the operator's word counts as for a fenced node.
        let isCurrent = fence.settings.duration != nil && window.isCurrent(at: now)
        if isCurrent, members.count > 1 {
            // One step at a time, each by a majority of all.
            membersToForget.formUnion(members)
            return advance(now, using: &dice)
        }
        if !isCurrent {
            try requireQuorum(excluding: members, in: set, now)
            let isKnown =
                set.quorumsIntersect(excludingCount: members.count) && hasAllDurable(of: standing)
            guard isKnown || fence.settings.mutations.contains(.majorityRemoved) else {
                throw .mayLosePurges
            }
            // Who was counted and died before it had all would leave the set unsettled for ever.
            consensus.updateSettled(excluding: members, now: now)
        }
        if let change = consensus.configuration?.previous?.change(to: set) {
            throw .changeInProgress(change)
        }
        let end = now + fence.settings.proposalTimeout
        consensus.startProposal(
            .remove(members), excluding: isCurrent ? [] : members, until: end,
            records: &output.records)
        advance(now, using: &dice)
    }

    /// What was durable in the set before is known here, also what became so while the next one was
    /// decided, and no vote names: a majority has answered that followed the next one by then.
    private func hasAllDurable(of standing: VoterConfiguration) -> Bool {
        if let previous = standing.previous {
            return fence.hasMajorityContact(of: previous.members, since: consensus.adoptedAt)
        }
        guard let settledAt = consensus.settledAt else { return false }
        return fence.hasMajorityContact(of: standing.set.members, since: settledAt)
    }

    /// Something came from a member within the last fence, on the connection that there is or in an
    /// answer that counts; that it was not asked yet says nothing of it.
    private func isResponding(_ member: NodeID, _ now: Instant) -> Bool {
        if fence.isInContact(with: member, at: now) { return true }
        guard reachableMembers.contains(member), let heard = lastHeardAt[member] else {
            return false
        }
        return now < heard + fence.settings.contactLifetime
    }

    private func requireQuorum(
        excluding members: [NodeID], in set: VoterSet, _ now: Instant
    ) throws(ForgetRefusal) {
        let stay = set.members.filter { !members.contains($0) }
        let count = stay.count { fence.isInContact(with: $0, at: now) }
        let needed = stay.count / 2 + 1
        guard count >= needed else { throw .tooFewResponding(count: count, needed: needed) }
    }

    // MARK: The table

    /// A member as `nuthatch members` shows it.
    package struct MemberStatus: Hashable, Sendable {
        package var id: NodeID
        package var isVoter: Bool
        /// Connected now.
        package var isConnected: Bool
        /// Since the last question whose answer is applied here was sent; zero for this node, nil
        /// for never.
        package var contactAge: Interval?
        /// Records that are applied here and not synced there, as it said last; nil if it never
        /// did.
        package var lag: UInt64?
        /// It says that it is proven current.
        package var isCurrent: Bool?
    }

    /// Counted and connected members and this node, by id.
    package func memberStatuses(at now: Instant) -> [MemberStatus] {
        let set = consensus.configuration?.set
        let ids = Set((set?.members ?? []) + reachableMembers + [own]).sorted()
        return ids.map { id in
            let view = id == own ? consensus.view(isCurrent: window.isCurrent(at: now)) : nil
            return MemberStatus(
                id: id, isVoter: set?.contains(id) ?? false,
                isConnected: id == own || reachableMembers.contains(id),
                contactAge: id == own ? .zero : fence.lastContact(of: id).map { now - $0 },
                lag: consensus.syncedPositions[id].map { fence.applied.missingCount(in: $0) },
                isCurrent: (view ?? consensus.views[id])?.isCurrent)
        }
    }
}
