import Telemetry
import Testing

@Suite("Counters of sites")
struct SiteCountersTests {
    @Test("A site's figures are the sums over its loops, and others are unaffected")
    func sums() {
        let loops = [SiteCounters(), SiteCounters(), SiteCounters()]
        for (number, counters) in loops.enumerated() {
            for (place, metric) in SiteMetric.allCases.enumerated() {
                counters.add(metric, place + number)
            }
        }
        let figures = SiteSnapshot(name: "a", counters: loops)
        for (place, metric) in SiteMetric.allCases.enumerated() {
            #expect(figures[metric] == UInt64(3 * place + 3), "\(metric)")
        }
        #expect(SiteSnapshot(name: "a", counters: [])[.requests(.hit)] == 0)
    }
}
