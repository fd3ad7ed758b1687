package import Ground

/// What an ``InvalidationExchange``, or its log, wants done, in this order, before anything else is
/// served.
package enum InvalidationEffect: Hashable, Sendable {
    /// Make it true in memory at once; `count` is the count of invalidations applied with it. A
    /// record of the count does nothing to entries, and has a count all the same.
    case apply(InvalidationRecord, count: UInt64)
    /// The same of what no other node is told of.
    case applyLocally(Purge, count: UInt64)
    /// Make everything stale at once, since nobody knows when: records up to these positions can no
    /// longer be had, or what was invalidated is not known.
    case applyFloors([StreamPosition], count: UInt64)
    /// Write and sync it; ends with ``ExchangeEvent/synced``, ``ExchangeEvent/writeFailed`` or
    /// ``ExchangeEvent/full(_:)``. One is under way at a time.
    case write([LogWrite])
    /// To be dropped where there is no connection.
    case send(InvalidationMessage, to: [NodeID])
    /// This node's own records up to this number are synced here.
    case issued(upTo: UInt64)
    /// Of this node's own records up to this number no receipt is pending.
    case settled(upTo: UInt64)
    /// What only the operator can mend; the node is fenced until he does.
    case contradiction(CountedMembers.Contradiction)
    /// To be published to whoever decides. Always the last: what precedes it has been applied.
    case window(FenceWindow)
}
