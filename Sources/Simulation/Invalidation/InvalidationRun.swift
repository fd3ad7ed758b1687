import Cluster
import Ground

/// The parameters of an invalidation simulation.
struct InvalidationScenario: Hashable, Sendable {
    /// The seed of all randomness.
    var seed: UInt64
    /// The number of initial nodes.
    var nodes: Int
    /// The number of nodes that join later, all at once.
    var joiners = 0
    /// True if the initial nodes are voters from the beginning; otherwise they form a cluster.
    var isBootstrapped = true
    /// The number of nodes that the cluster is configured to start with; `nil` if it is not
    /// configured.
    var expectedNodeCount: Int?
    /// The kind of directory losses.
    var losses = DirectoryLosses.none
    /// The deliberate fault; `nil` for none.
    var mutation: InvalidationMutation?
    /// The simulated time with faults, before the final phase without.
    var faultDuration = Interval.seconds(30)

    /// Creates a scenario without losses and deliberate faults.
    init(seed: UInt64, nodes: Int) {
        self.seed = seed
        self.nodes = nodes
    }

    /// Returns the voter set of the first of these nodes; `nil` if they have to form a cluster.
    func initialVoterSet(_ ids: [NodeID]) -> VoterSet? {
        let members = ids.prefix(nodes).sorted()
        guard isBootstrapped, let founder = members.first else { return nil }
        return VoterSet(
            founder: founder, generation: UInt64(max(2, nodes)), members: members)
    }

    /// The ways in which nodes lose their directories.
    ///
    /// After a loss, named nodes return under their name and unnamed ones as unrelated nodes.
    enum DirectoryLosses: Hashable, Sendable {
        case none, namedNodes, unnamedNodes
        /// All directories but one are lost at once, so that the operator has to recover the
        /// cluster.
        case majority
        /// One directory is replaced by an older copy, which few nodes can detect.
        case restoredCopy
    }
}

/// One run of a scenario: a time with faults, then an end without.
///
/// In the end the cluster must become healthy, and edit, purge and refetch must behave as users of
/// a detail page expect.
struct InvalidationRun: Sendable {
    /// Maximum time after the faults until all nodes are voters, current and in agreement.
    private static let recoveryMax = Interval.seconds(40)

    private var simulation: InvalidationSimulation
    private var nodes: [SimulatedCacheNode] { simulation.nodes }
    private var now: Instant { simulation.now }
    private var hasFailed: Bool { simulation.violation != nil }
    private var health: ClusterHealth { ClusterHealth(of: nodes, in: simulation.world) }

    /// Creates a run at its beginning.
    init(_ scenario: InvalidationScenario, keys site: SimulatedSite) {
        simulation = InvalidationSimulation(scenario, keys: site)
    }

    /// Runs to the end and returns the observations.
    consuming func run() -> SimulationReport {
        let scenario = simulation.scenario
        simulation.play(until: now + scenario.faultDuration)
        if !hasFailed { quiesce() }
        if !hasFailed {
            for key in 0..<3 { refetch(key, isHard: key != 1) }
            if scenario.losses == .namedNodes, nodes.count > 2 { replaceAll() }
        }
        return simulation.world.report
    }

    /// Ends the run with a broken guarantee.
    private mutating func fail(_ law: String) { simulation.world.fail(law) }

    /// Replaces one node after the other by a new one of the same name; no other node may be
    /// fenced.
    private mutating func replaceAll() {
        for index in nodes.indices where !hasFailed {
            simulation.loseDirectory(index)
            let limit = now + .seconds(5)
            repeat {
                simulation.play(until: now + .milliseconds(5))
                for other in nodes.indices
                where other != index && !nodes[other].replica.isCurrent(at: now) {
                    fail("node \(other) is fenced while \(index) is replaced")
                }
                if now > limit {
                    fail("the replacement of \(index) is not a voter: \(health.problems)")
                }
            } while !hasFailed && !health.isHealthy
        }
    }

