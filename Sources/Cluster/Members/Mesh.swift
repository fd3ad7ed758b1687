import Ground

/// The connections with the other members, and which of them is the one of its pair.
///
/// Of two connections of one pair the member with the smaller id decides: it uses the later one,
/// and the other side speaks where the decider speaks. The earlier one stays for a while as a
/// spare, because the peer may never have seen the later one open: when the one in use goes, the
/// spare takes its place. Its time runs from when the peer is heard on the one in use; the decider
/// then closes it, and the other side only if the decider has not done so in twice the time. So the
/// two do not close both, in whatever order they see them open. A connection that one side has lost
/// and the other has not noticed is replaced in the same way.
struct Mesh: Sendable {
    struct Connection: Sendable {
        let peer: NodeID
        let process: ProcessID
        /// Nil if the peer dialled.
        let dialled: PeerAddress?
        /// Since when a ping waits for any sign of life.
        var unansweredSince: Instant?
        /// When the peer is to be asked for its table.
        var tableRequestAt: Instant?
        /// The peer has said something on it since it is in use.
        var hasReceived = false
        /// Since when the peer is heard on another connection of the pair, which is used instead.
        var spareSince: Instant?
    }

    private(set) var connections = SortedTable<ConnectionID, Connection>()
    private var current = SortedTable<NodeID, ConnectionID>()
    private let own: NodeID

    init(own: NodeID) {
        self.own = own
    }

    /// Connected members, in the order of their ids.
    var peers: [NodeID] { current.keys }
    /// Beside ``peers``.
    var peerConnections: [ConnectionID] { current.values }

    subscript(id: ConnectionID) -> Connection? { connections[id] }

    func connection(to peer: NodeID) -> ConnectionID? { current[peer] }

    /// The process that a member is connected with.
    func process(of peer: NodeID) -> ProcessID? {
        current[peer].flatMap { connections[$0]?.process }
    }

    // MARK: Opening and closing

    /// What the opening of a connection comes to.
    enum OpenOutcome: Hashable, Sendable {
        /// It is the only one of its pair.
        case first
        /// An earlier one is a spare now; the decider has to say where it speaks.
        case withSpare
        /// These, with an earlier process of the peer, are to be closed.
        case replacingProcess([ConnectionID])
    }

    /// Takes `id` as the connection of its pair.
    mutating func opened(_ id: ConnectionID, _ connection: Connection) -> OpenOutcome {
        let peer = connection.peer
        let earlier = all(with: peer)
        let former = earlier.filter { connections[$0]?.process != connection.process }
        for other in former { connections[other] = nil }
        connections[id] = connection
        use(id, with: peer)
        if !former.isEmpty { return .replacingProcess(former) }
        return earlier.isEmpty ? .first : .withSpare
    }

    /// True if this side closes the spares of the pair.
    func isDecider(for peer: NodeID) -> Bool { own < peer }

    /// Everything that is open with a member, in the order in which it opened.
    func all(with peer: NodeID) -> [ConnectionID] {
        connections.keys.filter { connections[$0]?.peer == peer }
    }

    /// What is open with a member and not in use.
    func spares(with peer: NodeID) -> [ConnectionID] {
        all(with: peer).filter { $0 != current[peer] }
    }

    /// Makes `id` the connection of its pair; what was to be asked on another is asked on it.
    private mutating func use(_ id: ConnectionID, with peer: NodeID) {
        current[peer] = id
        connections[id]?.spareSince = nil
        connections[id]?.hasReceived = false
        for spare in spares(with: peer) {
            guard let at = connections[spare]?.tableRequestAt else { continue }
            connections[spare]?.tableRequestAt = nil
            let own = connections[id]?.tableRequestAt
            connections[id]?.tableRequestAt = own.map { min($0, at) } ?? at
        }
    }

    /// What became of a pair whose connection has gone.
    enum CloseOutcome: Hashable, Sendable {
        /// It was not the one in use, or is not known.
        case none
        /// Another one is used now.
        case replaced(NodeID, ConnectionID)
        case disconnected(NodeID)
    }

    mutating func closed(_ id: ConnectionID) -> CloseOutcome {
        guard let gone = connections[id] else { return .none }
        connections[id] = nil
        guard current[gone.peer] == id else { return .none }
        current[gone.peer] = nil
        guard let spare = all(with: gone.peer).last else { return .disconnected(gone.peer) }
        use(spare, with: gone.peer)
        return .replaced(gone.peer, spare)
    }

    // MARK: Speaking

