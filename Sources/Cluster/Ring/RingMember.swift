package import Ground

/// A node that owns slots, with its weight.
package struct RingMember: Hashable, Sendable {
    /// The node's id.
    package let id: NodeID
    /// The weight, 1 to 65,535: the member's share of slots is its weight over the sum of weights.
    package let weight: UInt16

    /// Creates a member; a `weight` of 0 becomes 1.
    package init(_ id: NodeID, weight: UInt16 = Member.defaultWeight) {
        self.id = id
        self.weight = max(1, weight)
    }

    /// Returns the ring members among `records`: caught up, not draining, alive or suspected; by
    /// id.
    ///
    /// Beyond ``Ring/membersMax`` only the lowest ids are taken, so all nodes that know the same
    /// records leave out the same members.
    ///
    /// - Parameters:
    ///   - records: Records of distinct nodes, in any order.
    ///   - weightMax: The upper limit of a member's announced weight; must be equal on all nodes,
    ///     which then compute equal rings.
    /// - Returns: The members, ascending by id, at most ``Ring/membersMax``.
    package static func owners(
        among records: [MemberRecord], weightMax: UInt16 = .max
    ) -> [RingMember] {
        let owning = records.filter(\.isRingMember).map(\.member).sorted { $0.id < $1.id }
        return owning.prefix(Ring.membersMax).map {
            RingMember($0.id, weight: min($0.weight, weightMax))
        }
    }
}

extension MemberRecord {
    /// True for a member that belongs on the ring.
    ///
    /// A suspected member stays: most suspicions are withdrawn, and each change moves slots.
    package var isRingMember: Bool {
        switch state {
        case .alive, .suspected:
            member.role.contains(.isCaughtUp) && !member.role.contains(.isDraining)
        case .dead, .left:
            false
        }
    }
}
