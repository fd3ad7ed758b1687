import Ground

/// The nodes that can serve, as far as this node knows, for receipts, majorities and cluster
/// formation.
///
/// A partitioned member may still serve. So it is dropped only when it has left; when it was
/// removed from the voters and cannot be current any more; or when it was absent for as long as a
/// voter is waited for. Other nodes that still know it continue to name it. Nodes that this node
/// has never met are named by those that have.
struct MemberTracker: Sendable {
    private struct TrackedMember: Sendable {
        /// The id of its last known process, if any.
        var process: ProcessID?
        var presence = ReplicationMember.Presence.live
        /// The time since which membership considers it dead or left, or does not list it.
        var deadSince: Instant?
        var wasVoter = false
        /// True if there was a connection with it.
        var wasConnected = false
        /// True if this node no longer counts it as a member.
        var isDropped = false
    }

    let own: NodeID
    private let process: ProcessID
    private let settings: InvalidationLog.Settings
    /// The members other than this node.
    private var members = SortedTable<NodeID, TrackedMember>()
    /// The members that left on their own; the oldest are dropped.
    ///
    /// Nodes that still name them are outdated.
    private(set) var leftMembers: [NodeID] = []
    /// The elements of ``leftMembers``, for look-ups.
    private var leftSet: Set<NodeID> = []
    /// The nodes that this node helped to catch up before membership reported them.
    private var catchingUp: [NodeID] = []
    /// The members that this node knows, including itself; ascending.
    private(set) var ownMembers: [NodeID]
    /// The members that this node or others know; ascending.
    private(set) var known: [NodeID]
    /// The time since which there is no connection with a member of ``known``.
    private(set) var unreachableSince = SortedTable<NodeID, Instant>()
    /// The voter sets with the time from which this node knew them; oldest first, the last is
    /// current.
    private var voterSets: [(members: [NodeID], since: Instant)] = []
    /// When the next member may be dropped.
    private(set) var nextReview: Instant?

    private static let leftMax = 1_024
    private static let voterSetsMax = 16

    init(own: NodeID, process: ProcessID, settings: InvalidationLog.Settings) {
        self.own = own
        self.process = process
        self.settings = settings
        ownMembers = [own]
        known = ownMembers
    }

    // MARK: Queries

    /// The current voters, by id.
    var voters: [NodeID] { voterSets.last?.members ?? [] }

    /// The live members, by id.
    var liveMembers: [NodeID] {
        zip(members.keys, members.values).filter { $1.presence == .live }.map(\.0)
    }

    /// Returns true if the node has left, and was not helped to catch up since.
    func hasLeft(_ node: NodeID) -> Bool { leftSet.contains(node) && !catchingUp.contains(node) }

    /// Returns true if the node is in ``known``.
    func isKnown(_ node: NodeID) -> Bool { known.sortedIndex(of: node) != nil }

    /// Returns true if the node is in a voter set by which majorities are still evaluated.
    func hasBeenVoter(_ node: NodeID) -> Bool { voterSets.contains { $0.members.contains(node) } }

    /// This process, and the last known one of each member that is not dropped, even if that member
    /// is considered dead.
    var processes: Set<ProcessID> {
        Set(members.values.lazy.filter { !$0.isDropped }.compactMap(\.process)).union([process])
    }

    /// Returns the node whose last known process this is; `nil` if it belongs to no member or to a
    /// dropped one.
    func node(of process: ProcessID) -> NodeID? {
        guard process != self.process else { return own }
        return zip(members.keys, members.values)
            .first { $1.process == process && !$1.isDropped }?.0
    }

    /// Returns when a majority of the voters of that time was known to have confirmed, or `nil`.
    ///
    /// What was durable at a majority stays so, whatever the later voters are. What a majority has
    /// only because others were removed is durable no earlier than that removal.
    func majorityInstant(_ confirmed: (NodeID) -> Instant?) -> Instant? {
        for (place, (voters, since)) in voterSets.enumerated() where !voters.isEmpty {
            let instants = voters.compactMap(confirmed).sorted()
            guard instants.count > voters.count / 2 else { continue }
            let instant = max(since, instants[voters.count / 2])
            guard place + 1 < voterSets.count, instant >= voterSets[place + 1].since else {
                return instant
            }
        }
        return nil
    }

    // MARK: Events

    /// Records a connection with `node`, which counts as a live member; returns true if that is
    /// new.
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

    /// Records the members that membership reports.
    ///
    /// A live member that is missing counts as dead from now on. A dead one that was not known is
    /// ignored.
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

    /// Sets the voters, ascending by id; returns true if they have changed.
    mutating func setVoters(_ voters: [NodeID], now: Instant) -> Bool {
        guard voters != self.voters else { return false }
        for node in voters where node != own && members[node] == nil {
            members[node] = TrackedMember(presence: .dead, deadSince: now)
        }
        voterSets.append((voters, now))
        if voterSets.count > Self.voterSetsMax { voterSets.removeFirst() }
        let voters = Set(voters)
        members.updateAll { node, member in
            // A member that becomes a voter again counts as a member again.
            member.wasVoter = member.wasVoter || voters.contains(node)
            if voters.contains(node) { member.isDropped = false }
        }
        return true
    }

    /// Adds a node that this node helps to catch up, which may serve from then on, unless it is a
    /// member already.
    mutating func addCatchingUp(_ node: NodeID) {
        guard node != own, members[node].map(\.isDropped) ?? true, !catchingUp.contains(node) else {
            return
        }
        catchingUp.append(node)
        ownMembers = Set(ownMembers + [node]).sorted()
        known = Set(known + [node]).sorted()
    }

    // MARK: Derived state

    /// Drops the members, other than voters, that have left or were absent for too long.
    mutating func review(now: Instant) {
        let voters = Set(voters)
        for (node, member) in zip(members.keys, members.values) where !voters.contains(node) {
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
            .filter { !voters.contains($0) && !$1.isDropped }
            .compactMap { node, member in member.deadSince.map { $0 + removalDelay(node, member) } }
            .min()
    }

    /// Updates ``known`` and reachability; `named` are the nodes that others name as members.
    mutating func review(named: [NodeID], connected: [NodeID], now: Instant) {
        known = Set(ownMembers + named.filter { !hasLeft($0) }).sorted()
        review(connected: connected, now: now)
    }

    /// Updates since when each member of ``known`` is not connected.
    mutating func review(connected: [NodeID], now: Instant) {
        let here = Set(connected)
        var since = SortedTable<NodeID, Instant>()
        for node in known where node != own && !here.contains(node) {
            since[node] = unreachableSince[node] ?? now
        }
        unreachableSince = since
    }

    /// Returns the absence after which this node drops a member that is not a voter.
    ///
    /// Nodes that met it later still name it. If it was never connected here, only those can have
    /// proven it current.
    private func removalDelay(_ node: NodeID, _ member: TrackedMember) -> Interval {
        member.wasVoter || !member.wasConnected || isReplaced(node)
            ? settings.fenceDuration : settings.removeAfter
    }

    /// Returns true if another node of the same name is present.
    private func isReplaced(_ node: NodeID) -> Bool {
        ([own] + liveMembers).contains { $0 != node && $0.hasSameName(as: node) }
    }
}
