/// A family of metrics: the series under one Prometheus name; ``MetricTable`` has all.
package struct MetricFamily: Sendable {
    /// The Prometheus type of a family.
    package enum Kind: String, Sendable {
        /// A value that never decreases.
        case counter
        /// A value that may decrease.
        case gauge
        /// Counts per bucket of ``LatencyBuckets``, and their sum.
        case histogram
    }

    /// The origin of a family's values, and the labels that distinguish them.
    package enum Source: Sendable {
        /// Values of the whole node, one for each value of `label`; `label` is empty for a single
        /// value.
        case node(label: String, [Series<Metric>])
        /// Sums over metrics of other families, one for each value of `label`.
        case sums(label: String, [Sum])
        /// One value for each ``CacheOutcome``, distinguished by the label `cache`.
        case outcomes(OutcomeMetric)
        /// One value for each site (label `site`) and value of `label`, which may be empty.
        case sites(label: String, [Series<SiteMetric>])
        /// One value for each other member of the cluster, distinguished by its id in the label
        /// `member`.
        case members(MemberMetric)
    }

    /// A metric and its label value, which is empty if the family has no label.
    package struct Series<Value: Sendable>: Sendable {
        /// The metric.
        package let metric: Value
        /// The label value.
        package let label: String
    }

    /// The metrics that are added up for one label value.
    package struct Sum: Sendable {
        /// The metrics to add.
        package let metrics: [Metric]
        /// The label value.
        package let label: String
    }

    /// The Prometheus name, including the unit and `_total`.
    package let name: String
    /// The Prometheus type.
    package let kind: Kind
    /// The unit: `bytes`, `seconds`, `ratio`, or the noun that is counted.
    package let unit: String
    /// The number of counted increments per unit, by which values are divided.
    package let divisor: UInt64
    /// The origin of the values.
    package let source: Source
    /// The meaning for the operator, in one line without a full stop.
    package let meaning: String
    /// The advice for an unexpected value.
    package let advice: String

    /// Creates a family from its parts.
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

    /// Creates a family of one value without labels.
    init(
        _ name: String, _ kind: Kind, _ unit: String, divisor: UInt64 = 1, _ metric: Metric,
        meaning: String, advice: String
    ) {
        self.init(
            name, kind, unit, divisor: divisor,
            .node(label: "", [Series(metric: metric, label: "")]), meaning: meaning, advice: advice)
    }

    /// Creates a family of one metric of the node for each value of `label`.
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
    /// The name without `_total`, which OpenMetrics uses for the family.
    package var baseName: String {
        kind == .counter && name.hasSuffix("_total") ? String(name.dropLast(6)) : name
    }

    /// The names of the labels in the order in which they are written, without the `le` of
    /// histograms.
    package var labels: [String] {
        switch source {
        case .node(let label, _), .sums(let label, _): label.isEmpty ? [] : [label]
        case .outcomes: ["cache"]
        case .sites(let label, _): label.isEmpty ? ["site"] : ["site", label]
        case .members: ["member"]
        }
    }

    /// Returns the label value of a metric of the node; empty for a metric of another family.
    package func label(of metric: Metric) -> String {
        guard case .node(_, let series) = source else { return "" }
        return series.first { $0.metric == metric }?.label ?? ""
    }

    /// Returns the possible values of a label of this family; `nil` if they are not fixed, as for
    /// names of sites and ids of members.
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
}
