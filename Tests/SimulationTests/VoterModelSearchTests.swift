import Simulation
import Testing

@Suite("Every run of a small cluster that counts and forgets members")
struct VoterModelSearchTests {
    /// Three nodes, two changes and a crash, but for what a test takes away.
    private static func bounds(_ change: (inout VoterModelBounds) -> Void) -> VoterModelBounds {
        var bounds = VoterModelBounds(nodes: 3)
        change(&bounds)
        return bounds
    }

    @Test("no generation has two sets, and as many states are met as ever")
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

    @Test("nobody is proven current without a purge that was durable a fence before")
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
        "each mistake is found, and without it the same bounds hold",
        arguments: VoterModelMutation.allCases)
    func flaws(flaw: VoterModelMutation) {
        var wrong = VoterModelSearch(flaw.bounds, flaw: flaw)
        let outcome = wrong.run()
        #expect(outcome.violated != nil)
        #expect(outcome.trace.count > 2)
        // What the operator says is no mistake of the count; and without the flaw there are eight
        // million states within the bounds of the first, which `nuthatch-sim count` plays.
        guard flaw != .removedWhileRunning, flaw != .settledWithoutPositions else { return }
        var right = VoterModelSearch(flaw.bounds)
        let sound = right.run()
        #expect(sound.violated == nil && sound.isExhaustive)
    }
}
