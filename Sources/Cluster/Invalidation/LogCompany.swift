import Ground

/// Who is a member, as far as receipts are concerned.
struct LogCompany: Sendable {
    let own: NodeID
    private var members = SortedTable<NodeID, LogMember>()
    /// Those that this node helped to catch up before it heard of them as members.
    private var guests: [NodeID] = []
    /// Left or forgotten; for looking up.
    private var gone: Set<NodeID> = []
    /// Whom this node has for members, itself included; ascending.
    private(set) var recorded: [NodeID]
    /// And whom others have; ascending.
    private(set) var known: [NodeID]
    /// Since when there is no connection with one of ``known``.
    private(set) var awaySince = SortedTable<NodeID, Instant>()
    /// Who was counted, and from when on this node knew it; oldest first, the last one holds now.
    private(set) var counts: [(counted: [NodeID], since: Instant)] = []
    private static let countsMax = 16

    init(own: LogMember) {
        self.own = own.node
        members[own.node] = own
        recorded = [own.node]
        known = recorded
    }

    var counted: [NodeID] { members.values.filter(\.isCounted).map(\.node) }

    func isGone(_ node: NodeID) -> Bool { gone.contains(node) }

    /// Whether it is in one of the sets by which majorities are still judged.
    func hasCounted(_ node: NodeID) -> Bool { counts.contains { $0.counted.contains(node) } }

    func isLive(_ process: ProcessID) -> Bool {
        members.values.contains { $0.process == process }
    }

    /// Whose run this is.
    func node(of process: ProcessID) -> NodeID? {
        members.values.first { $0.process == process }?.node
    }

    mutating func follow(_ members: [LogMember], gone: [NodeID], now: Instant) {
        let own = self.members[own]
        self.members.removeAll()
        self.members[self.own] = own
        for member in members { self.members[member.node] = member }
        self.gone = Set(gone).subtracting(self.members.keys)
        guests.removeAll { self.members[$0] != nil || self.gone.contains($0) }
        recorded = Set(self.members.keys + guests).sorted()
        guard counted != counts.last?.counted else { return }
        counts.append((counted, now))
        if counts.count > Self.countsMax { counts.removeFirst() }
    }

    /// When a majority of those who counted then was known to have confirmed; nil if it is not.
    ///
    /// What was durable at a majority once is so for ever, whoever counts later; but what a
    /// majority has only because others were forgotten is durable no earlier than that.
    func majorityInstant(_ confirmed: (NodeID) -> Instant?) -> Instant? {
        for (place, (counted, since)) in counts.enumerated() where !counted.isEmpty {
            let instants = counted.compactMap(confirmed).sorted()
            guard instants.count > counted.count / 2 else { continue }
            let instant = max(since, instants[counted.count / 2])
            guard place + 1 < counts.count, instant >= counts[place + 1].since else {
                return instant
            }
        }
        return nil
    }

    /// Somebody whom this node helps to catch up may serve from then on.
    mutating func record(_ node: NodeID) {
        guard members[node] == nil, !guests.contains(node) else { return }
        gone.remove(node)
        guests.append(node)
        recorded = Set(recorded + [node]).sorted()
        known = Set(known + [node]).sorted()
    }

    /// It is one of ``known``.
    func isKnown(_ node: NodeID) -> Bool {
        let place = known.sortedCount { $0 < node }
        return place < known.count && known[place] == node
    }

    /// `named` are those whom others have for members, `connected` those that can be spoken to.
    mutating func review(named: [NodeID], connected: [NodeID], now: Instant) {
        known = Set(recorded + named.filter { !gone.contains($0) }).sorted()
        review(connected: connected, now: now)
    }

    mutating func review(connected: [NodeID], now: Instant) {
        let here = Set(connected)
        var away = SortedTable<NodeID, Instant>()
        for node in known where node != own && !here.contains(node) {
            away[node] = awaySince[node] ?? now
        }
        awaySince = away
    }
}
