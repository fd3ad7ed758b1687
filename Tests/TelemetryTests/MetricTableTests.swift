import Telemetry
import Testing

@Suite("The table of metrics")
struct MetricTableTests {
    /// What the families have, sums apart, in the table's order.
    private let metrics = MetricTable.families.flatMap { family -> [Metric] in
        if case .node(_, let series) = family.source { series.map(\.metric) } else { [] }
    }

    @Test("Every metric belongs to exactly one family")
    func everyMetricHasOneFamily() {
        #expect(metrics.count == Metric.allCases.count)
        for metric in Metric.allCases {
            #expect(metrics.count { $0 == metric } == 1, "\(metric)")
        }
    }

    @Test("Every metric of sites, outcomes and members belongs to exactly one family")
    func everyMetricOfPartsHasOneFamily() {
        let sources = MetricTable.families.map(\.source)
        let ofSites = sources.flatMap { source -> [SiteMetric] in
            if case .sites(_, let series) = source { series.map(\.metric) } else { [] }
        }
        let ofOutcomes = sources.compactMap { source -> OutcomeMetric? in
            if case .outcomes(let metric) = source { metric } else { nil }
        }
        let ofMembers = sources.compactMap { source -> MemberMetric? in
            if case .members(let metric) = source { metric } else { nil }
        }
        #expect(ofSites.count == SiteMetric.allCases.count)
        #expect(Set(ofSites) == Set(SiteMetric.allCases))
        #expect(ofOutcomes.count == OutcomeMetric.allCases.count)
        #expect(Set(ofOutcomes) == Set(OutcomeMetric.allCases))
        #expect(ofMembers == MemberMetric.allCases)
    }

    @Test("Raw values count up from zero and fit the counters' storage")
    func rawValuesAreIndices() {
        #expect(Metric.allCases.map(\.rawValue) == Array(0..<Metric.allCases.count))
        #expect(Metric.allCases.count <= 256)
    }

    @Test(
        "Names follow Prometheus' conventions, with the unit at the end",
        arguments: MetricTable.families)
    func namesFollowTheRules(family: MetricFamily) throws {
        #expect(try /nuthatch(_[a-z]+)+/.wholeMatch(in: family.name) != nil)
        #expect(family.name.hasSuffix("_total") == (family.kind == .counter))
        for unit in ["bytes", "seconds", "ratio"] {
            #expect(family.baseName.hasSuffix("_" + unit) == (family.unit == unit))
            #expect(family.baseName.contains("_\(unit)_") == false)
        }
        #expect(try /[a-z]+/.wholeMatch(in: family.unit) != nil)
        #expect(family.divisor == 1 || ["seconds", "ratio"].contains(family.unit))
    }

    @Test("No two families share a name, in any format")
    func namesAreUnique() {
        let names = MetricTable.families.flatMap { family in
            switch family.kind {
            case .counter: [family.baseName, family.name]
            case .gauge: [family.name]
            case .histogram: [family.name] + ["_bucket", "_sum", "_count"].map { family.name + $0 }
            }
        }
        #expect(Set(names).count == names.count)
    }

    @Test(
        "Series of a family have different values of one label, or there is one series",
        arguments: MetricTable.families)
    func labelsTellSeriesApart(family: MetricFamily) {
        #expect(Set(family.labels).count == family.labels.count)
        guard let label = family.labels.last, let values = family.values(of: label) else {
            return
        }
        #expect(values.count > 1 && Set(values).count == values.count && !values.contains(""))
        for value in values {
            #expect(value.utf8.allSatisfy { $0 == UInt8(ascii: "_") || $0 > 0x2F }, "\(value)")
        }
    }

    @Test("Totals are sums of other families, and count nothing twice")
    func sums() {
        let counters = MetricTable.families.filter { $0.kind == .counter }.flatMap {
            family -> [Metric] in
            if case .node(_, let series) = family.source { series.map(\.metric) } else { [] }
        }
        for family in MetricTable.families {
            guard case .sums(_, let sums) = family.source else { continue }
            let parts = sums.flatMap(\.metrics)
            #expect(family.kind == .counter && Set(parts).count == parts.count)
            #expect(parts.allSatisfy(counters.contains))
        }
    }

    @Test(
        "a meaning is a line without a full stop, advice is sentences",
        arguments: MetricTable.families)
    func textsAreSentences(family: MetricFamily) {
        #expect(family.meaning.first?.isUppercase == true)
        #expect(!family.meaning.contains("\n") && !family.meaning.hasSuffix("."))
        #expect(!family.advice.contains("\n") && family.advice.hasSuffix("."))
    }
}
