import Ground

/// The connections with the other members, and which of them is the one of its pair.
///
/// Of two connections of one pair the member with the smaller id decides: it takes the later one
/// and closes the earlier. The other side closes nothing, and speaks where the decider speaks; so
/// the two sides never close both, in whatever order they see them open. A connection that one side
/// has lost and the other has not noticed is replaced in the same way.
struct Mesh: Sendable {
    struct Connection: Sendable {
        let peer: NodeID
        let process: ProcessID
        /// Nil if the peer dialled.
        let dialled: PeerAddress?
        /// Since when a ping waits for any sign of life.
        var unansweredSince: Instant?
        /// When the peer is to be asked for its table.
        var questionAt: Instant?
        /// Since when another connection of the pair is used instead.
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

    /// Takes `id` as the connection of its pair; gives back the one to close.
    mutating func opened(_ id: ConnectionID, _ connection: Connection, at now: Instant)
        -> (ConnectionID, CloseReason)?
    {
        let earlier = current[connection.peer]
        connections[id] = connection
        current[connection.peer] = id
        guard let earlier, let other = connections[earlier] else { return nil }
        if other.process != connection.process {
            connections[earlier] = nil
            return (earlier, .superseded)
        }
        if own < connection.peer {
            connections[earlier] = nil
            return (earlier, .redundant)
        }
        connections[earlier]?.spareSince = now
        return nil
    }

    /// What became of a pair whose connection has gone.
    enum Loss: Hashable, Sendable {
        /// It was not the one in use, or is not known.
        case none
        /// Another one is used now.
        case replaced(NodeID, ConnectionID)
        case disconnected(NodeID)
    }

    mutating func closed(_ id: ConnectionID) -> Loss {
        guard let gone = connections[id] else { return .none }
        connections[id] = nil
        guard current[gone.peer] == id else { return .none }
        let spare = connections.keys.last { other in
            connections[other]?.peer == gone.peer && connections[other]?.process == gone.process
        }
        current[gone.peer] = spare
        guard let spare else { return .disconnected(gone.peer) }
        connections[spare]?.spareSince = nil
        return .replaced(gone.peer, spare)
    }

    // MARK: Speaking

    /// The peer has said something on it; true if it is now the one of its pair, and was not.
    mutating func heard(_ id: ConnectionID, at now: Instant) -> Bool {
        guard let connection = connections[id] else { return false }
        if connection.unansweredSince != nil { connections[id]?.unansweredSince = nil }
        guard connection.peer < own, let used = current[connection.peer], used != id else {
            return false
        }
        connections[used]?.spareSince = now
        connections[id]?.spareSince = nil
        current[connection.peer] = id
        return true
    }

    mutating func pinged(_ id: ConnectionID, at now: Instant) {
        guard connections[id]?.unansweredSince == nil else { return }
        connections[id]?.unansweredSince = now
    }

    mutating func question(_ id: ConnectionID, at instant: Instant?) {
        connections[id]?.questionAt = instant
    }

    /// This process stood still for so long until now.
    mutating func stoodStill(for lateness: Interval, at now: Instant) {
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
    func nextDue(_ settings: Membership.Settings, nextQuestion: Instant) -> Instant? {
        var next: Instant?
        func wait(until instant: Instant?) {
            guard let instant else { return }
            next = next.map { min($0, instant) } ?? instant
        }
        for connection in connections.values {
            wait(until: connection.questionAt.map { max($0, nextQuestion) })
            wait(until: connection.unansweredSince.map { $0 + settings.silenceMax })
            wait(until: connection.spareSince.map { $0 + settings.spareMax })
        }
        return next
    }

    /// Connections that are to be closed by now.
    func overdue(at now: Instant, _ settings: Membership.Settings)
        -> [(ConnectionID, CloseReason)]
    {
        zip(connections.keys, connections.values).compactMap { id, connection in
            if let since = connection.unansweredSince, since + settings.silenceMax <= now {
                return (id, .silent)
            }
            if let since = connection.spareSince, since + settings.spareMax <= now {
                return (id, .redundant)
            }
            return nil
        }
    }

    /// The connection whose peer is to be asked for its table first, if that is due.
    func question(at now: Instant) -> ConnectionID? {
        var first: (id: ConnectionID, at: Instant)?
        for (id, connection) in zip(connections.keys, connections.values) {
            guard let at = connection.questionAt, at <= now else { continue }
            if first.map({ at < $0.at }) ?? true { first = (id, at) }
        }
        return first?.id
    }
}
