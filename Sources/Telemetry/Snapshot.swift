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
