import Ground
import Simulation
import Testing
import Trials

@Suite("Nodes, purges and all faults")
struct InvalidationCampaignTests {
    /// Seeds that together reach every class of faults; rare ones are a drain, a restored directory
    /// and members forgotten by the operator.
    private static let seeds = 854..<868 as Range<UInt64>

    @Test(
        "No guarantee is violated, and every class of faults is reached",
        .disabled(if: Trials.isReduced))
    func promises() {
        let outcome = InvalidationCampaign(seeds: Self.seeds, nodes: 5).run()
        for violation in outcome.violations { Issue.record("\(violation)") }
        #expect(outcome.seeds == Self.seeds.count)
        #expect(outcome.uncovered.isEmpty, "never reached: \(outcome.uncovered)")
        #expect(outcome.reads > 3_000 && outcome.originFetches > 500)
        #expect(Self.mistakes.count == InvalidationMutation.allCases.count)
        // An empty campaign is no success.
        #expect(!InvalidationCampaign(seeds: 0..<0, nodes: 5).run().isPassed)
    }

    /// A mutation and a seed that detects it; after a change of the simulation, `nuthatch-sim
    /// invalidation` finds a new seed.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let mutation: InvalidationMutation
        let seed: UInt64

        var testDescription: String { mutation.rawValue }
    }

    private static let mistakes: [Mistake] = [
        Mistake(mutation: .numberReused, seed: 0),
        Mistake(mutation: .removalWhileFenced, seed: 23),
        Mistake(mutation: .catchUpFromOneMember, seed: 23),
        Mistake(mutation: .contactTimedFromResponse, seed: 0),
        Mistake(mutation: .newVersionOnReinsertion, seed: 0),
        Mistake(mutation: .versionBeforeBootEpoch, seed: 1),
        Mistake(mutation: .markDroppedAtConfirmation, seed: 0),
        Mistake(mutation: .receiptWithoutJoiners, seed: 22),
        Mistake(mutation: .lateValidationFreshens, seed: 14),
        Mistake(mutation: .responseTrustedBeforeApplied, seed: 0),
        Mistake(mutation: .fenceAsTimer, seed: 12),
        Mistake(mutation: .unknownPurgeSkipped, seed: 0),
        Mistake(mutation: .joiningOlderFetch, seed: 1),
        Mistake(mutation: .bootstrapOnSilence, seed: 6),
        Mistake(mutation: .leaveBeforeRequestsFinish, seed: 64),
        Mistake(mutation: .replacedVotersStay, seed: 4),
        Mistake(mutation: .recoveryTrustsStoredEntries, seed: 446),
        Mistake(mutation: .majorityRemoved, seed: 6),
        Mistake(mutation: .restoredCopyAccepted, seed: 47),
        Mistake(mutation: .marksDroppedWithRecords, seed: 38),
        Mistake(mutation: .markDroppedDuringFetch, seed: 38),
        Mistake(mutation: .markDroppedWhileOnDisk, seed: 0),
    ]

    @Test(
        "Each mutation is detected, and without it the same seed violates nothing",
        .disabled(if: Trials.isReduced), arguments: mistakes)
    func mutations(mistake: Mistake) {
        let wrong = InvalidationCampaign(
            seeds: mistake.seed..<mistake.seed + 1, nodes: 5, mutation: mistake.mutation)
        #expect(!wrong.run().violations.isEmpty)
        let right = InvalidationCampaign(seeds: wrong.seeds, nodes: 5)
        #expect(right.run().violations.isEmpty)
    }

    @Test(
        "A seed gives the same run each time, and another seed another run",
        .disabled(if: Trials.isReduced))
    func determinism() {
        let campaign = InvalidationCampaign(seeds: 0..<0, nodes: 5)
        for seed in [0, 1, 3, 4] as [UInt64] {
            #expect(campaign.play(seed).digest == campaign.play(seed).digest)
        }
        #expect(campaign.play(4).digest != campaign.play(5).digest)
    }

    @Test("A purge reaches every node despite lost packets")
    func spread() throws {
        var calm = InvalidationPropagation(seed: 1, nodes: 12, loss: 0)
        let inCalm = calm.run(rate: 1, seconds: 1, issuers: 1)
        let quick = try #require(inCalm)
        #expect(quick.untilApplied[0] < .milliseconds(10))
        var lossy = InvalidationPropagation(seed: 1, nodes: 12, loss: 0.2)
        let inLoss = lossy.run(rate: 1, seconds: 1, issuers: 1)
        let slow = try #require(inLoss)
        #expect(slow.untilApplied[0] > quick.untilApplied[0])
        #expect(slow.untilConfirmed[0] >= slow.untilApplied[0])
    }

    @Test("Purges at a steady rate reach all nodes, at a cost independent of their number")
    func load() throws {
        func cost(nodes count: Int) throws -> Double {
            var spread = InvalidationPropagation(seed: 1, nodes: count, loss: 0)
            let outcome = spread.run(rate: 1_000, seconds: 1, issuers: count)
            let figures = try #require(outcome)
            #expect(figures.untilApplied.count == 1_000)
            #expect(figures.untilConfirmed.count == 1_000)
            return figures.bytesPerSecond.reduce(0, +) / Double(count * 1_000)
        }
        let (few, many) = (try cost(nodes: 6), try cost(nodes: 24))
        #expect(few > 50 && many < 2 * few, "bytes per purge and node: \(few), \(many)")
    }
}
