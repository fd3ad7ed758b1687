package import Ground

/// What an ``InvalidationLog`` wants done, in this order.
package enum InvalidationEffect: Hashable, Sendable {
    /// Make it true in memory at once, before anything else is served; `count` is the count of
    /// invalidations applied with it.
    case apply(InvalidationRecord, count: UInt64)
    /// Make everything stale at once: records up to these positions can no longer be had.
    case applyFloors([StreamPosition], count: UInt64)
    /// Write and sync it; ends with ``InvalidationLog/synced(now:effects:)`` or
    /// ``InvalidationLog/writeFailed(now:effects:)``. One is under way at a time.
    case write([LogWrite])
    /// This node's own records up to this number are synced here.
    case issued(upTo: UInt64)
    /// Tell these members new records of this node.
    case push([InvalidationRecord], to: [NodeID])
    /// Tell these members what is synced here, with whom this node has for members.
    case confirm([StreamPosition], members: [NodeID], to: [NodeID])
    /// Tell this member how far this node has applied, before any question to it.
    case tell([StreamPosition], to: NodeID)
    /// Ask this member for records.
    case ask([StreamRange], of: NodeID)
    /// Of this node's own records up to this number no receipt is pending.
    case settled(upTo: UInt64)
    /// Records up to here need not be kept on disk; the position must be.
    case drop(StreamPosition)
    /// Nothing of this stream need be kept on disk but this position, as a retired one.
    case retire(StreamPosition)
    /// Not even the position of this stream need be kept any longer.
    case forget(ProcessID)
    /// There are two contents under this name, or a record of this process that it did not issue:
    /// fence the node.
    case contradiction(RecordName)
}
