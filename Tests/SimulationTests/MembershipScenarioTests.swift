import Ground
import Simulation
import Testing
import Trials

@Suite("Membership under faults")
struct MembershipScenarioTests {
    private static let fixedSeeds: [UInt64] = [
        1, 2, 3, 72, 527, 575, 608, 614, 715, 907, 940, 6_525_846_739_907_361_702,
    ]

    @Test("After all faults there is one cluster again; every kind occurs, duplicates are refused")
    func reach() throws {
        var acts: Set<MembershipScenario.ScenarioStep> = []
        var refused = 0
        for seed in Self.fixedSeeds {
            var play = MembershipScenario(seed: seed)
            let report = try play.run()
            #expect(report.falsePositives == 0, "seed \(seed)")
            acts.formUnion(report.steps.keys)
            refused += report.refused
        }
        #expect(acts == Set(MembershipScenario.ScenarioStep.allCases))
        #expect(refused > 0)
    }

    @Test("Each run uses new seeds")
    func fresh() throws {
        for _ in 0..<Trials.count(20) {
            let seed = UInt64.random(in: .min ... .max)
            var play = MembershipScenario(seed: seed)
            // An error contains the seed.
            let report = try play.run()
            #expect(report.falsePositives == 0, "seed \(seed)")
        }
    }

    @Test("Another seed gives another run")
    func different() throws {
        var one = MembershipScenario(seed: 1)
        var other = MembershipScenario(seed: 2)
        #expect(try one.run().digest != other.run().digest)
    }
}
