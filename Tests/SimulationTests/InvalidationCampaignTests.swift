import Ground
import Simulation
import Testing
import Trials

@Suite("Whole nodes, purges and every fault")
struct InvalidationCampaignTests {
    /// Together they come to every class; the rare ones are a drain and rivals.
    private static let seeds = 349..<366 as Range<UInt64>

    @Test(
        "no promise is broken, and every class of trouble is reached",
        .disabled(if: Trials.areFew))
    func promises() {
        let outcome = InvalidationCampaign(seeds: Self.seeds, nodes: 5).run()
        for violation in outcome.violations { Issue.record("\(violation)") }
        #expect(outcome.seeds == Self.seeds.count)
        #expect(outcome.missed.isEmpty, "never reached: \(outcome.missed)")
        #expect(outcome.reads > 5_000 && outcome.originFetches > 500)
        // Doing nothing is no success.
        #expect(!InvalidationCampaign(seeds: 0..<0, nodes: 5).run().isPassed)
    }

    /// A mistake and the seeds among which one finds it; when the world changes,
    /// `nuthatch-sim invalidation` tells from which seed on it is found.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let mutation: InvalidationMutation
        let seeds: Range<UInt64>

        var testDescription: String {
            InvalidationMutation.all.first { $0.mutation == mutation }?.name ?? "\(mutation)"
        }
    }

    private static let mistakes: [Mistake] = [
        Mistake(mutation: .numberReused, seeds: 0..<1),
        Mistake(mutation: .forgettingWhileFenced, seeds: 3..<4),
        Mistake(mutation: .catchUpFromOneMember, seeds: 28..<29),
        Mistake(mutation: .contactTimedFromAnswer, seeds: 5..<6),
        Mistake(mutation: .restampOnReinsertion, seeds: 0..<1),
        Mistake(mutation: .stampBeforeBootEpoch, seeds: 0..<1),
        Mistake(mutation: .markDroppedAtConfirmation, seeds: 0..<1),
        Mistake(mutation: .receiptWithoutJoiners, seeds: 176..<177),
        Mistake(mutation: .lateValidationFreshens, seeds: 1..<2),
        Mistake(mutation: .fenceAsTimer, seeds: 2..<3),
        Mistake(mutation: .unknownPurgeSkipped, seeds: 2..<3),
        Mistake(mutation: .joiningOlderFetch, seeds: 0..<1),
    ]

    @Test(
        "each mistake is found, and without it the same seeds break nothing",
        .disabled(if: Trials.areFew), arguments: mistakes)
    func mutations(mistake: Mistake) {
        let wrong = InvalidationCampaign(
            seeds: mistake.seeds, nodes: 5, mutation: mistake.mutation)
        #expect(!wrong.run().violations.isEmpty)
        let right = InvalidationCampaign(seeds: mistake.seeds, nodes: 5)
        #expect(right.run().violations.isEmpty)
    }

    @Test(
        "a seed plays the same each time, and another one otherwise", .disabled(if: Trials.areFew))
    func determinism() {
        let campaign = InvalidationCampaign(seeds: 0..<0, nodes: 5)
        for seed in [0, 1, 3, 4] as [UInt64] {
            #expect(campaign.play(seed).digest == campaign.play(seed).digest)
        }
        #expect(campaign.play(4).digest != campaign.play(5).digest)
    }

    @Test("a purge comes to every node though packets are lost")
    func spread() throws {
        var calm = InvalidationSpread(seed: 1, nodes: 12, loss: 0)
        let inCalm = calm.run()
        let quick = try #require(inCalm)
        #expect(quick.untilApplied < .milliseconds(10))
        var lossy = InvalidationSpread(seed: 1, nodes: 12, loss: 0.2)
        let inLoss = lossy.run()
        let slow = try #require(inLoss)
        #expect(slow.untilApplied > quick.untilApplied)
        #expect(slow.untilConfirmed >= slow.untilApplied)
    }
}
