import Cluster
package import Ground

/// Many worlds, one after the other, and what came of them.
package struct InvalidationCampaign: Sendable {
    package struct CampaignResult: Sendable {
        package var seeds = 0
        /// By the raw value of ``InvalidationCoverageGoal``: how often it was reached.
        package var reached = Array(repeating: 0, count: InvalidationCoverageGoal.allCases.count)
        /// Promises that were broken.
        package var violations: [Violation] = []
        package var reads = 0
        package var originFetches = 0
        package var events: UInt64 = 0
        /// Of all traces; equal in every process that runs the same seeds.
        package var digest: UInt64 = 0

        package init() {}

        /// What no seed came to.
        package var uncovered: [InvalidationCoverageGoal] {
            InvalidationCoverageGoal.allCases.filter { reached[$0.rawValue] == 0 }
        }

        /// Nothing was broken, and everything was tried.
        package var isPassed: Bool { violations.isEmpty && uncovered.isEmpty }

        /// Takes in what other seeds came to, in the order of the seeds.
        package mutating func add(_ other: CampaignResult) {
            seeds += other.seeds
            for place in reached.indices { reached[place] += other.reached[place] }
            violations += other.violations
            reads += other.reads
            originFetches += other.originFetches
            events += other.events
            digest = digest &* 31 &+ other.digest
        }
    }

    package let seeds: Range<UInt64>
    package let nodes: Int
    package let mutation: InvalidationMutation?
    /// Ends with the first violation.
    package var stopsAtViolation = true
    package var faultDuration = Interval.seconds(25)
    private let site: SimulatedSite

    package init(
        seeds: Range<UInt64>, nodes: Int, mutation: InvalidationMutation? = nil
    ) {
        self.seeds = seeds
        self.nodes = nodes
        self.mutation = mutation
        site = SimulatedSite(nodes: max(nodes, 7))
    }

    /// Plays all seeds.
    package func run() -> CampaignResult {
        var outcome = CampaignResult()
        for seed in seeds {
            outcome.add(play(seed))
            if stopsAtViolation, !outcome.violations.isEmpty { break }
        }
        return outcome
    }

    /// Plays one seed.
    package func play(_ seed: UInt64) -> CampaignResult {
        var world = InvalidationSimulation(plan(seed), keys: site)
        world.run()
        var outcome = CampaignResult()
        outcome.seeds = 1
        outcome.reached = world.reached
        outcome.reads = world.reads
        outcome.originFetches = world.originFetches
        outcome.events = world.eventCount
        outcome.digest = world.digest
        if let law = world.violation {
            outcome.violations = [
                Violation(seed: seed, law: law, history: world.recentHistory.suffix(120))
            ]
        }
        return outcome
    }

    /// One seed of eight grows from three nodes to seven at once; some form from nothing.
    private func plan(_ seed: UInt64) -> InvalidationSimulation.Scenario {
        var plan = InvalidationSimulation.Scenario(seed: seed, nodes: nodes)
        plan.mutation = mutation
        plan.faultDuration = faultDuration
        guard nodes <= 7 else { return plan }
        switch seed % 8 {
        case 0: (plan.nodes, plan.joiners) = (3, 4)
        case 1...2:
            plan.isBootstrapped = false
            if seed % 16 > 8 { plan.expectedNodeCount = nodes }
        case 3: (plan.nodes, plan.joiners) = (max(1, nodes - 1), 1)
        case 4: plan.losses = .namedNodes
        case 5: plan.losses = .unnamedNodes
        case 6: plan.losses = .majority
        default: plan.losses = .restoredCopy
        }
        return plan
    }
}

