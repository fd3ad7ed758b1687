package import Ground

/// Counted sets that follow each other.
package struct VoterSetLineage: Hashable, Sendable {
    /// The node that opened it.
    package var founder: NodeID
    /// Where two lines meet, the one with the higher number holds.
    ///
    /// It is 0 for a line that a newcomer opened; one that the operator opened in the place of
    /// another has one more than that.
    package var recovery: UInt64
}

/// The members that majorities are of.
///
/// Sets follow each other in one line from the node that opened the cluster: a generation's set is
/// made of the one before by one ``VoterSetChange``, and no generation has two. So any majority of
/// one shares a member with any majority of the next: see <doc:Fence>.
package struct VoterSet: Hashable, Sendable {
    /// Tells two clusters apart that were opened separately.
    package let lineage: VoterSetLineage
    package var founder: NodeID { lineage.founder }
    /// 1 for the opener alone, one more with each change.
    package let generation: UInt64
    /// Ascending, each once, never empty.
    package let members: [NodeID]

    /// A set as somebody says it; nil if no change can have made it.
    package init?(
        opener: NodeID, recovery: UInt64 = 0, generation: UInt64, members: [NodeID]
    ) {
        let isAscending = zip(members, members.dropFirst()).allSatisfy { $0 < $1 }
        guard generation > 0, !members.isEmpty, isAscending else { return nil }
        guard generation > 1 || members == [opener] else { return nil }
        lineage = VoterSetLineage(founder: opener, recovery: recovery)
        self.generation = generation
        self.members = members
    }

    /// The first set of a new cluster.
    package init(foundedBy node: NodeID, recovery: UInt64 = 0) {
        lineage = VoterSetLineage(founder: node, recovery: recovery)
        generation = 1
        members = [node]
    }

    private init(after set: VoterSet, members: [NodeID]) {
        lineage = set.lineage
        generation = set.generation + 1
        self.members = members
    }

    package func contains(_ node: NodeID) -> Bool {
        members.sortedIndex(of: node) != nil
    }

    /// True if more than half of the members, those in `without` left out of account, are among
    /// `nodes`.
    package func isMajority(_ nodes: [NodeID], excluding: [NodeID] = []) -> Bool {
        let voters = excluding.isEmpty ? members : members.filter { !excluding.contains($0) }
        let found = Set(nodes)
        return voters.count { found.contains($0) } * 2 > voters.count
    }

    /// True if every majority of this set has a member in every majority of those that stay when
    /// `goneCount` of it do not run any more: then what was durable is known to those that decide.
    package func quorumsIntersect(excludingCount goneCount: Int) -> Bool {
        let left = members.count - goneCount
        return (left / 2 + 1) + (members.count / 2 + 1) > members.count
    }

    /// The next set; nil if the change does not fit this one.
    package func applying(by change: VoterSetChange) -> VoterSet? {
        switch change {
        case .add(let node):
            // A greater one could not be written: see ``membersMax``.
            guard !contains(node), members.count < Self.membersMax else { return nil }
            return VoterSet(after: self, members: (members + [node]).sorted())
        case .remove(let nodes):
            let left = members.filter { !nodes.contains($0) }
            guard !left.isEmpty, left.count + nodes.count == members.count else { return nil }
            return VoterSet(after: self, members: left)
        }
    }

    /// What makes `next` of this one; nil if no change does.
    func change(to next: VoterSet) -> VoterSetChange? {
        let come = next.members.first { !contains($0) }
        let change =
            come.map { .add($0) } ?? VoterSetChange.remove(members.filter { !next.contains($0) })
        return applying(by: change) == next ? change : nil
    }
}

/// What makes a ``VoterSet`` of the one before.
package enum VoterSetChange: Hashable, Sendable {
    /// A node that has caught up with a majority is counted from now on.
    case add(NodeID)
    /// Counted no more: it left, or was away for too long, or the operator says so. Several only by
    /// the operator's word; ascending, each once.
    case remove([NodeID])
}

/// A counted set and, until it is settled, the one before it.
///
/// A set is settled once a majority of it has synced everything that a majority of the one before
/// had. Until then nobody changes it, and whoever reads needs a majority of both.
package struct VoterConfiguration: Hashable, Sendable {
    package var set: VoterSet
    package var previous: VoterSet?

    package init(_ set: VoterSet, after previous: VoterSet? = nil) {
        self.set = set
        self.previous = previous
    }

    package var isSettled: Bool { previous == nil }
}
