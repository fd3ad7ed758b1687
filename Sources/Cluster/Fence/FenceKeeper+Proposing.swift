package import Ground

/// Who is to be counted and forgotten.
extension FenceKeeper {
    /// When this node proposes what it wishes for, if nobody else has.
    var proposalDue: Instant? {
        guard let wish, counted.attempt == nil else { return nil }
        // Nobody else wishes that.
        if wish.change == .forget([own]) { return wish.since }
        let delay = fence.settings.proposalDelay.nanoseconds
        return wish.since + Interval(nanoseconds: delay * Int64(rank(at: wish.since)))
    }

    /// Only an unfenced node proposes, and one change at a time.
    mutating func propose(_ now: Instant, using dice: inout Dice) {
        guard window.isCurrent(at: now), counted.isCounted, let change = dueChange(now) else {
            wish = nil
            return
        }
        if wish?.change != change { wish = (change, now) }
        guard counted.attempt == nil, let due = proposalDue, due <= now else { return }
        let patience = fence.settings.attemptPatience
        let jitter = Int64.random(in: 0..<max(1, patience.nanoseconds), using: &dice)
        let end = now + patience + Interval(nanoseconds: jitter)
        counted.attempt(change, until: end, issue: &news.records)
        wish = nil
    }

    /// How many counted members that this node is in contact with come before it.
    private func rank(at now: Instant) -> Int {
        let members = counted.standing?.set.members ?? []
        return members.count { $0 < own && fence.isInContact(with: $0, at: now) }
    }

    /// What has begun goes first, then leaving, forgetting and counting; each by id.
    private mutating func dueChange(_ now: Instant) -> CountChange? {
        guard let set = counted.standing?.set else { return nil }
        goneByOrder.formIntersection(set.members)
        if let change = counted.unfinished { return change }
        if isLeaving, set.members.count > 1 { return .forget([own]) }
        if let gone = set.members.first(where: { isGone($0, now) }) { return .forget([gone]) }
        let newcomer = reached.first { isCaughtUp($0, with: set, now) }
        return newcomer.map { .count($0) }
    }

    /// Gone by its own word; or away while another node has its name; or silent for too long to a
    /// node that could hear: time in which this one was fenced, or stood still, counts against
    /// nobody.
    private func isGone(_ member: NodeID, _ now: Instant) -> Bool {
        guard member != own else { return false }
        // Told to stop while it was being counted, it may have gone before it was.
        if departed.contains(member) || goneByOrder.contains(member) { return true }
        let isReplaced =
            !reached.contains(member) && ([own] + reached).contains(where: member.isNamesake)
        if isReplaced, !fence.settings.flaws.contains(.namesakesStay) { return true }
        guard let openSince = fence.openSince else { return false }
        let since = max(heardAt[member] ?? openSince, openSince)
        return now - since >= fence.settings.forgetAfter
    }

    private func isCaughtUp(_ member: NodeID, with set: CountedSet, _ now: Instant) -> Bool {
        guard !set.contains(member), !departed.contains(member),
            fence.isInContact(with: member, at: now)
        else { return false }
        guard let view = counted.views[member] else { return false }
        return view.isCurrent && view.standing?.set == set
    }

    /// This node has left by its own word, and what only it had is synced elsewhere: it may stop.
    package var hasLeft: Bool {
        isLeaving && !counted.isCounted && counted.standing?.isSettled == true
    }

    /// Waiting any longer for ``hasLeft`` is in vain, or nobody is to be waited for: it has, it is
    /// alone, or fewer counted members are reached than have to agree.
    package var isLeaveOver: Bool {
        guard !hasLeft, let set = counted.standing?.set, set.members.count > 1 else { return true }
        return !set.isMajority(reached + [own])
    }

    // MARK: The operator's word