    /// The peer has said something on it; true if it is now the one of its pair, and was not.
    ///
    /// Where an answer comes follows from where the question was put, and decides nothing.
    mutating func messageReceived(_ id: ConnectionID, isResponse: Bool, at now: Instant) -> Bool {
        guard let connection = connections[id] else { return false }
        if connection.unansweredSince != nil { connections[id]?.unansweredSince = nil }
        let peer = connection.peer
        let isSwitched = !isResponse && !isDecider(for: peer) && current[peer] != id
        if isSwitched { use(id, with: peer) }
        if isSwitched || !connection.hasReceived {
            connections[id]?.hasReceived = true
            if current[peer] == id { startSpareTimers(with: peer, at: now) }
        }
        return isSwitched
    }

    /// The time of those begins that have been set aside.
    private mutating func startSpareTimers(with peer: NodeID, at now: Instant) {
        for spare in spares(with: peer) where connections[spare]?.spareSince == nil {
            connections[spare]?.spareSince = now
        }
    }

    mutating func recordPing(_ id: ConnectionID, at now: Instant) {
        guard connections[id]?.unansweredSince == nil else { return }
        connections[id]?.unansweredSince = now
    }

    mutating func scheduleTableRequest(_ id: ConnectionID, at instant: Instant?) {
        connections[id]?.tableRequestAt = instant
    }

    /// This process stood still for so long until now.
    mutating func processStalled(for lateness: Interval, at now: Instant) {
        connections.updateAll { _, connection in
            connection.unansweredSince = connection.unansweredSince.map {
                min($0 + lateness, now)
            }
            connection.spareSince = connection.spareSince.map { min($0 + lateness, now) }
        }
    }

    // MARK: What is due

    /// The earliest of what waits on connections; nobody is asked for a table before
    /// `nextQuestion`.
    func nextDue(_ settings: Membership.Settings, nextTableRequestAt: Instant) -> Instant? {
        var next: Instant?
        func wait(until instant: Instant?) {
            guard let instant else { return }
            next = next.map { min($0, instant) } ?? instant
        }
        for connection in connections.values {
            wait(until: connection.tableRequestAt.map { max($0, nextTableRequestAt) })
            wait(until: connection.unansweredSince.map { $0 + settings.pingTimeoutMax })
            wait(until: spareEnd(connection, settings))
        }
        return next
    }

    /// When a spare is to be closed; nil for others.
    private func spareEnd(
        _ connection: Connection, _ settings: Membership.Settings
    ) -> Instant? {
        let most = settings.spareLifetimeMax
        return connection.spareSince.map {
            $0 + (isDecider(for: connection.peer) ? most : most + most)
        }
    }

    /// Connections that are to be closed by now.
    func overdue(at now: Instant, _ settings: Membership.Settings)
        -> [(ConnectionID, CloseReason)]
    {
        zip(connections.keys, connections.values).compactMap { id, connection in
            if let since = connection.unansweredSince, since + settings.pingTimeoutMax <= now {
                return (id, .silent)
            }
            guard let end = spareEnd(connection, settings), end <= now else { return nil }
            return (id, .redundant)
        }
    }

    /// The connection whose peer is to be asked for its table first, if that is due.
    func scheduleTableRequest(at now: Instant) -> ConnectionID? {
        var first: (id: ConnectionID, at: Instant)?
        for (id, connection) in zip(connections.keys, connections.values) {
            guard let at = connection.tableRequestAt, at <= now else { continue }
            if first.map({ at < $0.at }) ?? true { first = (id, at) }
        }
        return first?.id
    }
}

/// Names a connection with a peer for as long as this process lives; the shell counts them.
package struct ConnectionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64

    package init(_ number: UInt64) {
        self.number = number
    }

    package static func < (left: ConnectionID, right: ConnectionID) -> Bool {
        left.number < right.number
    }

    package var description: String { "#\(number)" }
}

/// Why a node closes a connection with a peer; it is said to the peer as the last thing, by the
/// code that is its number in ``Goodbye/Code``.
package enum CloseReason: UInt16, Hashable, Sendable, CaseIterable {
    /// The pair has another connection, which stays.
    case redundant = 4
    /// The node has dialled itself.
    case selfDial = 7
    /// A ping on it was not answered for long; another connection may fare better.
    case silent = 8
    /// The peer is believed dead; it is dialled anew.
    case dead = 9
    /// A newer process of the peer's node has taken its place.
    case superseded = 10
    /// An earlier process with the peer's node id answers: the peer must not serve.
    case duplicateIdentity = 3
    /// The cluster has as many members as it may have.
    case clusterFull = 11
    /// The node has left, or refuses to serve.
    case leaving = 1
}
