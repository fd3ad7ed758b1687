/// Why a node closes a connection with a peer; it is said to the peer as the last thing.
package enum CloseReason: UInt8, Hashable, Sendable, CaseIterable {
    /// The pair has another connection, which stays.
    case redundant = 1
    /// The node has dialled itself.
    case selfDial = 2
    /// A ping on it was not answered for long; another connection may fare better.
    case silent = 3
    /// The peer is believed dead; it is dialled anew.
    case dead = 4
    /// A newer process of the peer's node has taken its place.
    case superseded = 5
    /// An earlier process with the peer's node id answers: the peer must not serve.
    case duplicateIdentity = 6
    /// The cluster has as many members as it may have.
    case clusterFull = 7
    /// The node has left, or refuses to serve.
    case leaving = 8
}
