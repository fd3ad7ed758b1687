import Front
import Telemetry
import Testing

@Suite("Counters of sites through changes of settings")
struct SiteCounterTableTests {
    @Test("a site's figures are the sums over loops, in the order of the sites")
    func sums() {
        let ledger = SiteCounterTable()
        ledger.adopt(["b", "a"])
        for loop in 0..<3 {
            let counters = ledger.counters(of: ["b", "a"], loop: loop)
            for (place, metric) in SiteMetric.allCases.enumerated() {
                counters[0].add(metric, place)
                counters[1].add(metric)
            }
        }
        let figures = ledger.snapshots()
        #expect(figures.map(\.name) == ["b", "a"])
        for (place, metric) in SiteMetric.allCases.enumerated() {
            #expect(figures[0][metric] == UInt64(3 * place))
            #expect(figures[1][metric] == 3)
        }
    }

    @Test("a site that stays goes on counting, one that is gone is forgotten")
    func changes() {
        let ledger = SiteCounterTable()
        ledger.adopt(["a", "b"])
        let old = ledger.counters(of: ["a", "b"], loop: 0)
        for counters in old { counters.add(.requests(.hit)) }
        ledger.adopt(["c", "b"])
        old[1].add(.requests(.hit))
        let new = ledger.counters(of: ["c", "b"], loop: 0)
        new[1].add(.requests(.hit))
        #expect(ledger.snapshots().map(\.name) == ["c", "b"])
        #expect(ledger.snapshots().map { $0[.requests(.hit)] } == [0, 3])
        ledger.counters(of: ["a"], loop: 0)[0].add(.requests(.hit))
        #expect(ledger.snapshots().map { $0[.requests(.hit)] } == [0, 3])
        ledger.adopt(["a"])
        #expect(ledger.snapshots().map { $0[.requests(.hit)] } == [0])
    }
}
