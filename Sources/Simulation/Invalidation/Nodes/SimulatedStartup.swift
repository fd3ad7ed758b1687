import Cluster
import Ground

/// The search of a starting node for its cluster; the node serves no client before it ends.
struct SimulatedStartup: Sendable {
    private var discovery: ClusterDiscovery?
    /// The rule under which the node may form a cluster, as last reported.
    private var formationRule: ClusterFormation.Rule?
    /// True if the node accepts clients.
    private(set) var isServing = false
    /// True once the node has been connected with another since its start.
    private var hasTable = false
    /// The end of a period in which the node has another secret than the others.
    private(set) var wrongSecretUntil = Instant.zero

    /// Creates the state of a node that was never started.
    init() {}

    /// Starts the search of a node and schedules its first events.
    init(of replica: SimulatedReplica, _ world: inout SimulatedWorld) {
        var settings = ClusterDiscovery.Settings(
            hasSeeds: true, expects: world.scenario.expectedNodeCount)
        settings.timeMax = .seconds(6)
        settings.membersTimeMax = .seconds(2)
        discovery = ClusterDiscovery(settings, now: replica.clock.reading(at: world.now))
        let isStranger =
            !world.isQuiescent && replica.storage.persistentState == nil && world.chance(oneIn: 8)
        if isStranger { wrongSecretUntil = world.now + world.milliseconds(500...4_000) }
        let isSlow = !world.isQuiescent && world.chance(oneIn: 4)
        let delay = isSlow ? world.milliseconds(200...3_000) : world.milliseconds(1...20)
        world.schedule(.seedsResolved(replica.index, run: replica.run), after: delay)
        world.schedule(.checkDiscovery(replica.index, run: replica.run), after: .milliseconds(10))
    }

    /// True while the node can still learn that its directory is an older copy.
    var isJoining: Bool { !isServing || !hasTable }

    /// Records a connection with another node.
    mutating func connected(_ other: Int, _ id: NodeID) {
        hasTable = true
        discovery?.addressAnswered(.simulated(other), by: id)
    }

    /// Records that another node could not be reached.
    mutating func dialFailed(_ other: Int) { discovery?.dialFailed(.simulated(other)) }

    /// Records that the seeds' names resolve to all initial nodes, or temporarily to only one.
    mutating func seedsResolved(isComplete: Bool, _ scenario: InvalidationScenario) {
        let seeds = (0..<(isComplete ? scenario.nodes : 1)).map(PeerAddress.simulated)
        discovery?.seedsResolved(seeds, isComplete: isComplete)
    }

    /// Reevaluates whether the node may form a cluster.
    ///
    /// - Parameters:
    ///   - others: The members that the node sees.
    ///   - reading: The time on the node's clock.
    ///   - mutation: The deliberate fault of the node, if any.
    /// - Returns: The rule to report; `nil` if it has not changed.
    mutating func updateFormationRule(
        _ others: DiscoveryView, at reading: Instant, _ mutation: InvalidationMutation?
    ) -> ClusterFormation.Rule? {
        guard let discovery else { return nil }
        var rule = discovery.formationRule(others)
        let isSilent = reading >= discovery.startedAt + .seconds(1) && !others.hasMemberTable
        if mutation == .bootstrapOnSilence, isSilent { rule = .unanimous }
        guard rule != formationRule else { return nil }
        formationRule = rule
        return rule
    }

    /// Reevaluates whether the node may serve, and returns true if it may from now on.
    mutating func beginServing(
        _ others: DiscoveryView, hasVoterSet: Bool, at reading: Instant
    ) -> Bool {
        guard !isServing, let discovery else { return false }
        isServing = discovery.isComplete(others, hasVoterSet: hasVoterSet, now: reading)
        return isServing
    }
}
