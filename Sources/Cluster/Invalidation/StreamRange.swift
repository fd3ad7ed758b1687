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
