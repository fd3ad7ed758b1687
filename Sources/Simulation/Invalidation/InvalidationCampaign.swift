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
