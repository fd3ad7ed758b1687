import Simulation
import Testing

@Suite("Coalescing under any order of events")
struct FillSimulationTests {
    @Test("2,000 seeds break no law and reach every outcome")
    func seeds() throws {
        var total = FillSimulation.Report()
        for seed in UInt64(1)...2_000 {
            var simulation = FillSimulation(seed: seed)
            try total.merge(simulation.run(), uniquingKeysWith: +)
        }
        for outcome in FillSimulation.Outcome.allCases {
            #expect(total[outcome] != nil, "\(outcome)")
        }
    }
}
