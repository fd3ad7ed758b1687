package import Ground

/// The rule by which a cluster is formed: which node a newcomer nominates, and when it opens one.
///
/// Every newcomer, a node that follows no voter set, nominates the lowest id among the newcomers
/// that it is connected with, itself included, and announces it. It keeps its nominee as long as
/// that node nominates itself. So of two nodes that would open a cluster, one lacks a nomination.
/// Separate clusters are never merged here; the rule prevents them.
package struct ClusterFormation: Hashable, Sendable {
    /// The condition under which a newcomer may open a cluster.
    package enum Rule: Hashable, Sendable {
        /// Never, because other members may exist.
        case never
        /// When all known members nominate it, and no others are to be searched for.
        case unanimous
        /// When more than half of the expected number of nodes are present and nominate it.
        case majority(of: Int)
        /// At once, because the operator declares this node to be the cluster.
        case operatorOrdered
    }

    /// The condition in force.
    package var rule = Rule.never
    /// The node that this newcomer nominates; `nil` before the first evaluation.
    package private(set) var nominee: NodeID?

    /// Creates a state with the rule ``Rule/never``.
    package init() {}

    /// Updates the nominee and decides whether this node opens a cluster.
    ///
    /// - Parameters:
    ///   - own: This node, which follows no voter set.
    ///   - others: The other members with their last views; `nil` before the first.
    /// - Returns: True if ``rule`` lets `own` open a cluster now; false if another member follows a
    ///   voter set, which `own` joins instead.
    package mutating func evaluate(own: NodeID, others: [(node: NodeID, view: VoterSetView?)])
        -> Bool
    {
        let newcomers = others.filter { $0.view?.configuration == nil }
        let isNominatedByItself = newcomers.contains {
            $0.node == nominee && $0.view?.nominee == nominee
        }
        if nominee == nil || nominee == own || !isNominatedByItself {
            nominee = newcomers.map(\.node).reduce(own, min)
        }
        let votes = newcomers.count { $0.view?.nominee == own }
        // A node that follows a voter set is joined instead.
        guard newcomers.count == others.count else { return false }
        return switch rule {
        case .never: false
        case .unanimous: nominee == own && votes == others.count
        case .majority(let count): nominee == own && (votes + 1) * 2 > count
        case .operatorOrdered: true
        }
    }

    /// Returns true if a set has reached the expected size once; until then its members do not
    /// serve unfenced.
    ///
    /// A set that has more than half of the expected members, or has changed often enough to have
    /// had them, is large enough. So is one of a recovered lineage.
    package func isLargeEnough(_ set: VoterSet) -> Bool {
        guard case .majority(let count) = rule, set.lineage.recovery == 0 else { return true }
        let least = count / 2 + 1
        return set.members.count >= least || set.generation > UInt64(2 * least)
    }
}
