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
