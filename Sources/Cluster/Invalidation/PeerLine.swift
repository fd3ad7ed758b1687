/// What this node and a member that it is connected with know of each other's knowledge.
struct PeerProgress: Sendable {
    /// The connection on which they speak.
    let connection: ConnectionID
    /// What was applied up to this count was told, or need not be; nil if nothing was.
    var sentCount: UInt64?
    /// This node's own records up to this number were pushed, ahead of whatever is asked next.
    var pushedNumber: UInt64 = 0
    /// What the member says to have, without gaps.
    var syncedCounts = SortedTable<ProcessID, UInt64>()
}
