package import Ground

/// What an ``InvalidationReplication``, or its log, wants done, in this order, before anything else
/// is served.
package enum InvalidationEffect: Hashable, Sendable {
    /// Make it true in memory at once; `count` is the count of invalidations applied with it. A
    /// record of the count does nothing to entries, and has a count all the same.
    case apply(InvalidationRecord, count: UInt64)
    /// The same of what no other node is told of.
    case applyLocally(Purge, count: UInt64)
    /// Make everything stale at once, since nobody knows when: records up to these positions can no
    /// longer be had, or what was invalidated is not known.
    case applyFloors([StreamPosition], count: UInt64)
    /// Write and sync it; ends with ``ReplicationEvent/synced``, ``ReplicationEvent/writeFailed``
    /// or ``ReplicationEvent/full(_:)``. One is under way at a time.
    case write([LogWrite])
    /// To be dropped where there is no connection.
    case send(InvalidationMessage, to: [NodeID])
    /// This node's own records up to this number are synced here.
    case ownRecordsSynced(upTo: UInt64)
    /// Of this node's own records up to this number no receipt is pending.
    case receiptsSettled(upTo: UInt64)
    /// What only the operator can mend; the node is fenced until he does.
    case reportConflict(VoterSetConsensus.Conflict)
    /// To be published to whoever decides. Always the last: what precedes it has been applied.
    case publishWindow(FenceWindow)
}
