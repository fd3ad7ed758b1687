package import Ground

/// Proposals to add and remove voters.
extension FenceCoordinator {
    /// The time at which this node proposes its planned change, unless another node has by then;
    /// `nil` without a planned change or during a proposal.
    var proposalDue: Instant? {
        guard let plannedChange, consensus.proposal == nil else { return nil }
        // No other node plans this.
        if plannedChange.change == .remove([own]) { return plannedChange.since }
        let delay = fence.settings.proposalDelay.nanoseconds
        return plannedChange.since
            + Interval(nanoseconds: delay * Int64(rank(at: plannedChange.since)))
    }

    /// Plans a change and proposes it when it is due; only while unfenced, and one change at a
    /// time.
    mutating func propose(_ now: Instant, using dice: inout SplitMix64) {
        guard window.isCurrent(at: now), consensus.isVoter, let change = nextChange(now) else {
            plannedChange = nil
            return
        }
        if plannedChange?.change != change { plannedChange = (change, now) }
        guard consensus.proposal == nil, let due = proposalDue, due <= now else { return }
        let timeout = fence.settings.proposalTimeout
        let jitter = Int64.random(in: 0..<max(1, timeout.nanoseconds), using: &dice)
        let end = now + timeout + Interval(nanoseconds: jitter)
        consensus.startProposal(change, until: end, records: &output.records)
        plannedChange = nil
    }

    /// Returns how many voters in contact with this node have lower ids.
    private func rank(at now: Instant) -> Int {
        let members = consensus.configuration?.set.members ?? []
        return members.count { $0 < own && fence.isInContact(with: $0, at: now) }
    }

    /// Returns the next change: an undecided one first, then leaving, removing, adding; each by id;
    /// `nil` if none is needed.
    private mutating func nextChange(_ now: Instant) -> VoterSetChange? {
        guard let set = consensus.configuration?.set else { return nil }
        membersToRemove.formIntersection(set.members)
        if let change = consensus.undecidedChange { return change }
        if isLeaving, set.members.count > 1 { return .remove([own]) }
        if let gone = set.members.first(where: { isRemovalDue($0, now) }) { return .remove([gone]) }
        let newcomer = reachableMembers.first { isCaughtUp($0, with: set, now) }
        return newcomer.map { .add($0) }
    }

    /// Returns true if a voter has left, was replaced by another node of its name, or was silent
    /// too long.
    ///
    /// Silence counts only while this node was unfenced and running, and so could have received
    /// something.
    private func isRemovalDue(_ member: NodeID, _ now: Instant) -> Bool {
        guard member != own else { return false }
        // A member that was ordered to stop while it was being added may have left before.
        if leftMembers.contains(member) || membersToRemove.contains(member) { return true }
        let isReplaced =
            !reachableMembers.contains(member)
            && ([own] + reachableMembers).contains(where: member.hasSameName)
        if isReplaced, !fence.settings.mutations.contains(.replacedVotersStay) { return true }
        guard let openSince = fence.currentSince else { return false }
        let since = max(lastReceivedAt[member] ?? openSince, openSince)
        return now - since >= fence.settings.removeAfter
    }

    /// Returns true if the member may be added: it is in contact, current and follows `set`, and is
    /// neither a voter nor leaving.
    private func isCaughtUp(_ member: NodeID, with set: VoterSet, _ now: Instant) -> Bool {
        guard !set.contains(member), !leftMembers.contains(member),
            fence.isInContact(with: member, at: now)
        else { return false }
        guard let view = consensus.views[member] else { return false }
        return view.isCurrent && view.configuration?.set == set
    }

    /// True if this node has left and its data is synced at a majority of the others: it may stop.
    package var hasLeft: Bool {
        isLeaving && !consensus.isVoter && consensus.configuration?.isSettled == true
    }

    /// True if waiting for ``hasLeft`` is over or pointless.
    ///
    /// That is so when the node has left, is alone, or reaches fewer voters than must agree.
    package var isLeaveComplete: Bool {
        guard !hasLeft, let set = consensus.configuration?.set, set.members.count > 1 else {
            return true
        }
        return !set.isMajority(reachableMembers + [own])
    }

    // MARK: Orders of the operator

    /// The reason why a member is not removed.
    package enum RemovalRefusal: Error, Hashable, Sendable {
        /// This node follows no settled join, is no voter, or has found a conflict, which comes
        /// first.
        case noVoterSet
        /// These nodes are not voters.
        case notVoters([NodeID])
        /// The node itself is among the members; it must leave instead.
        case isOwnNode
        /// These members responded within the last fence duration; they can leave themselves.
        case stillResponding([NodeID])
        /// This change is in progress, and ends or expires soon.
        case changeInProgress(VoterSetChange)
        /// Too few of the remaining members respond; all lost members must be named.
        case tooFewResponding(count: Int, needed: Int)
        /// So few members remain that none of them may know what was durable.
        ///
        /// See ``FenceEvent/recoveryRequested``.
        case mayLosePurges
    }

