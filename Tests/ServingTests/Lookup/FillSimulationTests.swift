import Simulation
import Testing

@Suite("Coalescing under any order of events")
struct FillSimulationTests {
    @Test("2,000 seeds break no law and reach every outcome")
    func seeds() throws {
        var total = FillSimulation.Report()
        for seed in UInt64(1)...2_000 {
            var simulation = FillSimulation(seed: seed)
            total += try simulation.run()
        }
        #expect(total.finished > 0)
        #expect(total.failed > 0)
        #expect(total.cut > 0)
        #expect(total.sentAway > 0)
        #expect(total.left > 0)
        #expect(total.cancelled > 0)
        #expect(total.pauses > 0)
        #expect(total.kept > 0)
        #expect(total.confirmed > 0)
        #expect(total.misunderstood > 0)
        #expect(total.late > 0)
    }
}