    /// Why a member is not forgotten.
    package enum ForgetRefusal: Error, Hashable, Sendable {
        /// This node has no count, or has found a contradiction that comes first.
        case noCount
        /// These are not counted.
        case notCounted([NodeID])
        /// This node cannot forget itself; it can leave.
        case isThisNode
        /// These answered within the last fence; they can leave.
        case answers([NodeID])
        /// This change is under way, and done or given up soon.
        case isChanging(CountChange)
        /// So few of those that would stay answer, of so many needed: name all that are gone.
        case tooFewAnswer(count: Int, needed: Int)
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
        _ members: [NodeID], now: Instant, using dice: inout Dice
    ) throws(ForgetRefusal) {
        let members = Set(members).sorted()
        guard let standing = counted.standing, counted.contradiction == nil, counted.isCounted,
            counted.hasJoined
        else { throw .noCount }
        let set = standing.set
        let strangers = members.filter { !set.contains($0) }
        guard strangers.isEmpty, !members.isEmpty else { throw .notCounted(strangers) }
        guard !members.contains(own) else { throw .isThisNode }
        let alive = members.filter { answers($0, now) }
        guard alive.isEmpty else { throw .answers(alive) }
        if let change = counted.attempt?.wish { throw .isChanging(change) }
        // Without a fence nothing is proven, and the operator's word counts as for a fenced node.
        let isCurrent = fence.settings.fence != nil && window.isCurrent(at: now)
        if isCurrent, members.count > 1 {
            // One step at a time, each by a majority of all.
            goneByOrder.formUnion(members)
            return finish(now, using: &dice)
        }
        if !isCurrent {
            try requireAnswers(without: members, in: set, now)
            let isKnown = set.isKnown(without: members.count) && lacksNothing(of: standing)
            guard isKnown || fence.settings.flaws.contains(.majorityForgotten) else {
                throw .mayLosePurges
            }
            // Who was counted and died before it had all would leave the set unsettled for ever.
            counted.settle(without: members, now: now)
        }
        if let change = counted.standing?.previous?.change(to: set) { throw .isChanging(change) }
        let end = now + fence.settings.attemptPatience
        counted.attempt(
            .forget(members), without: isCurrent ? [] : members, until: end, issue: &news.records)
        finish(now, using: &dice)
    }

    /// What was durable in the set before is known here, also what became so while the next one was
    /// decided, and no vote names: a majority has answered that followed the next one by then.
    private func lacksNothing(of standing: CountStanding) -> Bool {
        if let previous = standing.previous {
            return fence.hasAnswers(of: previous.members, since: counted.adoptedAt)
        }
        guard let settledAt = counted.settledAt else { return false }
        return fence.hasAnswers(of: standing.set.members, since: settledAt)
    }

    /// Something came from a member within the last fence, on the connection that there is or in an
    /// answer that counts; that it was not asked yet says nothing of it.
    private func answers(_ member: NodeID, _ now: Instant) -> Bool {
        if fence.isInContact(with: member, at: now) { return true }
        guard reached.contains(member), let heard = heardAt[member] else { return false }
        return now < heard + fence.settings.span
    }

    private func requireAnswers(
        without members: [NodeID], in set: CountedSet, _ now: Instant
    ) throws(ForgetRefusal) {
        let stay = set.members.filter { !members.contains($0) }
        let count = stay.count { fence.isInContact(with: $0, at: now) }
        let needed = stay.count / 2 + 1
        guard count >= needed else { throw .tooFewAnswer(count: count, needed: needed) }
    }

    // MARK: The table

    /// A member as `nuthatch members` shows it.
    package struct Line: Hashable, Sendable {
        package var id: NodeID
        package var isCounted: Bool
        /// Connected now.
        package var isReached: Bool
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
    package func table(at now: Instant) -> [Line] {
        let set = counted.standing?.set
        let ids = Set((set?.members ?? []) + reached + [own]).sorted()
        return ids.map { id in
            let view = id == own ? counted.view(isCurrent: window.isCurrent(at: now)) : nil
            return Line(
                id: id, isCounted: set?.contains(id) ?? false,
                isReached: id == own || reached.contains(id),
                contactAge: id == own ? .zero : fence.lastContact(of: id).map { now - $0 },
                lag: counted.holdings[id].map { fence.applied.lead(over: $0) },
                isCurrent: (view ?? counted.views[id])?.isCurrent)
        }
    }
}