    /// Ends all faults and waits until the cluster is healthy.
    private mutating func quiesce() {
        simulation.quiesce()
        let limit = now + Self.recoveryMax
        // By then pending leaves are complete, and the events of paused processes are handled.
        simulation.play(until: now + .seconds(7))
        while !hasFailed, !health.isHealthy {
            simulation.startAll()
            guard now < limit else { return fail("no healthy cluster: \(health.problems)") }
            simulation.play(until: now + .milliseconds(100))
        }
    }

    /// Edits and purges a key, awaits the receipt, then reads at every node at once; the origin
    /// must get one request.
    private mutating func refetch(_ key: Int, isHard: Bool) {
        readEverywhere(key)
        // An earlier request may still wait for a peer that was cut off, and would be counted.
        let end = now + .seconds(20)
        while nodes.contains(where: { $0.fetches.contains(key) }) {
            guard now < end, !hasFailed else { return fail("a read waits for ever") }
            simulation.play(until: now + .milliseconds(5))
        }
        simulation.world.oracle.update(key, at: now)
        let issuer = Int.random(in: nodes.indices, using: &simulation.world.dice)
        let purge = Purge(isHard ? .hard : .soft, [.url(simulation.world.keys[key].urlName)])
        let id = Array("calm \(key)".utf8)
        guard !hasFailed,
            let number = simulation.issue(Invalidation(id: id, .purge(purge)), at: issuer)
        else { return fail("a purge was refused in calm") }
        let name = simulation.world.oracle.purges[number].name
        // For one fence after a removal an unknown node may be current.
        let limit = now + SimulatedReplica.fence + .seconds(2)
        while nodes[issuer].replica.replication?.receipt(of: name)?.isConfirmedByAll != true {
            guard now < limit, !hasFailed else { return fail("no receipt in calm") }
            simulation.play(until: now + .milliseconds(5))
        }
        ReceiptAudit.recordConfirmed(number, by: nodes, &simulation.world)
        let before = simulation.world.report
        readEverywhere(key)
        let report = simulation.world.report
        let reads = report.quiescentReads[key] - before.quiescentReads[key]
        let fetches = report.quiescentFetches[key] - before.quiescentFetches[key]
        if reads != nodes.count { fail("\(reads) reads were served, of \(nodes.count)") }
        // A gap of a dead process requires one revalidation of everything.
        if fetches != 1, report.floorsApplied == before.floorsApplied {
            fail("\(fetches) origin fetches after one \(purge.mode) purge of key \(key)")
        }
    }

    /// Reads a key at every node at once, and runs for a second.
    private mutating func readEverywhere(_ key: Int) {
        for index in nodes.indices { simulation.world.schedule(.read(index, key: key), at: now) }
        simulation.play(until: now + .seconds(1))
    }
}

/// The reasons why a cluster is not healthy: all nodes must be voters, current and in agreement.
struct ClusterHealth: Sendable {
    /// The problems, with the index of the node; empty if the cluster is healthy.
    let problems: [String]

    var isHealthy: Bool { problems.isEmpty }

    init(of nodes: [SimulatedCacheNode], in world: SimulatedWorld) {
        let positions = Set(nodes[0].replica.replication?.syncedPositions ?? [])
        problems = nodes.flatMap { node in
            Self.problems(of: node, in: world, knownPositions: positions)
                .map { "\(node.index) \($0)" }
        }
    }

    /// Returns what is wrong with a node; it may know positions of other streams than
    /// `knownPositions`.
    private static func problems(
        of node: SimulatedCacheNode, in world: SimulatedWorld, knownPositions: Set<StreamPosition>
    ) -> [String] {
        guard let exchange = node.replica.replication else { return ["is down"] }
        var found: [String] = []
        if !node.acceptsClients(world.scenario.mutation) { found.append("serves nobody") }
        if !node.replica.hasOpenWindow(at: world.now) { found.append("is fenced") }
        let count = node.voterSet?.members.count ?? 0
        if count != world.members.count { found.append("has \(count) voters") }
        // Nodes retire the streams of dead processes at different times.
        let processes = Set(knownPositions.map(\.process))
        let common = exchange.syncedPositions.filter { processes.contains($0.process) }
        if !knownPositions.isSuperset(of: common) { found.append("knows other positions") }
        if !node.view.isComplete { found.append("does not see all") }
        return found
    }
}
