package import Telemetry

/// Renders all metric families in table order for a scraper.
///
/// The text is built as bytes, because it is rendered on an event loop and may cover many sites.
package struct MetricsExposition {
    private let format: MetricsFormat
    private var bytes: [UInt8] = []
    /// True if the line being written already has a label.
    private var hasLabels = false

    /// Returns the text of every family that has a value in `snapshot`.
    package static func render(_ snapshot: MetricsSnapshot, as format: MetricsFormat) -> [UInt8] {
        var text = MetricsExposition(format: format)
        text.bytes.reserveCapacity(64 << 10 + snapshot.sites.count << 11)
        for family in MetricTable.families { text.append(family, snapshot) }
        if format == .openMetrics { text.append("# EOF\n") }
        return text.bytes
    }

    private init(format: MetricsFormat) {
        self.format = format
    }

    /// Appends a family with its metadata; nothing for a family of sites or members if there are
    /// none.
    private mutating func append(_ family: MetricFamily, _ snapshot: MetricsSnapshot) {
        switch family.source {
        case .node(let label, let series):
            appendMetadata(family)
            for series in series {
                append(family, label, series.label, snapshot[series.metric])
            }
        case .sums(let label, let sums):
            appendMetadata(family)
            for sum in sums {
                append(
                    family, label, sum.label, sum.metrics.reduce(0) { $0 &+ snapshot[$1] })
            }
        case .outcomes(let metric):
            appendMetadata(family)
            for row in snapshot.outcomes.rows { append(family, metric, row) }
        case .sites(let label, let series):
            guard !snapshot.sites.isEmpty else { return }
            appendMetadata(family)
            for site in snapshot.sites { append(family, label, series, site) }
        case .members(let metric):
            guard !snapshot.members.isEmpty else { return }
            appendMetadata(family)
            for member in snapshot.members {
                append(family, "member", member.name, member[metric])
            }
        }
    }

    /// Appends the HELP, TYPE and UNIT lines.
    private mutating func appendMetadata(_ family: MetricFamily) {
        let name = format == .openMetrics ? family.baseName : family.name
        append("# HELP ")
        append(name)
        append(" ")
        append(format.escaped(family.meaning))
        append("\n# TYPE ")
        append(name)
        append(" ")
        append(family.kind.rawValue)
        if format == .openMetrics, name.hasSuffix("_" + family.unit) {
            append("\n# UNIT ")
            append(name)
            append(" ")
            append(family.unit)
        }
        append("\n")
    }

    // MARK: Values

    /// Appends a line of a node's or member's metric; an empty `label` is left out.
    private mutating func append(
        _ family: MetricFamily, _ label: String, _ text: String, _ value: UInt64
    ) {
        append(family.name)
        if !label.isEmpty { append(label: label, text) }
        append(value: value, of: family)
    }

    /// Appends the lines of a site's metrics; an empty `label` is left out.
    private mutating func append(
        _ family: MetricFamily, _ label: String, _ series: [MetricFamily.Series<SiteMetric>],
        _ site: SiteSnapshot
    ) {
        for series in series {
            append(family.name)
            // A site's name is a host and a port, which need no escaping.
            append(label: "site", site.name)
            if !label.isEmpty { append(label: label, series.label) }
            append(value: site[series.metric], of: family)
        }
    }

    /// Appends the lines of a metric for one outcome.
    private mutating func append(
        _ family: MetricFamily, _ metric: OutcomeMetric, _ row: OutcomeSnapshot.Row
    ) {
        switch metric {
        case .bodyBytes: append(family, "cache", row.outcome.label, row.bodyBytes)
        case .duration: append(histogram: family, row)
        }
    }

    /// Appends the lines of a histogram: cumulative buckets, sum and count.
    private mutating func append(histogram family: MetricFamily, _ row: OutcomeSnapshot.Row) {
        var sum: UInt64 = 0
        for (place, count) in row.counts.enumerated() {
            sum += count
            append(family.name)
            append("_bucket")
            append(label: "cache", row.outcome.label)
            append(",le=\"")
            if place < LatencyBuckets.bounds.count {
                // OpenMetrics writes the numbers in labels with a fraction.
                append(
                    LatencyBuckets.bounds[place] * 1_000, by: family.divisor,
                    isFraction: format == .openMetrics)
            } else {
                append("+Inf")
            }
            append("\"")
            append(value: sum, by: 1)
        }
        append(family.name)
        append("_sum")
        append(label: "cache", row.outcome.label)
        append(value: row.nanoseconds, of: family)
        append(family.name)
        append("_count")
        append(label: "cache", row.outcome.label)
        append(value: sum, by: 1)
    }

    // MARK: Pieces

    /// Appends text as it is.
    private mutating func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    /// Appends a label, whose value needs no escaping, and the brace or comma before it.
    private mutating func append(label name: String, _ value: String) {
        append(hasLabels ? "," : "{")
        hasLabels = true
        append(name)
        append("=\"")
        append(value)
        append("\"")
    }

    /// Appends a value in the unit of its family and ends the line.
    private mutating func append(value: UInt64, of family: MetricFamily) {
        append(value: value, by: family.divisor)
    }

    /// Appends a value and ends the line.
    private mutating func append(value: UInt64, by divisor: UInt64) {
        append(hasLabels ? "} " : " ")
        hasLabels = false
        append(value, by: divisor, isFraction: false)
        append("\n")
    }

    /// Appends a quotient by a power of ten without trailing zeros; with `isFraction` at least one
    /// digit follows the point.
    private mutating func append(_ number: UInt64, by divisor: UInt64, isFraction: Bool) {
        append(number: number / divisor)
        var (rest, unit) = (number % divisor, divisor / 10)
        if rest == 0 {
            if isFraction { append(".0") }
            return
        }
        append(".")
        while rest > 0 {
            bytes.append(0x30 + UInt8(rest / unit))
            (rest, unit) = (rest % unit, unit / 10)
        }
    }

    /// Appends a number in decimal.
    private mutating func append(number: UInt64) {
        if number >= 10 { append(number: number / 10) }
        bytes.append(0x30 + UInt8(number % 10))
    }
}
