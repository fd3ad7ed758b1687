import Ground

/// The connections with the other members; one per pair is in use.
///
/// Of two connections of one pair the member with the smaller id decides: it uses the later one,
/// and the other side sends where the decider sends. The earlier one stays for a while as a spare,
/// because the peer may never have seen the later one open: when the one in use closes, the spare
/// replaces it. The spare's lifetime starts when the peer sends on the one in use. The decider then
/// closes the spare; the other side does so only after twice the time. So the two sides do not
/// close both, in whatever order they see them open. A connection that one side has lost and the
/// other has not noticed is replaced in the same way.
struct Mesh: Sendable {
    /// An open connection with a member.
    struct Connection: Sendable {
        let peer: NodeID
        let process: ProcessID
        /// The address that this node dialled; `nil` if the peer dialled.
        let dialled: PeerAddress?
        /// When the first unanswered ping was sent; `nil` once anything has arrived since.
        var unansweredSince: Instant?
        /// When to request the peer's table.
        var tableRequestAt: Instant?
        /// True if the peer has sent something on it since it is in use.
        var hasReceived = false
        /// When the peer was first received on another connection of the pair, which is in use
        /// instead.
        var spareSince: Instant?
    }

    private(set) var connections = SortedTable<ConnectionID, Connection>()
    /// The connection in use with each member.
    private var current = SortedTable<NodeID, ConnectionID>()
    private let own: NodeID

    init(own: NodeID) {
        self.own = own
    }

    /// The connected members, in the order of their ids.
    var peers: [NodeID] { current.keys }
    /// The connections in use, parallel to ``peers``.
    var peerConnections: [ConnectionID] { current.values }

    subscript(id: ConnectionID) -> Connection? { connections[id] }

    /// Returns the connection in use with a member; `nil` if there is none.
    func connection(to peer: NodeID) -> ConnectionID? { current[peer] }

    /// Returns true if there is a connection with this process of the member.
    func isConnected(with member: Member) -> Bool {
        current[member.id].flatMap { connections[$0]?.process } == member.process
    }

    // MARK: Opening and closing

    /// The outcome of a new connection.
    enum OpenOutcome: Hashable, Sendable {
        /// The connection is the only one of its pair.
        case first
        /// An earlier connection is a spare now; the decider has to show which one it uses.
        case withSpare
        /// Connections with an earlier process of the peer, to be closed.
        case replacingProcess([ConnectionID])
    }

    /// Adds `id`, uses it for its pair, and drops connections with another process of the peer.
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

    /// Returns true if this side decides which connection of the pair is used.
    func isDecider(for peer: NodeID) -> Bool { own < peer }

    /// Returns all connections with a member, in the order in which they opened.
    func all(with peer: NodeID) -> [ConnectionID] {
        connections.keys.filter { connections[$0]?.peer == peer }
    }

    /// Returns the connections with a member that are not in use.
    func spares(with peer: NodeID) -> [ConnectionID] {
        all(with: peer).filter { $0 != current[peer] }
    }

    /// Uses `id` for its pair and moves pending table requests to it.
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

    /// The outcome of a closed connection for its pair.
    enum CloseOutcome: Hashable, Sendable {
        /// The connection was not in use, or is not known.
        case none
        /// Another connection is in use now.
        case replaced(NodeID, ConnectionID)
        /// No connection with the member is left.
        case disconnected(NodeID)
    }

    /// Removes a connection; if it was in use, the latest spare is used instead.
    mutating func closed(_ id: ConnectionID) -> CloseOutcome {
        guard let gone = connections[id] else { return .none }
        connections[id] = nil
        guard current[gone.peer] == id else { return .none }
        current[gone.peer] = nil
        guard let spare = all(with: gone.peer).last else { return .disconnected(gone.peer) }
        use(spare, with: gone.peer)
        return .replaced(gone.peer, spare)
    }

    // MARK: Receiving and sending

    /// Records that a message has arrived on the connection, which counts as an answer to its
    /// pings.
    ///
    /// The side that does not decide uses the connection from now on if the message is no reply: a
    /// reply arrives where its request was sent.
    ///
    /// - Returns: True if this connection is in use from now on, and was not before.
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

    /// Starts the lifetime of the spares with `peer` that have not started yet.
    private mutating func startSpareTimers(with peer: NodeID, at now: Instant) {
        for spare in spares(with: peer) where connections[spare]?.spareSince == nil {
            connections[spare]?.spareSince = now
        }
    }

    /// Records when a ping was sent, if none is outstanding.
    mutating func recordPing(_ id: ConnectionID, at now: Instant) {
        guard connections[id]?.unansweredSince == nil else { return }
        connections[id]?.unansweredSince = now
    }

    /// Sets when to request the peer's table; `nil` cancels.
    mutating func scheduleTableRequest(_ id: ConnectionID, at instant: Instant?) {
        connections[id]?.tableRequestAt = instant
    }

    /// Extends all time-outs by `lateness`, for which this process stood still until `now`.
    mutating func processStalled(for lateness: Interval, at now: Instant) {
        connections.updateAll { _, connection in
            connection.unansweredSince = connection.unansweredSince.map {
                min($0 + lateness, now)
            }
            connection.spareSince = connection.spareSince.map { min($0 + lateness, now) }
        }
    }

    // MARK: Due times

    /// Returns the earliest due time of all connections, `nil` if nothing is due; no table is
    /// requested before `nextTableRequestAt`.
    func nextDue(_ settings: MembershipSettings, nextTableRequestAt: Instant) -> Instant? {
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

    /// Returns when a spare is to be closed; `nil` for a connection in use.
    private func spareEnd(
        _ connection: Connection, _ settings: MembershipSettings
    ) -> Instant? {
        let most = settings.spareLifetimeMax
        return connection.spareSince.map {
            $0 + (isDecider(for: connection.peer) ? most : most + most)
        }
    }

    /// Returns the connections that are to be closed by now, with the reasons.
    func overdue(at now: Instant, _ settings: MembershipSettings)
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

    /// Returns the connection whose table request is due first; `nil` if none is due yet.
    func dueTableRequest(at now: Instant) -> ConnectionID? {
        var first: (id: ConnectionID, at: Instant)?
        for (id, connection) in zip(connections.keys, connections.values) {
            guard let at = connection.tableRequestAt, at <= now else { continue }
            if first.map({ at < $0.at }) ?? true { first = (id, at) }
        }
        return first?.id
    }
}

/// The number of a connection with a peer, unique within this process; assigned by the shell.
package struct ConnectionID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The number, counted by the shell.
    package let number: UInt64

    /// Creates an id from its number.
    package init(_ number: UInt64) {
        self.number = number
    }

    /// Orders connections by number.
    package static func < (left: ConnectionID, right: ConnectionID) -> Bool {
        left.number < right.number
    }

    /// The number after a `#`.
    package var description: String { "#\(number)" }
}

/// The reason for which a node closes a connection with a peer.
///
/// The raw value is the code of the ``Goodbye`` that is sent last.
package enum CloseReason: UInt16, Hashable, Sendable, CaseIterable {
    /// The pair has another connection, which stays.
    case redundant = 4
    /// The node has dialled itself.
    case selfDial = 7
    /// A ping went unanswered for too long; another connection may work better.
    case silent = 8
    /// The peer is believed dead; it is dialled again.
    case dead = 9
    /// A newer process of the peer's node has replaced it.
    case superseded = 10
    /// An earlier process with the peer's node id responds: the peer must not serve.
    case duplicateIdentity = 3
    /// The cluster has the maximum number of members.
    case clusterFull = 11
    /// The node has left, or refuses to serve.
    case leaving = 1
}
