package import Ground

/// A node that owns slots, and how many beside the others.
package struct RingMember: Hashable, Sendable {
    package let id: NodeID
    /// 1 to 65,535: the member's slots are to all slots as its weight to the sum of weights.
    package let weight: UInt16

    package init(_ id: NodeID, weight: UInt16 = Member.defaultWeight) {
        self.id = id
        self.weight = max(1, weight)
    }

    /// Those of `records` that own: alive or suspected, caught up and not draining; by id.
    ///
    /// `records` are of different nodes, in any order. Of more than ``Ring/membersMax`` the first
    /// by id own, so that all nodes which know the same records leave out the same. Whatever a
    /// member says of itself, it counts for no more than `weightMax`; with the same one, all nodes
    /// have the same ring.
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
    /// One that is suspected stays there: most suspicions are withdrawn, and each change moves
    /// slots.
    package var isRingMember: Bool {
        switch state {
        case .alive, .suspected:
            member.role.contains(.isCaughtUp) && !member.role.contains(.isDraining)
        case .dead, .left:
            false
        }
    }
}
