/// How far somebody has come in every stream of invalidations that it knows.
///
/// Only ever grows: positions are taken in by the greater count, in any order and any number of
/// times.
package struct PositionVector: Hashable, Sendable {
    /// Streams that are not here stand at 0.
    private var counts: [ProcessID: UInt64] = [:]

    package init(_ positions: [StreamPosition] = []) {
        merge(positions)
    }

    package mutating func merge(_ positions: [StreamPosition]) {
        for position in positions { merge(position) }
    }

    package mutating func merge(_ position: StreamPosition) {
        if !covers(position) { counts[position.process] = position.count }
    }

    /// Nobody names the stream any more.
    package mutating func remove(_ process: ProcessID) {
        counts[process] = nil
    }

    package func count(of process: ProcessID) -> UInt64 { counts[process] ?? 0 }

    package func covers(_ position: StreamPosition) -> Bool {
        position.count <= count(of: position.process)
    }

    package func covers(_ positions: [StreamPosition]) -> Bool {
        positions.allSatisfy(covers)
    }

    /// How many records are here that somebody with `theirs` lacks.
    package func missingCount(in theirs: PositionVector) -> UInt64 {
        counts.reduce(0) { sum, entry in
            let other = theirs.count(of: entry.key)
            return sum &+ (entry.value > other ? entry.value - other : 0)
        }
    }

    /// By process, so that two runs of one seed say the same.
    package var positions: [StreamPosition] { positions { _ in true } }

    func positions(where isWanted: (StreamPosition) -> Bool) -> [StreamPosition] {
        counts.map { StreamPosition(process: $0.key, count: $0.value) }.filter(isWanted)
            .sorted { $0.process < $1.process }
    }

    var isEmpty: Bool { counts.isEmpty }
}
