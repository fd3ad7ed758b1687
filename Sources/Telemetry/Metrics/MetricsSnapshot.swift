/// The values of all metrics at approximately one moment: sums over all event loops and the node.
package struct MetricsSnapshot: Sendable {
    private var values: [UInt64]
    /// The sites in the order of the site table.
    package let sites: [SiteSnapshot]
    /// The latencies and bytes by outcome.
    package let outcomes: OutcomeSnapshot
    /// The other members of the cluster, each once.
    package let members: [MemberSnapshot]

    /// Reads all counters.
    ///
    /// Each value is exact, but they are not read at the same instant.
    package init(
        loops: [EventLoopCounters], node: NodeCounters, sites: [SiteSnapshot] = [],
        outcomes: [OutcomeHistograms] = [], members: [MemberSnapshot] = []
    ) {
        self.sites = sites
        self.outcomes = OutcomeSnapshot(outcomes)
        self.members = members
        values = Metric.allCases.map { metric in
            loops.reduce(node.load(metric)) { $0 &+ $1.load(metric) }
        }
    }

    /// Creates a snapshot of `values` alone.
    private init(values: [UInt64]) {
        self.values = values
        (sites, outcomes, members) = ([], Self.noOutcomes, [])
    }

    private static let noOutcomes = OutcomeSnapshot([])

    /// The same values without those by site, outcome and member, to be kept.
    package var ofNode: MetricsSnapshot { MetricsSnapshot(values: values) }

    /// The value of a metric; a gauge whose sum is negative because it was read during a change
    /// counts as 0.
    package subscript(metric: Metric) -> UInt64 {
        let sum = values[metric.rawValue]
        return Int64(bitPattern: sum) < 0 ? 0 : sum
    }

    /// Returns the values of a family of the node by label value; empty for a family whose values
    /// are not single metrics of the node.
    package func counts(of family: MetricFamily) -> [(label: String, count: UInt64)] {
        guard case .node(_, let series) = family.source else { return [] }
        return series.map { ($0.label, self[$0.metric]) }
    }
}

/// The quantities measured for each other member of the cluster.
package enum MemberMetric: CaseIterable, Sendable {
    /// The number of invalidations synced here that the member has not confirmed.
    case lagRecords
}

/// The values of the metrics of one member at approximately one moment.
package struct MemberSnapshot: Sendable {
    /// The id of the member: 32 hexadecimal digits.
    package let name: String
    /// The value of ``MemberMetric/lagRecords``.
    package let lagRecords: UInt64

    /// Creates a snapshot from its parts.
    package init(name: String, lagRecords: UInt64) {
        self.name = name
        self.lagRecords = lagRecords
    }

    /// The value of a metric.
    package subscript(metric: MemberMetric) -> UInt64 {
        switch metric {
        case .lagRecords: lagRecords
        }
    }
}
