package import Ground

/// An event that the shell reports to a ``Membership``, in the order of occurrence.
package enum MembershipEvent: Hashable, Sendable {
    /// ``Membership/nextTick`` has come; an earlier tick is harmless.
    case ticked
    /// The complete list of seed addresses with their names resolved.
    ///
    /// Reported every ``MembershipSettings/resolveInterval``, except when nothing could be
    /// resolved.
    case seedsResolved([PeerAddress])
    /// A dial brought no connection with a hello within ``MembershipSettings/dialTimeout``.
    case dialFailed(PeerAddress)
    /// Hellos were exchanged on a connection; `dialled` is `nil` if the peer dialled.
    case connectionOpened(ConnectionID, dialled: PeerAddress?, Member, Incarnation)
    /// An open connection has closed, with the peer's last reason, or `nil` if it broke.
    ///
    /// Connections closed by the state machine itself need not be reported.
    case connectionClosed(ConnectionID, CloseReason?)
    /// The connection will soon be unable to carry further queries; may be reported several times.
    case connectionNearlyExhausted(ConnectionID)
    /// A message has arrived; reported in the order of the connection.
    case messageReceived(GossipMessage, on: ConnectionID)
    /// The duties that this node accepts have changed.
    case roleChanged(Member.Role)
    /// The node is to leave for good (SIGTERM).
    case leaveRequested
}

/// An effect that a ``Membership`` requests; carried out in the order given.
package enum MembershipEffect: Hashable, Sendable {
    /// Connect and send a hello.
    ///
    /// Ends with ``MembershipEvent/connectionOpened(_:dialled:_:_:)`` or
    /// ``MembershipEvent/dialFailed(_:)``. No address is dialled twice at once.
    case dial(PeerAddress)
    /// Send the reason and close; the state machine has dropped the connection.
    case close(ConnectionID, CloseReason)
    /// Write the message to the connection, after what was written before.
    case send(GossipMessage, on: ConnectionID)
    /// Use this connection for all messages to a member from now on.
    case useConnection(NodeID, ConnectionID)
    /// The last connection with a member has closed.
    case dropConnection(NodeID)
    /// The record of a member, or of this node itself, has changed; `before` is the former one,
    /// `nil` for a new member.
    case memberChanged(MemberRecord, before: MemberRecord?)
    /// A dead or left member was dropped to free a slot.
    case forget(MemberRecord)
    /// Log that a member beyond ``MembershipSettings/membersMax`` was refused.
    case refuseMember(Member)
    /// Stop serving and report why; no effect follows.
    case refuseToServe(ServingRefusal)
    /// The leave is complete: all reachable members know of it except `unacknowledged`; no effect
    /// follows.
    case finishLeaving(unacknowledged: [NodeID])
}

extension MembershipEffect {
    /// The reason why a process may not act as its node.
    package enum ServingRefusal: Hashable, Sendable {
        /// Another live process has this node's id.
        case duplicateIdentity
        /// This node was started more often than its directory records, so the directory is an old
        /// copy.
        case restoredCopy
    }
}

/// A membership message between members (SWIM: Das, Gupta, Motivala, DSN 2002; Lifeguard: Dadgar,
/// Phillips, Currey, 2017).
///
/// Most carry piggybacked member records.
package enum GossipMessage: Hashable, Sendable {
    /// A probe; the receiver replies with an ack that repeats `sequence`.
    case ping(sequence: UInt32, updates: [MemberRecord])
    /// The reply to a ping, direct or relayed for another member.
    case ack(sequence: UInt32, updates: [MemberRecord])
    /// A request to ping `target` and to pass on its reply as an ack.
    case pingRequest(sequence: UInt32, target: NodeID, updates: [MemberRecord])
    /// The timely reply to a ping request whose target did not respond; it proves to the requester
    /// that its own connection works (Lifeguard).
    case nack(sequence: UInt32)
    /// First-hand changes.
    case updates([MemberRecord])
    /// All records that the sender holds; the receiver of a request replies with its own.
    case table([MemberRecord], isRequest: Bool)
}

extension GossipMessage {
    /// The member records that the message carries.
    var records: [MemberRecord] {
        switch self {
        case .ping(_, let records), .ack(_, let records), .pingRequest(_, _, let records),
            .updates(let records), .table(let records, _):
            records
        case .nack: []
        }
    }

    /// True for a reply, which arrives on the connection of its request.
    var isResponse: Bool {
        switch self {
        case .ack, .nack, .table(_, isRequest: false): true
        case .ping, .pingRequest, .updates, .table(_, isRequest: true): false
        }
    }
}
