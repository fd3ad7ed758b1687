import Synchronization

/// The counters of one site on one event loop.
///
/// Only the loop's thread adds; any thread may read.
package final class SiteCounters: Sendable {
    /// The counters, with a cache line of padding on either side, so that those of two loops share
    /// none.
    private let words = InlineArray<40, Atomic<UInt64>> { _ in Atomic(0) }
    private static let padding = 8

    /// Creates counters of zero.
    package init() {}

    /// Adds `amount`, which must not be negative; call only on the thread of the loop.
    package func add(_ metric: SiteMetric, _ amount: Int = 1) {
        let cell = Self.padding + metric.cell
        let value = words[cell].load(ordering: .relaxed) &+ UInt64(amount)
        words[cell].store(value, ordering: .relaxed)
    }

    fileprivate func load(cell: Int) -> UInt64 {
        words[Self.padding + cell].load(ordering: .relaxed)
    }
}

/// The values of all metrics of one site at approximately one moment.
package struct SiteSnapshot: Sendable {
    /// The name of the site.
    package let name: String
    private let values: [UInt64]

    /// Sums the counters of all event loops.
    package init(name: String, counters: [SiteCounters]) {
        self.name = name
        values = (0..<SiteMetric.cellsCount).map { cell in
            counters.reduce(0) { $0 &+ $1.load(cell: cell) }
        }
    }

    /// The value of a metric.
    package subscript(metric: SiteMetric) -> UInt64 { values[metric.cell] }
}

/// The metrics of each site.
package enum SiteMetric: Hashable, CaseIterable, Sendable {
    /// The number of responses by cache outcome.
    case requests(CacheOutcome)
    /// The bytes of bodies sent to clients by cache outcome.
    case bodyBytes(CacheOutcome)
    /// The bytes of bodies received from the origin.
    case originBytes

    /// All metrics of a site.
    package static let allCases: [SiteMetric] =
        CacheOutcome.allCases.map { .requests($0) } + CacheOutcome.allCases.map { .bodyBytes($0) }
        + [.originBytes]

    private static let outcomesCount = 9

    /// The index of the metric in ``SiteCounters`` and ``SiteSnapshot``.
    @inline(__always)
    var cell: Int {
        switch self {
        case .requests(let outcome): outcome.rawValue
        case .bodyBytes(let outcome): Self.outcomesCount + outcome.rawValue
        case .originBytes: 2 * Self.outcomesCount
        }
    }

    /// The number of metrics of a site.
    static let cellsCount = 2 * outcomesCount + 1
}
