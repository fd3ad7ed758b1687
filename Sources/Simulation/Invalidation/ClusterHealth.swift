import Cluster
import Ground

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

    private static func problems(
        of node: SimulatedCacheNode, in world: SimulatedWorld, knownPositions: Set<StreamPosition>
    ) -> [String] {
        guard let exchange = node.replica.replication else { return ["is down"] }
        var found: [String] = []
        if !node.acceptsClients(world.scenario.mutation) { found.append("serves nobody") }
        if !node.replica.hasOpenWindow(at: world.now) { found.append("is fenced") }
        let count = node.voterSet?.members.count ?? 0
        if count != world.members.count { found.append("counts \(count)") }
        // Nodes retire the streams of dead processes at different times.
        let processes = Set(knownPositions.map(\.process))
        let common = exchange.syncedPositions.filter { processes.contains($0.process) }
        if !knownPositions.isSuperset(of: common) { found.append("knows other positions") }
        if !node.view.isComplete { found.append("does not see all") }
        return found
    }
}
