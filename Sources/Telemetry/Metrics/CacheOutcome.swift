import Synchronization

/// How a request was answered: what latencies and bytes are told apart by.
package enum CacheOutcome: Int, CaseIterable, Sendable {
    /// Fresh, from memory.
    case hit
    /// Fresh, from disk.
    case disk
    /// Another node had it.
    case peer
    /// The origin was asked for all of it.
    case miss
    /// The origin was asked whether what is stored is still good.
    case revalidated
    /// A fetch that another request had caused brought it.
    case collapsed
    /// Stored and no longer fresh, and given all the same.
    case stale
    /// To the origin and back: nothing of it is for a cache.
    case bypassed
    /// The node itself: an error, or what is no image.
    case generated

    /// The value of the label `cache`.
    package var label: String {
        switch self {
        case .hit: "hit"
        case .disk: "disk"
        case .peer: "peer"
        case .miss: "miss"
        case .revalidated: "revalidated"
        case .collapsed: "collapsed"
        case .stale: "stale"
        case .bypassed: "passed"
        case .generated: "none"
        }
    }
}

/// What is measured of each ``CacheOutcome``.
package enum OutcomeMetric: CaseIterable, Sendable {
    /// In nanoseconds.
    case duration
    case bodyBytes
}

/// How long requests took, in buckets whose bounds are the same everywhere.
package enum LatencyBuckets {
    /// Upper bounds in microseconds, inclusive; above the last is one bucket more.
    package static let bounds: [UInt64] = [
        50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
        1_000_000, 2_000_000, 5_000_000, 10_000_000,
    ]
    package static let count = 18

    /// The bucket of so many nanoseconds.
    @inline(__always)
    static func bucket(_ nanoseconds: UInt64) -> Int {
        if nanoseconds <= 50_000 { return 0 }
        var bucket = 1
        while bucket < bounds.count, nanoseconds > bounds[bucket] &* 1_000 { bucket &+= 1 }
        return bucket
    }
}

/// Latencies and bytes of one event loop's answers: only its thread adds, any thread may read.
package final class OutcomeHistograms: Sendable {
    // For each outcome the buckets, then nanoseconds and bytes; a cache line of padding on either
    // side, as the counters have.
    private static let cellsPerOutcome = LatencyBuckets.count + 2
    private static let padding = 8
    private let words = InlineArray<196, Atomic<UInt64>> { _ in Atomic(0) }

    package init() {
        precondition(CacheOutcome.allCases.count * Self.cellsPerOutcome + 2 * Self.padding <= 196)
    }

    /// An answer is given; on the thread of the loop only.
    @inline(__always)
    package func add(_ outcome: CacheOutcome, nanoseconds: Int64, bodyBytes: UInt64) {
        let nanoseconds = UInt64(max(0, nanoseconds))
        let start = Self.padding + outcome.rawValue * Self.cellsPerOutcome
        add(1, to: start + LatencyBuckets.bucket(nanoseconds))
        add(nanoseconds, to: start + LatencyBuckets.count)
        add(bodyBytes, to: start + LatencyBuckets.count + 1)
    }

    @inline(__always)
    private func add(_ amount: UInt64, to cell: Int) {
        let value = words[cell].load(ordering: .relaxed) &+ amount
        words[cell].store(value, ordering: .relaxed)
    }

    fileprivate func load(_ outcome: CacheOutcome, _ place: Int) -> UInt64 {
        words[Self.padding + outcome.rawValue * Self.cellsPerOutcome + place].load(
            ordering: .relaxed)
    }
}

/// Latencies and bytes of all loops at about one moment.
package struct OutcomeSnapshot: Sendable {
    package struct Row: Sendable {
        package let outcome: CacheOutcome
        /// Answers, by bucket of ``LatencyBuckets``; of each alone.
        package let counts: [UInt64]
        package let nanoseconds: UInt64
        package let bodyBytes: UInt64

        package var count: UInt64 { counts.reduce(0, &+) }
    }

    /// One for each outcome, in its order.
    package let rows: [Row]

    package init(_ loops: [OutcomeHistograms]) {
        func sum(_ outcome: CacheOutcome, _ place: Int) -> UInt64 {
            loops.reduce(0) { $0 &+ $1.load(outcome, place) }
        }
        rows = CacheOutcome.allCases.map { outcome in
            Row(
                outcome: outcome,
                counts: (0..<LatencyBuckets.count).map { sum(outcome, $0) },
                nanoseconds: sum(outcome, LatencyBuckets.count),
                bodyBytes: sum(outcome, LatencyBuckets.count + 1))
        }
    }

    package subscript(outcome: CacheOutcome) -> Row { rows[outcome.rawValue] }
}
