package import Ground

/// The events of a ``FenceCoordinator``, delivered in the order in which they occurred.
package enum FenceEvent: Hashable, Sendable {
    /// ``FenceCoordinator/nextTick`` has come; an early tick is harmless.
    case ticked
    /// The connected members have changed; carries all of them.
    case reachableMembersChanged([NodeID])
    /// A member sent a response or a confirmation; in the order of its connection.
    case responseReceived(FenceResponse, NodeID)
    /// Everything up to these positions is applied: no later decision misses it.
    case positionsApplied([StreamPosition])
    /// Everything up to these positions is synced here, and was applied before.
    case positionsSynced([StreamPosition])
    /// The log holds only the last position of the stream; also sent at a start.
    case streamRetired(StreamPosition)
    /// The log has dropped the stream entirely.
    case streamForgotten(ProcessID)
    /// A consensus record was read: another node's, or this node's own once it is synced.
    case consensusRecordRead(ConsensusRecord)
    /// The node is to open a cluster, as ``ClusterFormation`` or the operator decides.
    ///
    /// Without effect on a node that follows a voter set, or whose directory may hold what was
    /// served under one, unless by order of the operator. May be repeated.
    case bootstrapRequested(byOperator: Bool = false)
    /// The log holds one record number with two contents.
    case recordConflictFound(StreamPosition)
    /// Membership reports which members have left on their own; carries all of them.
    case membersLeft([NodeID])
    /// The node leaves permanently and is to be removed from the voter set.
    case leaveRequested
    /// The operator orders a new lineage that begins with this node and replaces all others.
    case recoveryRequested
}

/// A member's response to a round, or its unsolicited report.
package struct FenceResponse: Hashable, Sendable {
    /// The round number of the request; `nil` for a confirmation.
    package var round: UInt64?
    /// The positions that the member has synced; a node that has applied them lacks nothing of it.
    package var synced: [StreamPosition]
    /// The member's view, made together with ``synced`` after the request was read.
    package var view: VoterSetView

    /// Creates a response from its parts.
    package init(round: UInt64?, synced: [StreamPosition], view: VoterSetView) {
        self.round = round
        self.synced = synced
        self.view = view
    }
}

/// The actions that a ``FenceCoordinator`` requests.
package struct FenceOutput: Hashable, Sendable {
    /// A round: a request to members for their synced positions and views.
    ///
    /// The frames may be delayed; the round is timed from before they are sent.
    package struct RoundRequest: Hashable, Sendable {
        /// The members that the request is sent to.
        package var members: [NodeID]
        /// The round number to send.
        package var round: UInt64
    }

    /// The rounds to send.
    package var roundRequests: [RoundRequest] = []
    /// The records to append to this process's stream.
    ///
    /// Each is pushed to peers only after it is synced, which
    /// ``FenceEvent/consensusRecordRead(_:)`` reports.
    package var records: [ConsensusRecord] = []

    /// Creates an empty output.
    package init() {}
}
