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
