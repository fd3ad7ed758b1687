import Simulation
import Testing

@Suite("Coalescing under random orders of events")
struct FetchSimulationTests {
    @Test("2,000 seeds violate no invariant and reach every outcome")
    func seeds() throws {
        var total = FetchSimulation.CoverageCounts()
        for seed in UInt64(1)...2_000 {
            var simulation = FetchSimulation(seed: seed)
            try total.merge(simulation.run(), uniquingKeysWith: +)
        }
        for outcome in FetchSimulation.Coverage.allCases {
            #expect(total[outcome] != nil, "\(outcome)")
        }
    }
}
