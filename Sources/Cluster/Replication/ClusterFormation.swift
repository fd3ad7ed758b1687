package import Ground

/// How a cluster begins: whom a node that follows no count would have open one, and when it does so
/// itself.
///
/// Every newcomer nominates one node, the lowest of those that it is connected with, and says so.
/// It stays with its nominee as long as that one nominates itself; so of two that would open a
/// cluster one lacks somebody. Nothing here makes two clusters one: the rule is what keeps there
/// from being two.
package struct ClusterFormation: Hashable, Sendable {
    /// Under what a newcomer may open a cluster.
    package enum Rule: Hashable, Sendable {
        /// Not at all, as long as others may be somewhere.
        case never
        /// When all who are here nominate it: nobody else is to be looked for.
        case unanimous
        /// When of so many nodes that are expected more than half are here and nominate it.
        case majority(of: Int)
        /// The operator says that this node is the cluster.
        case operatorOrdered
    }

    package var rule = Rule.never
    package private(set) var nominee: NodeID?

    package init() {}

    /// Takes in who is here, with what each has said last, nil if nothing yet; true if `own`, which
    /// follows no count, is to open a cluster.
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
        // Whoever follows a count is followed.
        guard newcomers.count == others.count else { return false }
        return switch rule {
        case .never: false
        case .unanimous: nominee == own && votes == others.count
        case .majority(let count): nominee == own && (votes + 1) * 2 > count
        case .operatorOrdered: true
        }
    }

    /// Fewer members than this many are not yet the cluster that is expected: none of them serves
    /// what it is not proven current for by more than half of all.
    ///
    /// A set that has come so far has as many members or has changed often enough to have had them;
    /// or the operator has opened its line.
    package func isLargeEnough(_ set: VoterSet) -> Bool {
        guard case .majority(let count) = rule, set.lineage.recovery == 0 else { return true }
        let least = count / 2 + 1
        return set.members.count >= least || set.generation > UInt64(2 * least)
    }
}
