import Synchronization

/// The counters of one site on one event loop: only the loop's thread adds, any thread may read.
package final class SiteCounters: Sendable {
    /// With a cache line of padding on either side, as those of a loop have.
    private let words = InlineArray<24, Atomic<UInt64>> { _ in Atomic(0) }
    private static let padding = 8

    package init() {}

    /// Adds `amount`, which is not negative; call on the thread of the counters' loop only.
    package func add(_ metric: SiteMetric, _ amount: Int = 1) {
        let cell = Self.padding + metric.rawValue
        let value = words[cell].load(ordering: .relaxed) &+ UInt64(amount)
        words[cell].store(value, ordering: .relaxed)
    }

    func load(_ metric: SiteMetric) -> UInt64 {
        words[Self.padding + metric.rawValue].load(ordering: .relaxed)
    }
}

/// The value of every metric of one site at about one moment.
package struct SiteFigures: Sendable {
    package let name: String
    private let values: [UInt64]

    /// The sums over the counters of all loops.
    package init(name: String, counters: [SiteCounters]) {
        self.name = name
        values = SiteMetric.allCases.map { metric in
            counters.reduce(0) { $0 &+ $1.load(metric) }
        }
    }

    package subscript(metric: SiteMetric) -> UInt64 { values[metric.rawValue] }
}
