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
