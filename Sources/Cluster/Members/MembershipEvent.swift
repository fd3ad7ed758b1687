package import Ground

/// What happens to a ``Membership``; the shell tells it in the order in which it happened.
package enum MembershipEvent: Hashable, Sendable {
    /// ``Membership/nextTick`` has come; coming earlier does no harm.
    case ticked
    /// The list of seeds with its names resolved, all of it; told every
    /// ``Membership/Settings/resolveInterval`` for ever. When nothing could be resolved the shell
    /// says nothing.
    case seedsResolved([PeerAddress])
    /// A dial did not become a connection with a hello within ``Membership/Settings/dialPatience``.
    case dialFailed(PeerAddress)
    /// Hellos were exchanged on a connection; `dialled` is nil if the peer dialled.
    case connectionOpened(ConnectionID, dialled: PeerAddress?, Member, Incarnation)
    /// An opened connection is gone; with what the peer said last, nil if it broke. What the
    /// machine closed itself need not be told.
    case connectionClosed(ConnectionID, CloseReason?)
    /// Before long no question can be put on it any more; may be told several times.
    case connectionNearlyExhausted(ConnectionID)
    /// In the order of the connection.
    case messageReceived(GossipMessage, on: ConnectionID)
    /// What this node may be asked for has changed.
    case roleChanged(Member.Role)
    /// The node is to leave for good (SIGTERM).
    case leaveRequested
}

/// What a ``Membership`` wants done, in this order.
package enum MembershipEffect: Hashable, Sendable {
    /// Connect and say hello; ends with ``MembershipEvent/connectionOpened(_:dialled:_:_:)`` or
    /// ``MembershipEvent/dialFailed(_:)``. No address is dialled twice at once.
    case dial(PeerAddress)
    /// Say why and close; the machine has forgotten the connection.
    case close(ConnectionID, CloseReason)
    /// Write it to the connection, behind what was written before.
    case send(GossipMessage, on: ConnectionID)
    /// This is now the connection with a member, for everything that members say to each other.
    case useConnection(NodeID, ConnectionID)
    /// There is no connection with a member any more.
    case dropConnection(NodeID)
    /// Something else is believed of a member, this node itself included; `before` is what was
    /// believed until now, nil for a member that was not known.
    case memberChanged(MemberRecord, before: MemberRecord?)
    /// A member that was gone is not remembered any longer, for want of room.
    case forget(MemberRecord)
    /// Log it: one more member than ``Membership/Settings/membersMax`` has come.
    case refuseMember(Member)
    /// Stop serving and say why. Nothing follows.
    case refuseToServe(ServingRefusal)
    /// Everybody reachable knows that this node goes, `untold` apart. Nothing follows.
    case finishLeaving(unacknowledged: [NodeID])
}

extension MembershipEffect {
    /// Why a process is not the node that it takes itself for.
    package enum ServingRefusal: Hashable, Sendable {
        /// Another live process has this node's id.
        case duplicateIdentity
        /// This node has been started more often than its directory knows, which is a copy then of
        /// what it was.
        case restoredCopy
    }
}
