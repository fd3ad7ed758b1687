package import Ground

/// What two nodes say to each other about invalidations, beside what goes with a question for an
/// entry.
///
/// Those of one connection are taken in the order in which they were sent.
package enum InvalidationMessage: Hashable, Sendable {
    /// Records that the sender has synced.
    case push([InvalidationRecord])
    /// What the sender has synced since it last said so, whom it has for members, and what it knows
    /// of the count when it says so.
    case confirmation([StreamPosition], members: [NodeID], view: VoterSetView)
    /// How far the sender has applied: it comes before the questions that need it, where it is too
    /// much for one of them.
    case appliedPositions([StreamPosition])
    /// Asks for records; ends with ``repair(_:)``.
    case repairRequest([StreamRange])
    /// An answer to ``ask(_:)``.
    case repairResponse(RepairResponse)
    /// Asks for everything that the receiver has synced; ends with an ``answer(_:retired:)`` that
    /// names the round, or with ``unchanged(round:digest:view:)`` if the digest is the receiver's
    /// too.
    case roundRequest(UInt64, digest: UInt64)
    /// What the sender has synced and the count that it follows are what the digest in the question
    /// stands for; of the view all but the standing is said.
    case roundUnchanged(round: UInt64, digest: UInt64, view: VoterSetView)
    /// What the sender has synced and knows of the count, both of one moment; with the last numbers
    /// of the streams that it has retired.
    case roundResponse(FenceResponse, retired: [StreamPosition])
}

/// Consecutive records of one stream.
package struct StreamRange: Hashable, Sendable {
    package var process: ProcessID
    /// From 1.
    package var numbers: ClosedRange<UInt64>

    package init(process: ProcessID, numbers: ClosedRange<UInt64>) {
        precondition(numbers.lowerBound > 0, "a range from 0")
        self.process = process
        self.numbers = numbers
    }
}

/// What a node must have before it serves: after a start, and whenever it was fenced, for streams
/// may have been retired without it.
package struct CatchUpTarget: Hashable, Sendable {
    /// What the one who was asked has.
    package var positions: [StreamPosition]
    /// What it has had, of streams whose records it does not hold and tells nobody else of.
    package var retired: [StreamPosition]

    package init(positions: [StreamPosition] = [], retired: [StreamPosition] = []) {
        self.positions = positions
        self.retired = retired
    }
}

/// What a node has of what it was asked for.
package struct RepairResponse: Hashable, Sendable {
    package var records: [InvalidationRecord]
    /// Records up to here are no longer held, and the asker lacks some of them.
    package var floors: [StreamPosition]
    /// What was looked for: records in it that are not here, and not below a floor, are not held.
    package var covered: [StreamRange]

    package init(
        records: [InvalidationRecord] = [], floors: [StreamPosition] = [],
        covered: [StreamRange] = []
    ) {
        self.records = records
        self.floors = floors
        self.covered = covered
    }
}
