package import Ground

/// What happens to an ``InvalidationExchange``, beside what has an answer of its own.
package enum ExchangeEvent: Hashable, Sendable {
    /// ``InvalidationExchange/nextTick`` has come; coming earlier does no harm.
    case ticked
    /// A peer says something; in the order of its connection.
    case message(InvalidationMessage, from: NodeID)
    /// What came with a question for an entry; to be told before
    /// ``InvalidationExchange/isBehind(_:)`` is asked and the question is looked at.
    case question(knowledge: [StreamPosition], records: [InvalidationRecord], from: NodeID)
    /// This is now the connection on which this node and the member speak.
    case connected(NodeID, on: ConnectionID)
    /// There is no connection with the member any more.
    case disconnected(NodeID)
    /// All that membership has, this node left out; whoever is missing is away.
    case membersChanged([ExchangeMember])
    /// The last ``ExchangeEffect/write(_:)`` is synced.
    case synced
    /// The last ``ExchangeEffect/write(_:)`` is perhaps not synced.
    case writeFailed
    /// The disk has no room for records up to these positions; see
    /// ``InvalidationLog/giveUp(_:now:effects:)``.
    case full([StreamPosition])
    /// Under what this node may open a cluster from now on, if it follows none.
    case mayForm(Formation.Rule)
    /// The node goes for good; see ``FenceKeeper/hasLeft``.
    case leaveRequested
    /// The operator says that the count is to begin anew with this node, in the place of every
    /// other: a majority is lost, two clusters were opened apart, or records contradict each other.
    case recovers
}

/// A member as membership has it.
package struct ExchangeMember: Hashable, Sendable {
    package var node: NodeID
    /// Its last known run.
    package var process: ProcessID
    package var presence: Presence

    package enum Presence: Hashable, Sendable {
        /// Alive, or suspected not to be.
        case here
        /// Held for dead: it may be cut off, and serve all the same.
        case away
        /// It said that it goes, and serves nobody any more.
        case left
    }

    package init(_ node: NodeID, _ process: ProcessID, _ presence: Presence) {
        self.node = node
        self.process = process
        self.presence = presence
    }
}

/// What an ``InvalidationExchange`` wants done, in this order, before anything else is served.
package enum ExchangeEffect: Hashable, Sendable {
    /// Make it true in memory at once; `count` is the count of invalidations applied with it. A
    /// record of the count does nothing to entries, and has a count all the same.
    case apply(InvalidationRecord, count: UInt64)
    /// Make everything stale at once: records up to these positions can no longer be had.
    case applyFloors([StreamPosition], count: UInt64)
    /// What the log's next checkpoint must keep; it has to be on disk before anything that a later
    /// ``drop(_:)``, ``retire(_:)`` or ``forget(_:)`` names is gone from there.
    case remember(CountedMembers.Memory)
    /// Write and sync it; ends with ``ExchangeEvent/synced`` or ``ExchangeEvent/writeFailed``. One
    /// is under way at a time.
    case write([LogWrite])
    /// Records up to here need not be kept on disk; the position must be.
    case drop(StreamPosition)
    /// Nothing of this stream need be kept on disk but this position, as a retired one.
    case retire(StreamPosition)
    /// Not even the position of this stream need be kept any longer.
    case forget(ProcessID)
    /// To be dropped if there is no connection.
    case send(InvalidationMessage, to: NodeID)
    /// This node's own records up to this number are synced here.
    case issued(upTo: UInt64)
    /// Of this node's own records up to this number no receipt is pending.
    case settled(upTo: UInt64)
    /// What only the operator can mend; the node is fenced until he does.
    case contradiction(CountedMembers.Contradiction)
    /// To be published to whoever decides. Always the last: what precedes it has been applied.
    case window(FenceWindow)
}
