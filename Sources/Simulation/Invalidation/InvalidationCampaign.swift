import Cluster
package import Ground

/// A series of seeded invalidation simulations and their combined result.
package struct InvalidationCampaign: Sendable {
    /// The combined result of several seeds.
    package struct CampaignResult: Sendable {
        /// The number of seeds run.
        package var seeds = 0
        /// How often each goal was reached, indexed by the raw value of
        /// ``InvalidationCoverageGoal``.
        package var reached = Array(repeating: 0, count: InvalidationCoverageGoal.allCases.count)
        /// The broken guarantees.
        package var violations: [Violation] = []
        /// The number of reads served.
        package var reads = 0
        /// The number of requests to the origin.
        package var originFetches = 0
        /// The number of simulated events.
        package var events: UInt64 = 0
        /// The digest of all traces, equal in every process that runs the same seeds.
        package var digest: UInt64 = 0

        /// Creates an empty result.
        package init() {}

        /// The goals that no seed reached.
        package var uncovered: [InvalidationCoverageGoal] {
            InvalidationCoverageGoal.allCases.filter { reached[$0.rawValue] == 0 }
        }

        /// True if no guarantee was broken and every goal was reached.
        package var isPassed: Bool { violations.isEmpty && uncovered.isEmpty }

        /// Adds the result of further seeds, in the order of the seeds.
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

    /// The seeds to run.
    package let seeds: Range<UInt64>
    /// The number of nodes.
    package let nodes: Int
    /// The fault that nodes have on purpose; `nil` for none.
    package let mutation: InvalidationMutation?
    /// True to stop at the first violation.
    package var stopsAtViolation = true
    /// The simulated time with faults, per seed.
    package var faultDuration = Interval.seconds(25)
    private let site: SimulatedSite

    /// Creates a campaign.
    package init(
        seeds: Range<UInt64>, nodes: Int, mutation: InvalidationMutation? = nil
    ) {
        self.seeds = seeds
        self.nodes = nodes
        self.mutation = mutation
        site = SimulatedSite(nodes: max(nodes, 7))
    }

    /// Runs all seeds, or those up to the first violation if ``stopsAtViolation``.
    package func run() -> CampaignResult {
        var outcome = CampaignResult()
        for seed in seeds {
            outcome.add(play(seed))
            if stopsAtViolation, !outcome.violations.isEmpty { break }
        }
        return outcome
    }

    /// Runs one seed.
    package func play(_ seed: UInt64) -> CampaignResult {
        let report = InvalidationRun(plan(seed), keys: site).run()
        var outcome = CampaignResult()
        outcome.seeds = 1
        outcome.reached = report.reached
        outcome.reads = report.reads
        outcome.originFetches = report.originFetches
        outcome.events = report.trace.events
        outcome.digest = report.trace.value
        outcome.violations = report.violation.map { [report.history.violation($0)] } ?? []
        return outcome
    }

    /// Returns the scenario of a seed.
    ///
    /// With at most seven nodes, seeds differ modulo eight: one grows from three nodes to seven at
    /// once, two form their cluster, one has a single joiner, and four lose or restore directories.
    private func plan(_ seed: UInt64) -> InvalidationScenario {
        var plan = InvalidationScenario(seed: seed, nodes: nodes)
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

/// A deliberate fault of simulated nodes, which the checker must detect.
package enum InvalidationMutation: String, CaseIterable, Hashable, Sendable {
    /// A restarted process reuses the id of the former one.
    case numberReused = "process id reused after a crash"
    /// A fenced node removes members that it does not reach.
    case removalWhileFenced = "members removed while fenced"
    /// A node counts as current when one voter has responded.
    case catchUpFromOneMember = "catch-up from one member"
    /// A contact is dated by the arrival of the response instead of the sending of the request.
    case contactTimedFromResponse = "contact timed from the response"
    /// A record that is re-inserted when its segment is reclaimed gets a new version.
    case newVersionOnReinsertion = "new version on re-insertion"
    /// Entries get versions with an epoch that is not on disk, so that the next start has the same.
    case versionBeforeBootEpoch = "version before the boot epoch is on disk"
    /// A mark is dropped when its record is confirmed.
    case markDroppedAtConfirmation = "mark dropped at confirmation"
    /// A receipt considers the voters alone.
    case receiptWithoutJoiners = "receipt without joining nodes"
    /// A validation freshens with the version of its arrival.
    case lateValidationFreshens = "304 to a request from before a purge freshens"
    /// A response opens the fence before everything that it lists is applied.
    case responseTrustedBeforeApplied = "response trusted before it is applied"
    /// The fence is a flag set by a timer.
    case fenceAsTimer = "fence as a timer"
    /// A purge of an unknown kind has no effect.
    case unknownPurgeSkipped = "unknown purge skipped"
    /// A request that arrives after a purge joins a fetch that began before it.
    case joiningOlderFetch = "request joins a fetch from before the purge"
    /// A starting node forms a cluster of its own if nothing responds.
    case bootstrapOnSilence = "cluster formed because nothing responds"
    /// A leaving node is removed while it still serves clients.
    case leaveBeforeRequestsFinish = "leaving node removed while it serves"
    /// A voter that was replaced by another of its name remains a voter.
    case replacedVotersStay = "replaced voter remains a voter"
    /// A node that follows a recovered voter set continues to trust its stored entries.
    case recoveryTrustsStoredEntries = "stored entries trusted after a recovery"
    /// The operator removes a majority, and the purges that only that majority knew are lost.
    case majorityRemoved = "majority removed by the operator"
    /// A directory that is an older copy is accepted as the member's.
    case restoredCopyAccepted = "older copy of a directory accepted"
    /// The marks of records are dropped together with the records.
    case marksDroppedWithRecords = "marks dropped with their records"
    /// The mark of a URL that is being fetched is dropped because no entry is stored.
    case markDroppedDuringFetch = "mark dropped while its URL is fetched"
    /// The mark of a URL that is on disk is dropped because memory does not hold it.
    case markDroppedWhileOnDisk = "mark dropped while its URL is on disk"

    /// The part of the fault that the fence itself implements.
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

/// A situation that a campaign must reach before the absence of violations means anything.
package enum InvalidationCoverageGoal: Int, CaseIterable, Hashable, Sendable {
    /// A purge of an object in transfer, between request and response, by the kind of transfer.
    case duringFetch, duringGet, duringProbe, duringOffer, duringDrain, duringHotCopy
    case duringRevalidation, duringPromotion, duringReinsertion, duringRecovery
    case joinerDuringReceipt
    case crashBetweenApplyAndSync
    /// A response that may not be stored or shared, and one served because the origin failed.
    case unshareable, staleIfError
    /// A restart while a majority of the voters is down.
    case restartOfOldDisk
    case reinsertionOfPurged
    /// A mark was dropped because nothing that it covers could be stored.
    case markDropped
    case longPartition
    case concurrentRemoval
    case grownFromThreeToSeven
    case clusterBootstrapped
    case leftGracefully, responsesAbortedAtLeave
    case replaced, restoredCopy
    /// Operator actions: the removal of members that are known to be lost, and the recovery from a
    /// lost majority.
    case removedByOperator, recovered
}
