package import Ground

/// The events of an ``InvalidationReplication``, other than calls that return a result.
package enum ReplicationEvent: Hashable, Sendable {
    /// ``InvalidationReplication/nextTick`` has come; an early tick is harmless.
    case ticked
    /// A peer sent a message; in the order of its connection.
    case messageReceived(InvalidationMessage, from: NodeID)
    /// A peer's query carried invalidations.
    ///
    /// Must be delivered before ``InvalidationReplication/isBehind(_:)`` is read and the query is
    /// processed.
    case requestInvalidationsReceived(
        appliedPositions: [StreamPosition], records: [InvalidationRecord], from: NodeID)
    /// This node now uses the connection for messages with the member.
    case connected(NodeID, on: ConnectionID)
    /// The last connection with the member has closed.
    case disconnected(NodeID)
    /// The known members have changed; carries all but this node, and a missing one is away.
    case membersChanged([ReplicationMember])
    /// The last ``InvalidationEffect/write(_:)`` is synced.
    case synced
    /// The last ``InvalidationEffect/write(_:)`` failed and may or may not be synced.
    case writeFailed
    /// The disk has no space for the last ``InvalidationEffect/write(_:)`` unless records up to
    /// these positions are dropped.
    ///
    /// See ``InvalidationLog/dropForSpace(_:now:effects:)``.
    case diskFull([StreamPosition])
    /// An invalidation was made that is not sent to other nodes.
    case purgedLocally(Purge)
    /// The condition under which this node may open a cluster has changed.
    case formationRuleChanged(ClusterFormation.Rule)
    /// The node leaves permanently; see ``FenceCoordinator/hasLeft``.
    case leaveRequested
    /// The operator orders a new lineage that begins with this node and replaces all others.
    ///
    /// Needed when a majority is lost, two clusters were opened separately, or records conflict.
    case recoveryRequested
}

/// A member as reported by membership.
package struct ReplicationMember: Hashable, Sendable {
    /// The member's id.
    package var node: NodeID
    /// The id of its last known process.
    package var process: ProcessID
    /// The member's state.
    package var presence: Presence

    /// The state of a member.
    package enum Presence: Hashable, Sendable {
        /// A member that is alive or suspected.
        case live
        /// A member considered dead; it may be partitioned and still serve.
        case dead
        /// A member that announced its departure and no longer serves.
        case left
    }

    /// Creates a member from its parts.
    package init(_ node: NodeID, _ process: ProcessID, _ presence: Presence) {
        self.node = node
        self.process = process
        self.presence = presence
    }
}

/// The effects that an ``InvalidationReplication`` requests, to be carried out in order before
/// anything else is served.
package enum InvalidationEffect: Hashable, Sendable {
    /// Applies the record in memory at once; `count` is the count of invalidations applied with it.
    ///
    /// A consensus record affects no entries but has a count, too.
    case apply(InvalidationRecord, count: UInt64)
    /// Applies an invalidation in memory that is not sent to other nodes.
    case applyLocally(Purge, count: UInt64)
    /// Marks everything stale at once.
    ///
    /// Records up to the positions are no longer available, or the invalidated entries are unknown.
    case applyFloors([StreamPosition], count: UInt64)
    /// Writes and syncs the batch; only one is under way at a time.
    ///
    /// It ends with ``ReplicationEvent/synced``, ``ReplicationEvent/writeFailed`` or
    /// ``ReplicationEvent/diskFull(_:)``.
    case write([LogWrite])
    /// Sends the message to the nodes that are connected.
    case send(InvalidationMessage, to: [NodeID])
    /// Reports that this node's own records up to this number are synced here.
    case ownRecordsSynced(upTo: UInt64)
    /// Reports that no receipt of this node's own records up to this number is pending.
    case receiptsSettled(upTo: UInt64)
    /// Reports a conflict that only the operator can resolve; the node is fenced until then.
    case reportConflict(VoterSetConsensus.Conflict)
    /// Publishes the window to the event loops; always the last effect, after all have been
    /// applied.
    case publishWindow(FenceWindow)
}
