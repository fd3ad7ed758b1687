import Simulation
import Testing

@Suite("Exhaustive search of voter set changes in a small cluster")
struct VoterModelSearchTests {
    /// Bounds of three nodes, two changes and a crash, modified by the test.
    private static func bounds(_ change: (inout VoterModelBounds) -> Void) -> VoterModelBounds {
        var bounds = VoterModelBounds(nodes: 3)
        change(&bounds)
        return bounds
    }

    @Test("No generation has two sets, and the number of states is as expected")
    func agreement() {
        var search = VoterModelSearch(
            Self.bounds {
                $0.hasPurge = false
                $0.firstSets = 2...2
            })
        let outcome = search.run()
        #expect(outcome.violated == nil, "\(outcome.trace)")
        #expect(outcome.isExhaustive)
        #expect(outcome.states == 77_081)
    }

    @Test("No node is current without a purge that was durable a fence before")
    func promise() {
        var search = VoterModelSearch(
            Self.bounds {
                $0.firstSets = 2...2
                $0.changes = 1
                $0.ballots = 1
                $0.proposers = 1
            })
        let outcome = search.run()
        #expect(outcome.violated == nil, "\(outcome.trace)")
        #expect(outcome.isExhaustive)
        #expect(outcome.states == 563_600)
    }

    @Test(
        "Each mutation is detected, and without it the same bounds hold",
        arguments: VoterModelMutation.allCases)
    func flaws(flaw: VoterModelMutation) {
        var wrong = VoterModelSearch(flaw.bounds, flaw: flaw)
        let outcome = wrong.run()
        #expect(outcome.violated != nil)
        #expect(outcome.trace.count > 2)
        // The operator's decisions are no mutation of the consensus; and without the mutation there
        // are eight million states within the bounds of the first, which `nuthatch-sim count`
        // searches.
        guard flaw != .removedWhileRunning, flaw != .settledWithoutPositions else { return }
        var right = VoterModelSearch(flaw.bounds)
        let sound = right.run()
        #expect(sound.violated == nil && sound.isExhaustive)
    }
}
