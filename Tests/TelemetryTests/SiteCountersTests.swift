import Telemetry
import Testing

@Suite("Counters of sites")
struct SiteCountersTests {
    @Test("a site's figures are the sums over its loops")
    func sums() {
        let loops = [SiteCounters(), SiteCounters(), SiteCounters()]
        for (number, counters) in loops.enumerated() {
            for metric in SiteMetric.allCases { counters.add(metric, metric.rawValue + number) }
        }
        let figures = SiteFigures(name: "a", counters: loops)
        for metric in SiteMetric.allCases {
            #expect(figures[metric] == UInt64(3 * metric.rawValue + 3))
        }
        #expect(SiteFigures(name: "a", counters: [])[.hits] == 0)
    }

    @Test("every metric is a member of exactly one family, and the families follow the rules")
    func families() throws {
        let members = SiteMetricFamily.table.flatMap(\.members).map(\.metric)
        #expect(members.count == SiteMetric.allCases.count)
        #expect(SiteMetric.allCases.allSatisfy(members.contains))
        for family in SiteMetricFamily.table {
            #expect(try /nuthatch_site(_[a-z]+)+_total/.wholeMatch(in: family.name) != nil)
            #expect(!MetricFamily.table.contains { $0.name == family.name })
            #expect(family.label.isEmpty == (family.members.count == 1))
            #expect(!family.meaning.hasSuffix(".") && family.advice.hasSuffix("."))
        }
    }
}