    /// Begins to remove members by order of the operator; ``memberStatuses(at:)`` shows progress.
    ///
    /// On an unfenced node this only anticipates ``Fence/Settings/removeAfter``. On a fenced node
    /// the order is the operator's promise that these members do not run, and that nodes which this
    /// node does not reach get no such order.
    ///
    /// - Throws: ``RemovalRefusal``; nothing was begun.
    package mutating func removeVoters(
        _ members: [NodeID], now: Instant, using dice: inout SplitMix64
    ) throws(RemovalRefusal) {
        let members = Set(members).sorted()
        guard let configuration = consensus.configuration, consensus.conflict == nil,
            consensus.isVoter,
            consensus.hasJoined
        else { throw .noVoterSet }
        let set = configuration.set
        let nonvoters = members.filter { !set.contains($0) }
        guard nonvoters.isEmpty, !members.isEmpty else { throw .notVoters(nonvoters) }
        guard !members.contains(own) else { throw .isOwnNode }
        let alive = members.filter { isResponding($0, now) }
        guard alive.isEmpty else { throw .stillResponding(alive) }
        if let change = consensus.proposal?.change { throw .changeInProgress(change) }
        // Without a fence nothing is proven, and the order counts as for a fenced node.
        let isCurrent = fence.settings.duration != nil && window.isCurrent(at: now)
        if isCurrent, members.count > 1 {
            // One step at a time, each by a majority of all.
            membersToRemove.formUnion(members)
            return advance(now, using: &dice)
        }
        if !isCurrent {
            try requireQuorum(excluding: members, in: set, now)
            let isKnown =
                set.quorumsIntersect(excludingCount: members.count)
                && hasAllDurable(of: configuration)
            guard isKnown || fence.settings.mutations.contains(.majorityRemoved) else {
                throw .mayLosePurges
            }
            // A voter that was lost before it had synced all would leave the set unsettled for
            // ever.
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

    /// Returns true if this node knows all that was durable in the previous set.
    ///
    /// That includes what became durable while the current set was being decided, which no vote
    /// names: a majority must have responded that followed the current set by then.
    private func hasAllDurable(of configuration: VoterConfiguration) -> Bool {
        if let previous = configuration.previous {
            return fence.hasMajorityContact(of: previous.members, since: consensus.adoptedAt)
        }
        guard let settledAt = consensus.settledAt else { return false }
        return fence.hasMajorityContact(of: configuration.set.members, since: settledAt)
    }

    /// Returns true if the member sent anything within the last contact lifetime, on the present
    /// connection or in a response that counts.
    ///
    /// A member that was not sent a request yet is not assumed to be lost.
    private func isResponding(_ member: NodeID, _ now: Instant) -> Bool {
        if fence.isInContact(with: member, at: now) { return true }
        guard reachableMembers.contains(member), let receivedAt = lastReceivedAt[member] else {
            return false
        }
        return now < receivedAt + fence.settings.contactLifetime
    }

    /// Checks that a majority of the members that remain is in contact with this node.
    ///
    /// - Throws: ``RemovalRefusal/tooFewResponding(count:needed:)``.
    private func requireQuorum(
        excluding members: [NodeID], in set: VoterSet, _ now: Instant
    ) throws(RemovalRefusal) {
        let remaining = set.members.filter { !members.contains($0) }
        let count = remaining.count { fence.isInContact(with: $0, at: now) }
        let needed = remaining.count / 2 + 1
        guard count >= needed else { throw .tooFewResponding(count: count, needed: needed) }
    }

    // MARK: Status

    /// The status of a member as `nuthatch members` shows it.
    package struct MemberStatus: Hashable, Sendable {
        /// The member's id.
        package var id: NodeID
        /// True if the member belongs to this node's voter set.
        package var isVoter: Bool
        /// True if there is a connection with the member; true for this node.
        package var isConnected: Bool
        /// The time since the last request was sent whose response is applied here.
        ///
        /// Zero for this node; `nil` if there is no such request.
        package var contactAge: Interval?
        /// The number of records applied here and not synced at the member, by its last report.
        ///
        /// `nil` without a report.
        package var lag: UInt64?
        /// The member's own report whether it is current; `nil` without a report.
        package var isCurrent: Bool?
    }

    /// Returns the status of all voters, all connected members and this node, by id.
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
