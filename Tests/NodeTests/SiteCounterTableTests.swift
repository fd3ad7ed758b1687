import Front
import Telemetry
import Testing

@Suite("Counters of sites across changes of settings")
struct SiteCounterTableTests {
    @Test("A site's figures are the sums over event loops, in the order of the sites")
    func sums() {
        let table = SiteCounterTable()
        table.adopt(["b", "a"])
        for loop in 0..<3 {
            let counters = table.counters(of: ["b", "a"], loop: loop)
            for (place, metric) in SiteMetric.allCases.enumerated() {
                counters[0].add(metric, place)
                counters[1].add(metric)
            }
        }
        let figures = table.snapshots()
        #expect(figures.map(\.name) == ["b", "a"])
        for (place, metric) in SiteMetric.allCases.enumerated() {
            #expect(figures[0][metric] == UInt64(3 * place))
            #expect(figures[1][metric] == 3)
        }
    }

    @Test("A remaining site keeps its counters, and those of a removed one are dropped")
    func changes() {
        let table = SiteCounterTable()
        table.adopt(["a", "b"])
        let old = table.counters(of: ["a", "b"], loop: 0)
        for counters in old { counters.add(.requests(.hit)) }
        table.adopt(["c", "b"])
        old[1].add(.requests(.hit))
        let new = table.counters(of: ["c", "b"], loop: 0)
        new[1].add(.requests(.hit))
        #expect(table.snapshots().map(\.name) == ["c", "b"])
        #expect(table.snapshots().map { $0[.requests(.hit)] } == [0, 3])
        table.counters(of: ["a"], loop: 0)[0].add(.requests(.hit))
        #expect(table.snapshots().map { $0[.requests(.hit)] } == [0, 3])
        table.adopt(["a"])
        #expect(table.snapshots().map { $0[.requests(.hit)] } == [0])
    }
}
