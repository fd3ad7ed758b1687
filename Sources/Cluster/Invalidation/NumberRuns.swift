import Ground

/// A set of numbers from 1, kept as its runs: whole streams cost one run, and each gap one more.
struct NumberRangeSet: Hashable, Sendable {
    /// Ascending; between two there is at least one number that is missing.
    private(set) var runs: [ClosedRange<UInt64>] = []

    /// The last number before the first gap; 0 if 1 is missing.
    var prefix: UInt64 {
        guard let first = runs.first, first.lowerBound == 1 else { return 0 }
        return first.upperBound
    }

    /// The greatest; 0 if there is none.
    var last: UInt64 { runs.last?.upperBound ?? 0 }

    func contains(_ number: UInt64) -> Bool {
        let place = runs.partitionPoint { $0.upperBound < number }
        return place < runs.count && runs[place].contains(number)
    }

    mutating func insert(_ number: UInt64) {
        insert(number...number)
    }

    /// Adds all of `range`, which begins at 1 or later.
    mutating func insert(_ range: ClosedRange<UInt64>) {
        precondition(range.lowerBound > 0, "number 0")
        // Those that touch the range, or overlap it, become one with it.
        let first = runs.partitionPoint { $0.upperBound < range.lowerBound - 1 }
        let end = runs.partitionPoint { $0.lowerBound - 1 <= range.upperBound }
        guard first < end else {
            runs.insert(range, at: first)
            return
        }
        let lower = min(runs[first].lowerBound, range.lowerBound)
        let upper = max(runs[end - 1].upperBound, range.upperBound)
        runs[first] = lower...upper
        runs.removeSubrange((first + 1)..<end)
    }

    /// The first `countMax` ranges of numbers up to `limit` that are missing.
    func gaps(upTo limit: UInt64, countMax: Int) -> [ClosedRange<UInt64>] {
        var gaps: [ClosedRange<UInt64>] = []
        var next: UInt64 = 1
        for run in runs {
            guard gaps.count < countMax, next <= limit else { return gaps }
            if next < run.lowerBound { gaps.append(next...min(run.lowerBound - 1, limit)) }
            guard run.upperBound < .max else { return gaps }
            next = run.upperBound + 1
        }
        if gaps.count < countMax, next <= limit { gaps.append(next...limit) }
        return gaps
    }
}
