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

    init(own: LogMember) {
        self.own = own.node
        members[own.node] = own
        recorded = [own.node]
        known = recorded
    }

    var counted: [NodeID] { members.values.filter(\.isCounted).map(\.node) }

    func isGone(_ node: NodeID) -> Bool { gone.contains(node) }

    func isLive(_ process: ProcessID) -> Bool {
        members.values.contains { $0.process == process }
    }

    /// Whose run this is.
    func node(of process: ProcessID) -> NodeID? {
        members.values.first { $0.process == process }?.node
    }

    mutating func follow(_ members: [LogMember], gone: [NodeID]) {
        let own = self.members[own]
        self.members.removeAll()
        self.members[self.own] = own
        for member in members { self.members[member.node] = member }
        self.gone = Set(gone).subtracting(self.members.keys)
        guests.removeAll { self.members[$0] != nil || self.gone.contains($0) }
        recorded = Set(self.members.keys + guests).sorted()
    }

    /// Somebody whom this node helps to catch up may serve from then on.
    mutating func record(_ node: NodeID) {
        guard members[node] == nil, !guests.contains(node) else { return }
        gone.remove(node)
        guests.append(node)
        recorded = Set(recorded + [node]).sorted()
        known = Set(known + [node]).sorted()
    }

    /// `named` are those whom others have for members, `connected` those that can be spoken to.
    mutating func review(named: [NodeID], connected: [NodeID], now: Instant) {
        known = Set(recorded + named.filter { !gone.contains($0) }).sorted()
        let here = Set(connected)
        var away = SortedTable<NodeID, Instant>()
        for node in known where node != own && !here.contains(node) {
            away[node] = awaySince[node] ?? now
        }
        awaySince = away
    }
}
