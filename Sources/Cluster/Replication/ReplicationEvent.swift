package import Ground

/// What happens to an ``InvalidationReplication``, beside what has an answer of its own.
package enum ReplicationEvent: Hashable, Sendable {
    /// ``InvalidationReplication/nextTick`` has come; coming earlier does no harm.
    case ticked
    /// A peer says something; in the order of its connection.
    case messageReceived(InvalidationMessage, from: NodeID)
    /// What came with a question for an entry; to be told before
    /// ``InvalidationReplication/isBehind(_:)`` is asked and the question is looked at.
    case requestInvalidationsReceived(
        appliedPositions: [StreamPosition], records: [InvalidationRecord], from: NodeID)
    /// This is now the connection on which this node and the member speak.
    case connected(NodeID, on: ConnectionID)
    /// There is no connection with the member any more.
    case disconnected(NodeID)
    /// All that membership has, this node left out; whoever is missing is away.
    case membersChanged([ReplicationMember])
    /// The last ``InvalidationEffect/write(_:)`` is synced.
    case synced
    /// The last ``InvalidationEffect/write(_:)`` is perhaps not synced.
    case writeFailed
    /// The disk has no room for the last ``InvalidationEffect/write(_:)`` unless records up to
    /// these positions go; see ``InvalidationLog/giveUp(_:now:effects:)``.
    case diskFull([StreamPosition])
    /// Something was invalidated that no other node is told of.
    case purgedLocally(Purge)
    /// Under what this node may open a cluster from now on, if it follows none.
    case formationRuleChanged(ClusterFormation.Rule)
    /// The node goes for good; see ``FenceCoordinator/hasLeft``.
    case leaveRequested
    /// The operator says that the count is to begin anew with this node, in the place of every
    /// other: a majority is lost, two clusters were opened apart, or records contradict each other.
    case recoveryRequested
}

/// A member as membership has it.
package struct ReplicationMember: Hashable, Sendable {
    package var node: NodeID
    /// Its last known run.
    package var process: ProcessID
    package var presence: Presence

    package enum Presence: Hashable, Sendable {
        /// Alive, or suspected not to be.
        case live
        /// Held for dead: it may be cut off, and serve all the same.
        case dead
        /// It said that it goes, and serves nobody any more.
        case left
    }

    package init(_ node: NodeID, _ process: ProcessID, _ presence: Presence) {
        self.node = node
        self.process = process
        self.presence = presence
    }
}

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
