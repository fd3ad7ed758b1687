/// The value of every metric at about one moment: the sum over all loops and the node.
package struct MetricsSnapshot: Sendable {
    private var values: [UInt64]
    /// In the order of the table of sites.
    package let sites: [SiteSnapshot]
    package let outcomes: OutcomeSnapshot
    /// The other members of the cluster, each once.
    package let members: [MemberSnapshot]

    /// Reads all counters; each one is exact, together they are not of one instant.
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

    /// The sum; a gauge read between its two ends may be one below nothing, and counts as 0 then.
    package subscript(metric: Metric) -> UInt64 {
        let sum = values[metric.rawValue]
        return Int64(bitPattern: sum) < 0 ? 0 : sum
    }
}

/// What is measured of each other member of the cluster.
package enum MemberMetric: CaseIterable, Sendable {
    /// Invalidations that are synced here and that it has not confirmed.
    case lagRecords
}

/// The value of every metric of one member at about one moment.
package struct MemberSnapshot: Sendable {
    /// Its id: 32 hexadecimal digits.
    package let name: String
    package let lagRecords: UInt64

    package init(name: String, lagRecords: UInt64) {
        self.name = name
        self.lagRecords = lagRecords
    }

    package subscript(metric: MemberMetric) -> UInt64 {
        switch metric {
        case .lagRecords: lagRecords
        }
    }
}
