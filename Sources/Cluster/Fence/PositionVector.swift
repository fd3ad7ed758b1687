/// The position of a node in every stream of invalidations that it knows.
///
/// Counts only grow: merging takes the greater one, so positions can be merged in any order and
/// repeatedly.
package struct PositionVector: Hashable, Sendable {
    /// The counts by stream; a stream that is missing is at 0.
    private var counts: [ProcessID: UInt64] = [:]

    /// Creates a vector of `positions`.
    package init(_ positions: [StreamPosition] = []) {
        merge(positions)
    }

    /// Raises the counts to those of `positions` where these are greater.
    package mutating func merge(_ positions: [StreamPosition]) {
        for position in positions { merge(position) }
    }

    /// Raises the count of one stream if `position` is ahead.
    package mutating func merge(_ position: StreamPosition) {
        if !covers(position) { counts[position.process] = position.count }
    }

    /// Removes a stream that nodes no longer name.
    package mutating func remove(_ process: ProcessID) {
        counts[process] = nil
    }

    /// Returns the count of the stream of `process`, 0 if it is not in the vector.
    package func count(of process: ProcessID) -> UInt64 { counts[process] ?? 0 }

    /// Returns true if this vector has reached `position`.
    package func covers(_ position: StreamPosition) -> Bool {
        position.count <= count(of: position.process)
    }

    /// Returns true if this vector has reached all of `positions`.
    package func covers(_ positions: [StreamPosition]) -> Bool {
        positions.allSatisfy(covers)
    }

    /// Returns how many records this vector includes and `theirs` does not; the greatest number if
    /// there are more, which positions of a member that lies can add up to.
    package func missingCount(in theirs: PositionVector) -> UInt64 {
        counts.reduce(0) { sum, entry in
            let other = theirs.count(of: entry.key)
            let missing = entry.value > other ? entry.value - other : 0
            let (total, overflow) = sum.addingReportingOverflow(missing)
            return overflow ? .max : total
        }
    }

    /// The positions, ascending by process so that simulations are deterministic.
    package var positions: [StreamPosition] { positions { _ in true } }

    func positions(where isWanted: (StreamPosition) -> Bool) -> [StreamPosition] {
        counts.map { StreamPosition(process: $0.key, count: $0.value) }.filter(isWanted)
            .sorted { $0.process < $1.process }
    }

    var isEmpty: Bool { counts.isEmpty }
}
