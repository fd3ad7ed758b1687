/// One row of the table of metrics: a family of series under one Prometheus name.
package struct MetricFamily: Sendable {
    package enum Kind: String, Sendable {
        /// Only grows.
        case counter
        case gauge
        /// Counts by ``LatencyBuckets``, and their sum.
        case histogram
    }

    /// Which values there are, and what tells them apart.
    package enum Source: Sendable {
        /// Of the whole node, one for each value of `label`, which is empty if there is one.
        case node(label: String, [Series<Metric>])
        /// Sums over what other families have one by one, for each value of `label`.
        case sums(label: String, [Sum])
        /// One for each ``CacheOutcome``, told apart by `cache`.
        case outcomes(OutcomeMetric)
        /// For each site, which `site` says, one for each value of `label`, as for the node.
        case sites(label: String, [Series<SiteMetric>])
        /// One for each other member of the cluster, told apart by `member`, its id.
        case members(MemberMetric)
    }

    /// One value, and that of the label; empty if the family has none.
    package struct Series<Value: Sendable>: Sendable {
        package let metric: Value
        package let label: String
    }

    /// What is added up for one value of the label.
    package struct Sum: Sendable {
        package let metrics: [Metric]
        package let label: String
    }

    /// The Prometheus name, unit and `_total` included.
    package let name: String
    package let kind: Kind
    /// What one is: `bytes`, `seconds`, `ratio`, or the noun that is counted.
    package let unit: String
    /// So many of what is counted are one of the unit.
    package let divisor: UInt64
    package let source: Source
    /// One line for the operator, without a full stop.
    package let meaning: String
    /// What to do about a value that looks wrong.
    package let advice: String

    init(
        _ name: String, _ kind: Kind, _ unit: String, divisor: UInt64 = 1, _ source: Source,
        meaning: String, advice: String
    ) {
        self.name = name
        self.kind = kind
        self.unit = unit
        self.divisor = divisor
        self.source = source
        self.meaning = meaning
        self.advice = advice
    }

    /// A family of one value.
    init(
        _ name: String, _ kind: Kind, _ unit: String, divisor: UInt64 = 1, _ metric: Metric,
        meaning: String, advice: String
    ) {
        self.init(
            name, kind, unit, divisor: divisor,
            .node(label: "", [Series(metric: metric, label: "")]), meaning: meaning, advice: advice)
    }

    init(
        _ name: String, _ kind: Kind, _ unit: String, by label: String,
        _ series: [(Metric, String)], meaning: String, advice: String
    ) {
        self.init(
            name, kind, unit,
            .node(label: label, series.map { Series(metric: $0.0, label: $0.1) }),
            meaning: meaning, advice: advice)
    }
}

extension MetricFamily {
    /// The name without `_total`: what OpenMetrics calls the family.
    package var baseName: String {
        kind == .counter && name.hasSuffix("_total") ? String(name.dropLast(6)) : name
    }

    /// The names of its labels, in the order in which they are written; a histogram's buckets have
    /// `le` besides.
    package var labels: [String] {
        switch source {
        case .node(let label, _), .sums(let label, _): label.isEmpty ? [] : [label]
        case .outcomes: ["cache"]
        case .sites(let label, _): label.isEmpty ? ["site"] : ["site", label]
        case .members: ["member"]
        }
    }

    /// The values that a label can have; nil if they come from outside, as names of sites do.
    package func values(of label: String) -> [String]? {
        guard label != "site", label != "member" else { return nil }
        return switch source {
        case .node(_, let series): series.map(\.label)
        case .sums(_, let sums): sums.map(\.label)
        case .outcomes: CacheOutcome.allCases.map(\.label)
        case .sites(_, let series): series.map(\.label)
        case .members: []
        }
    }

    /// Every family once; every ``Metric``, ``SiteMetric``, ``OutcomeMetric`` and ``MemberMetric``
    /// is of exactly one, sums apart.
    package static let table: [MetricFamily] =
        requestFamilies + siteFamilies + connectionFamilies + originFamilies + memoryFamilies
        + pressureFamilies + diskFamilies + clusterFamilies + peerFamilies + invalidationFamilies
        + errorFamilies
}
