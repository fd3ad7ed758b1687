package import Ground

/// The messages about invalidations between two nodes, other than what accompanies queries.
///
/// The messages of one connection are processed in the order in which they were sent.
package enum InvalidationMessage: Hashable, Sendable {
    /// Records that the sender has synced.
    case push([InvalidationRecord])
    /// The positions that the sender has synced since its last confirmation, with its members and
    /// its view of the voter set at the time of sending.
    case confirmation([StreamPosition], members: [NodeID], view: VoterSetView)
    /// The positions that the sender has applied.
    ///
    /// Sent ahead of the queries that depend on it when it does not fit in a query.
    case appliedPositions([StreamPosition])
    /// A request for records; the reply is ``repairResponse(_:)``.
    case repairRequest([StreamRange])
    /// The reply to ``repairRequest(_:)``.
    case repairResponse(RepairResponse)
    /// A request for everything that the receiver has synced.
    ///
    /// The reply, which names the round, is ``roundResponse(_:retired:)``, or
    /// ``roundUnchanged(round:digest:view:)`` if the receiver has the same digest.
    case roundRequest(UInt64, digest: UInt64)
    /// The sender's positions and voter set match the digest of the request.
    ///
    /// The view is sent without the configuration.
    case roundUnchanged(round: UInt64, digest: UInt64, view: VoterSetView)
    /// The sender's synced positions and its view, both of one moment, with the last positions of
    /// the streams that it has retired.
    case roundResponse(FenceResponse, retired: [StreamPosition])
}

/// A range of consecutive records of one stream.
package struct StreamRange: Hashable, Sendable {
    /// The process that names the stream.
    package var process: ProcessID
    /// The record numbers, from 1.
    package var numbers: ClosedRange<UInt64>

    /// Creates a range from its parts; `numbers` must not include 0.
    package init(process: ProcessID, numbers: ClosedRange<UInt64>) {
        precondition(numbers.lowerBound > 0, "a range from 0")
        self.process = process
        self.numbers = numbers
    }
}

/// The positions that a node must reach before it serves.
///
/// Needed after a start and whenever the node was fenced, because streams may have been retired
/// meanwhile.
package struct CatchUpTarget: Hashable, Sendable {
    /// The positions that the other node has.
    package var positions: [StreamPosition]
    /// The last positions of streams that the other node has applied and retired, and sends to no
    /// other.
    package var retired: [StreamPosition]

    /// Creates a target from its parts.
    package init(positions: [StreamPosition] = [], retired: [StreamPosition] = []) {
        self.positions = positions
        self.retired = retired
    }
}

/// The records that a node has of those requested.
package struct RepairResponse: Hashable, Sendable {
    /// The records.
    package var records: [InvalidationRecord]
    /// The positions up to which records are no longer held, where the requester lacks some of
    /// them.
    package var floors: [StreamPosition]
    /// The ranges searched; records in them that are neither sent nor below a floor are not held.
    package var covered: [StreamRange]

    /// Creates a response from its parts.
    package init(
        records: [InvalidationRecord] = [], floors: [StreamPosition] = [],
        covered: [StreamRange] = []
    ) {
        self.records = records
        self.floors = floors
        self.covered = covered
    }
}
