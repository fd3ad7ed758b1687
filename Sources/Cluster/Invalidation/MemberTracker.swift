import Ground

/// Who can serve, as far as this node knows: for receipts and majorities, and for who may open a
/// cluster.
///
/// A member that is cut off may serve all the same. So it is dropped only when it has left, when it
/// was forgotten and cannot be current any more, or when it was away for as long as a counted
/// member is waited for; and somebody else who has it still names it. Whom this node has never
/// seen here those name who have.
struct MemberTracker: Sendable {
    private struct TrackedMember: Sendable {
        /// Its last known run, if any.
        var process: ProcessID?
        var presence = ReplicationMember.Presence.live
        /// Since when membership has it for dead, or gone.
        var deadSince: Instant?
        var wasVoter = false
        /// There was a connection with it.
        var wasConnected = false
        /// This node has it for a member no longer.
        var isDropped = false
    }

    let own: NodeID
    private let process: ProcessID
    private let settings: InvalidationLog.Settings
    /// All but this node.
    private var members = SortedTable<NodeID, TrackedMember>()
    /// Those that left by their own word; the oldest are dropped.
    ///
    /// Whoever still names them speaks of the past.
    private(set) var leftMembers: [NodeID] = []
    /// The same, for looking up.
    private var leftSet: Set<NodeID> = []
    /// Those that this node helped to catch up before it heard of them as members.
    private var catchingUp: [NodeID] = []
    /// Whom this node has for members, itself included; ascending.
    private(set) var ownMembers: [NodeID]
    /// And whom others have; ascending.
    private(set) var known: [NodeID]
    /// Since when there is no connection with one of ``known``.
    private(set) var unreachableSince = SortedTable<NodeID, Instant>()
    /// Who was counted, and from when on this node knew it; oldest first, the last one holds now.
    private var voterSets: [(counted: [NodeID], since: Instant)] = []
    /// When somebody may be gone who is not yet.
    private(set) var nextReview: Instant?

    private static let leftMax = 1_024
    private static let countsMax = 16

    init(own: NodeID, process: ProcessID, settings: InvalidationLog.Settings) {
        self.own = own
        self.process = process
        self.settings = settings
        ownMembers = [own]
        known = ownMembers
    }

    // MARK: Who is there

    /// Those that count now, by id.
    var voters: [NodeID] { voterSets.last?.counted ?? [] }

    /// Those that are here, by id.
    var liveMembers: [NodeID] {
        zip(members.keys, members.values).filter { $1.presence == .live }.map(\.0)
    }

    /// It has left, and was not helped to catch up since.
    func hasLeft(_ node: NodeID) -> Bool { leftSet.contains(node) && !catchingUp.contains(node) }

    /// It is one of ``known``.
    func isKnown(_ node: NodeID) -> Bool { known.sortedIndex(of: node) != nil }

    /// Whether it is in one of the sets by which majorities are still judged.
    func hasBeenVoter(_ node: NodeID) -> Bool { voterSets.contains { $0.counted.contains(node) } }

    func isLive(_ process: ProcessID) -> Bool { node(of: process) != nil }

    /// Whose run this is.
    func node(of process: ProcessID) -> NodeID? {
        guard process != self.process else { return own }
        return zip(members.keys, members.values)
            .first { $1.process == process && !$1.isDropped }?.0
    }

    /// When a majority of those who counted then was known to have confirmed; nil if it is not.
    ///
    /// What was durable at a majority once is so for ever, whoever counts later; but what a
    /// majority has only because others were forgotten is durable no earlier than that.
    func majorityInstant(_ confirmed: (NodeID) -> Instant?) -> Instant? {
        for (place, (counted, since)) in voterSets.enumerated() where !counted.isEmpty {
            let instants = counted.compactMap(confirmed).sorted()
            guard instants.count > counted.count / 2 else { continue }
            let instant = max(since, instants[counted.count / 2])
            guard place + 1 < voterSets.count, instant >= voterSets[place + 1].since else {
                return instant
            }
        }
        return nil
    }

    // MARK: What happens

    /// There is a connection with `node`, whatever membership thinks of it; true if that is news.
    mutating func connected(_ node: NodeID) -> Bool {
        guard members[node]?.presence != .live || members[node]?.wasConnected == false else {
            return false
        }
        members.update(node, or: TrackedMember()) {
            $0.presence = .live
            $0.deadSince = nil
            $0.isDropped = false
            $0.wasConnected = true
        }
        return true
    }

