import Synchronization

/// The counters of one site on one event loop: only the loop's thread adds, any thread may read.
package final class SiteCounters: Sendable {
    /// With a cache line of padding on either side, as those of a loop have.
    private let words = InlineArray<40, Atomic<UInt64>> { _ in Atomic(0) }
    private static let padding = 8

    package init() {}

    /// Adds `amount`, which is not negative; call on the thread of the counters' loop only.
    package func add(_ metric: SiteMetric, _ amount: Int = 1) {
        let cell = Self.padding + metric.cell
        let value = words[cell].load(ordering: .relaxed) &+ UInt64(amount)
        words[cell].store(value, ordering: .relaxed)
    }

    fileprivate func load(cell: Int) -> UInt64 {
        words[Self.padding + cell].load(ordering: .relaxed)
    }
}

/// The value of every metric of one site at about one moment.
package struct SiteSnapshot: Sendable {
    package let name: String
    private let values: [UInt64]

    /// The sums over the counters of all loops.
    package init(name: String, counters: [SiteCounters]) {
        self.name = name
        values = (0..<SiteMetric.cellsCount).map { cell in
            counters.reduce(0) { $0 &+ $1.load(cell: cell) }
        }
    }

    package subscript(metric: SiteMetric) -> UInt64 { values[metric.cell] }
}

/// Everything that is counted per site.
package enum SiteMetric: Hashable, CaseIterable, Sendable {
    /// Answers by how the cache took part in them.
    case requests(CacheOutcome)
    /// Of bodies given to clients, by the same.
    case bodyBytes(CacheOutcome)
    /// Of bodies that came from the origin.
    case originBytes

    package static let allCases: [SiteMetric] =
        CacheOutcome.allCases.map { .requests($0) } + CacheOutcome.allCases.map { .bodyBytes($0) }
        + [.originBytes]

    private static let outcomesCount = 9

    /// Its place among the counters.
    @inline(__always)
    var cell: Int {
        switch self {
        case .requests(let outcome): outcome.rawValue
        case .bodyBytes(let outcome): Self.outcomesCount + outcome.rawValue
        case .originBytes: 2 * Self.outcomesCount
        }
    }

    static let cellsCount = 2 * outcomesCount + 1
}