/// What a simulated node does wrong on purpose, so that the checker can be seen to find it.
package enum InvalidationMutation: String, CaseIterable, Hashable, Sendable {
    /// A process that starts again goes by the id of the one before.
    case numberReused = "number reused after a crash"
    /// A fenced node forgets whom it does not reach.
    case removalWhileFenced = "forgetting while fenced"
    /// A node takes itself for current when one counted member has answered.
    case catchUpFromOneMember = "catch-up from one member"
    /// A contact counts from the moment at which the answer is read.
    case contactTimedFromResponse = "contact timed from the answer"
    /// A record that is written anew when its segment is reclaimed gets the stamp of that moment.
    case newVersionOnReinsertion = "re-stamp on re-insertion"
    /// Entries are stamped with an epoch that is not on disk, so that the next start has the same.
    case versionBeforeBootEpoch = "stamp before boot epoch"
    /// A mark is dropped when its record is confirmed.
    case markDroppedAtConfirmation = "mark dropped at confirmation"
    /// A receipt looks at the counted members alone.
    case receiptWithoutJoiners = "receipt without joiners"
    /// A validation freshens as of the moment at which it came.
    case lateValidationFreshens = "a 304 begun before a purge freshens"
    /// An answer opens the fence though what it names is not applied yet.
    case responseTrustedBeforeApplied = "an answer trusted before it is applied"
    /// Whether the fence is open is a flag that a timer sets.
    case fenceAsTimer = "fence as a timer"
    /// A purge of a kind that is not known does nothing.
    case unknownPurgeSkipped = "unknown purge skipped"
    /// A request that came after a purge is served by a fetch that began before it.
    case joiningOlderFetch = "joining a fetch begun before the purge"
    /// A node that starts opens a cluster of its own where nobody answers.
    case bootstrapOnSilence = "a cluster opened by silence"
    /// A node that goes is forgotten while it answers clients.
    case leaveBeforeRequestsFinish = "forgotten before its doors are closed"
    /// Who was replaced by another of its name stays counted.
    case replacedVotersStay = "who was replaced stays counted"
    /// Whoever follows a recovered count goes on to trust what it holds.
    case recoveryTrustsStoredEntries = "a recovered count with what was held before"
    /// The operator has a node forget a majority, and what only that knew is forgotten with it.
    case majorityRemoved = "a majority forgotten by order"
    /// A directory that is an older copy is taken for the member's.
    case restoredCopyAccepted = "an older copy of a directory taken for the member's"
    /// When records need not be kept any more, what they have invalidated goes with them.
    case marksDroppedWithRecords = "marks gone with their records"
    /// A mark goes whose URL nobody holds, though it is being fetched.
    case markDroppedDuringFetch = "a mark gone while its URL is fetched"
    /// A mark goes whose URL memory does not hold, though the disk does.
    case markDroppedWhileOnDisk = "a mark gone while the disk has its URL"

    /// What of it the nodes' own rooms do wrong.
    var fenceMutations: Fence.Mutations {
        switch self {
        case .contactTimedFromResponse: .contactTimedFromResponse
        case .replacedVotersStay: .replacedVotersStay
        case .recoveryTrustsStoredEntries: .recoveryTrustsStoredEntries
        case .majorityRemoved: .majorityRemoved
        case .responseTrustedBeforeApplied: .responseTrustedBeforeApplied
        default: []
        }
    }
}

/// What a campaign has to come to before its silence says anything.
package enum InvalidationCoverageGoal: Int, CaseIterable, Hashable, Sendable {
    /// A purge of what is asked for, between question and answer, by the way the bytes come.
    case duringFetch, duringGet, duringProbe, duringOffer, duringDrain, duringHotCopy
    case duringRevalidation, duringPromotion, duringReinsertion, duringRecovery
    case joinerDuringReceipt
    case crashBetweenApplyAndSync
    /// An answer that may not be kept or shared came, and one that stood in for an origin that
    /// fails.
    case unshareable, staleIfError
    /// With a majority of the counted members away.
    case restartOfOldDisk
    case reinsertionOfPurged
    /// A mark was let go of, for nothing could be held that it covers.
    case markDropped
    case longPartition
    case concurrentRemoval
    case grownFromThreeToSeven
    case clusterBootstrapped
    case leftGracefully, responsesAbortedAtLeave
    case replaced, restoredCopy
    /// By the operator: whom only he knows to be gone, and a majority that is lost.
    case removedByOperator, recovered
}