    /// Membership has these.
    mutating func update(_ named: [ReplicationMember], now: Instant) {
        var isNamed: Set<NodeID> = []
        for member in named where member.node != own {
            isNamed.insert(member.node)
            guard member.presence != .dead || members[member.node] != nil else { continue }
            members.update(member.node, or: TrackedMember()) {
                $0.process = member.process
                $0.presence = member.presence
            }
        }
        members.updateAll { node, member in
            if !isNamed.contains(node), member.presence == .live { member.presence = .dead }
            member.deadSince = member.presence == .live ? nil : member.deadSince ?? now
            if member.presence == .live { member.isDropped = false }
        }
        for node in members.keys where !isNamed.contains(node) && members[node]?.isDropped == true {
            members[node] = nil
        }
    }

    /// These count from now on, by id; true if others did before.
    mutating func setVoters(_ counted: [NodeID], now: Instant) -> Bool {
        guard counted != self.voters else { return false }
        for node in counted where node != own && members[node] == nil {
            members[node] = TrackedMember(presence: .dead, deadSince: now)
        }
        voterSets.append((counted, now))
        if voterSets.count > Self.countsMax { voterSets.removeFirst() }
        let countedSet = Set(counted)
        members.updateAll { node, member in
            // Who is counted again begins anew.
            member.wasVoter = member.wasVoter || countedSet.contains(node)
            if countedSet.contains(node) { member.isDropped = false }
        }
        return true
    }

    /// Somebody whom this node helps to catch up may serve from then on.
    mutating func addCatchingUp(_ node: NodeID) {
        guard node != own, members[node].map(\.isDropped) ?? true, !catchingUp.contains(node) else {
            return
        }
        catchingUp.append(node)
        ownMembers = Set(ownMembers + [node]).sorted()
        known = Set(known + [node]).sorted()
    }

    // MARK: What follows

    /// Drops whoever is gone by now.
    mutating func review(now: Instant) {
        let countedSet = Set(voters)
        for (node, member) in zip(members.keys, members.values) where !countedSet.contains(node) {
            if member.presence == .left {
                members[node] = nil
                leftMembers.append(node)
            } else if member.deadSince.map({ now - $0 >= removalDelay(node, member) }) ?? false {
                members[node]?.isDropped = true
            }
        }
        leftMembers.removeAll { members[$0] != nil }
        if leftMembers.count > Self.leftMax {
            leftMembers.removeFirst(leftMembers.count - Self.leftMax)
        }
        leftSet = Set(leftMembers)
        let others = zip(members.keys, members.values).filter { !$1.isDropped }.map(\.0)
        catchingUp.removeAll { leftSet.contains($0) || others.contains($0) }
        ownMembers = Set([own] + others + catchingUp).sorted()
        nextReview = zip(members.keys, members.values)
            .filter { !countedSet.contains($0) && !$1.isDropped }
            .compactMap { node, member in member.deadSince.map { $0 + removalDelay(node, member) } }
            .min()
    }

    /// `named` are those whom others have for members, `connected` those that can be spoken to.
    mutating func review(named: [NodeID], connected: [NodeID], now: Instant) {
        known = Set(ownMembers + named.filter { !hasLeft($0) }).sorted()
        review(connected: connected, now: now)
    }

    mutating func review(connected: [NodeID], now: Instant) {
        let here = Set(connected)
        var since = SortedTable<NodeID, Instant>()
        for node in known where node != own && !here.contains(node) {
            since[node] = unreachableSince[node] ?? now
        }
        unreachableSince = since
    }

    /// After being away for so long a member that does not count is this node's no longer.
    ///
    /// Others that met it later still name it. Of one that was never met here only they can have
    /// proven that it is current.
    private func removalDelay(_ node: NodeID, _ member: TrackedMember) -> Interval {
        member.wasVoter || !member.wasConnected || isReplaced(node)
            ? settings.fenceDuration : settings.removeAfter
    }

    /// Another node of its name is here.
    private func isReplaced(_ node: NodeID) -> Bool {
        ([own] + liveMembers).contains { $0 != node && $0.hasSameName(as: node) }
    }
}
