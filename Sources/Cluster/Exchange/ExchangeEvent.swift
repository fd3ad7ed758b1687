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
