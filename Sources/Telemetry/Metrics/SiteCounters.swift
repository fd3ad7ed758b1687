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
        add(UInt64(amount), to: metric.cell)
    }

    /// Counts a response that begins, by cache outcome and by status; call only on the thread of
    /// the loop.
    package func addResponse(_ status: UInt16, _ outcome: CacheOutcome) {
        add(1, to: SiteMetric.requests(outcome).cell)
        add(1, to: SiteMetric.responses(StatusClass(status)).cell)
    }

    @inline(__always)
    private func add(_ amount: UInt64, to cell: Int) {
        let cell = Self.padding + cell
        let value = words[cell].load(ordering: .relaxed) &+ amount
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

    private init(name: String, values: [UInt64]) {
        self.name = name
        self.values = values
    }

    /// The value of a metric.
    package subscript(metric: SiteMetric) -> UInt64 { values[metric.cell] }

    /// Returns the sums of two snapshots, under the name of the first.
    package static func + (left: SiteSnapshot, right: SiteSnapshot) -> SiteSnapshot {
        SiteSnapshot(name: left.name, values: zip(left.values, right.values).map(&+))
    }
}

/// The metrics of each site.
package enum SiteMetric: Hashable, CaseIterable, Sendable {
    /// The number of responses by cache outcome.
    case requests(CacheOutcome)
    /// The bytes of bodies sent to clients by cache outcome.
    case bodyBytes(CacheOutcome)
    /// The bytes of bodies received from the origin.
    case originBytes
    /// The number of responses by class of their status.
    case responses(StatusClass)

    /// All metrics of a site.
    package static let allCases: [SiteMetric] =
        CacheOutcome.allCases.map { .requests($0) } + CacheOutcome.allCases.map { .bodyBytes($0) }
        + [.originBytes] + StatusClass.allCases.map { .responses($0) }

    private static let outcomesCount = 9

    /// The index of the metric in ``SiteCounters`` and ``SiteSnapshot``.
    @inline(__always)
    var cell: Int {
        switch self {
        case .requests(let outcome): outcome.rawValue
        case .bodyBytes(let outcome): Self.outcomesCount + outcome.rawValue
        case .originBytes: 2 * Self.outcomesCount
        case .responses(let status): 2 * Self.outcomesCount + 1 + status.rawValue
        }
    }

    /// The number of metrics of a site: all cells of ``SiteCounters`` between its padding.
    static let cellsCount = 2 * outcomesCount + 1 + 5
}

/// The class of a status code (RFC 9110 §15).
package enum StatusClass: Int, CaseIterable, Sendable {
    /// 100 to 199, of which only 101 ends a request.
    case informational
    /// 200 to 299.
    case successful
    /// 300 to 399.
    case redirected
    /// 400 to 499.
    case clientError
    /// 500 to 599.
    case serverError

    /// Creates the class of a status of 100 to 599; any other status counts as 5xx.
    @inline(__always)
    package init(_ status: UInt16) {
        self = StatusClass(rawValue: Int(status / 100) &- 1) ?? .serverError
    }

    /// The label value, such as `2xx`.
    package var label: String { "\(rawValue + 1)xx" }
}
