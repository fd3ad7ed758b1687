package import Ground

/// The assignment of slots to owners, in order of preference; equal on all nodes with equal
/// members.
///
/// Immutable and shared between event loops; computed off the loops once for each member set. A
/// look-up is an array read. A change of members creates another ring (``changed(to:)``). Size: at
/// most 4 MiB. <doc:Ring> defines the function with test vectors.
package final class Ring: Sendable {
    /// The members, ascending by id.
    package let members: [RingMember]
    /// The number of owners in each slot's list: the member count, at most ``ownersPerSlotMax``.
    package let ownersPerSlot: Int
    /// The number of slots whose first owner is the member, by member index.
    package let slotsOwned: [Int]
    /// The ``ownersPerSlot`` nearest members of each slot, as member indices, nearest first, by
    /// slot.
    let ownerIndices: [UInt16]

    /// The maximum number of members of a cluster.
    package static let membersMax = 256
    /// The maximum number of members that a ring can be computed for; simulations exceed clusters.
    package static let computableMax = 4_096
    /// The maximum list length: 2 owners, 3 former owners to query, and 3 spares for unreachable
    /// nodes.
    package static let ownersPerSlotMax = 8

    /// Creates the ring of `members`, which have distinct ids and come in any order.
    ///
    /// Computes one distance for each slot and member: 2 to 5 ms per member.
    package convenience init(members: [RingMember]) {
        let members = members.sorted { $0.id < $1.id }
        let distances = members.map { SlotDistance(of: $0) }
        let listCount = min(members.count, Self.ownersPerSlotMax)
        let logarithm = BinaryLogarithm.table
        var lists = [UInt16](repeating: 0, count: RingSlot.count * listCount)
        for number in 0..<(listCount == 0 ? 0 : RingSlot.count) {
            let slot = SlotHashWord(UInt32(truncatingIfNeeded: number))
            let nearest = NearestMembers(of: distances, to: slot, logarithm)
            let start = number &* listCount
            for place in 0..<listCount { lists[start &+ place] = nearest[place] }
        }
        self.init(sorted: members, lists: lists)
    }

    /// Creates the ring of `members`, ascending by id, from computed `lists`; see ``ownerIndices``.
    ///
    /// - Precondition: The ids are distinct, and there are at most ``computableMax`` members.
    init(sorted members: [RingMember], lists: [UInt16]) {
        precondition(members.count <= Self.computableMax, "a ring of \(members.count) members")
        precondition(
            zip(members, members.dropFirst()).allSatisfy { $0.id < $1.id },
            "a node that is twice on the ring")
        self.members = members
        self.ownerIndices = lists
        ownersPerSlot = min(members.count, Self.ownersPerSlotMax)
        var slotsOwned = Array(repeating: 0, count: members.count)
        for index in stride(from: 0, to: lists.count, by: max(ownersPerSlot, 1)) {
            slotsOwned[Int(lists[index])] += 1
        }
        self.slotsOwned = slotsOwned
    }

    /// Returns the owners of the key with `keyDigest`, which is the URL's digest also for variants.
    package func owners(of keyDigest: EntryDigest) -> Owners {
        owners(of: RingSlot(of: keyDigest))
    }

    /// Returns the owners of `slot`.
    package func owners(of slot: RingSlot) -> Owners {
        Owners(ring: self, start: Int(slot.number) * ownersPerSlot)
    }

    /// The owners of a slot in order of preference: first the owner, second its replica, and so on.
    ///
    /// Empty on an empty ring. Does not allocate.
    package struct Owners: RandomAccessCollection, Sendable {
        fileprivate let ring: Ring
        /// The index in `ownerIndices` at which the slot's list begins.
        fileprivate let start: Int

        /// The first position, always 0.
        package var startIndex: Int { 0 }
        /// The position after the last owner.
        package var endIndex: Int { ring.ownersPerSlot }
        /// The number of owners: ``Ring/ownersPerSlot``.
        package var count: Int { ring.ownersPerSlot }

        /// The id of the owner at `position`, from 0.
        package subscript(position: Int) -> NodeID {
            ring.members[memberIndex(at: position)].id
        }

        /// Returns the index in ``Ring/members`` of the owner at `position`.
        package func memberIndex(at position: Int) -> Int {
            precondition(0..<count ~= position, "position \(position) of \(count)")
            return Int(ring.ownerIndices[start + position])
        }
    }
}

extension Ring: Equatable {
    /// Returns true if the members, their weights and all lists are equal.
    package static func == (left: Ring, right: Ring) -> Bool {
        left.members == right.members && left.ownerIndices == right.ownerIndices
    }
}

/// Shares and slots of single members.
extension Ring {
    /// Returns the fraction of all slots that `id` owns first, 0 to 1; 0 if `id` is not on the
    /// ring.
    package func share(of id: NodeID) -> Double {
        guard let index = members.firstIndex(where: { $0.id == id }) else { return 0 }
        return Double(slotsOwned[index]) / Double(RingSlot.count)
    }

    /// Returns, for each member index, the fraction of slots that list the member at `position`.
    ///
    /// The first owner is at position 0.
    package func shares(at position: Int) -> [Double] {
        var counts = Array(repeating: 0, count: members.count)
        guard position < ownersPerSlot else { return counts.map { _ in 0 } }
        for index in stride(from: position, to: ownerIndices.count, by: ownersPerSlot) {
            counts[Int(ownerIndices[index])] += 1
        }
        return counts.map { Double($0) / Double(RingSlot.count) }
    }

    /// Returns the slots that have `id` among the first `positions` of their lists, ascending.
    package func slots(ownedBy id: NodeID, amongFirst positions: Int = 1) -> [RingSlot] {
        guard let index = members.firstIndex(where: { $0.id == id }) else { return [] }
        let positions = min(positions, ownersPerSlot)
        var slots: [RingSlot] = []
        for number in 0..<RingSlot.count {
            let start = number &* ownersPerSlot
            for place in start..<start &+ positions where Int(ownerIndices[place]) == index {
                slots.append(RingSlot(number: UInt32(number)))
            }
        }
        return slots
    }

    /// Returns how many slots have another first owner than on `other`, or have one only on one
    /// ring.
    package func slotsMoved(from other: Ring) -> Int {
        guard ownersPerSlot > 0, other.ownersPerSlot > 0 else {
            return ownersPerSlot == other.ownersPerSlot ? 0 : RingSlot.count
        }
        var places: [NodeID: Int] = [:]
        for (index, member) in members.enumerated() { places[member.id] = index }
        let renamed = other.members.map { places[$0.id] ?? -1 }
        var moved = 0
        for number in 0..<RingSlot.count {
            let before = renamed[Int(other.ownerIndices[number &* other.ownersPerSlot])]
            if before != Int(ownerIndices[number &* ownersPerSlot]) { moved += 1 }
        }
        return moved
    }
}

/// How evenly a ring spreads slots, and how many slots move when a node joins or leaves.
package struct RingStatistics: Sendable {
    /// The number of members of the ring.
    package let nodes: Int
    /// The slots of the node that owns most, divided by the mean.
    package let peakToMean: Double
    /// The slots of the node that owns fewest, divided by the mean.
    package let minToMean: Double
    /// The slots that moved when a node joined, divided by an equal share for that node.
    package let movedOnJoinToMean: Double
    /// The slots that moved when a node left, divided by an equal share for that node.
    package let movedOnLeaveToMean: Double

    /// Computes the statistics of `ring`, which must not be empty.
    ///
    /// - Parameters:
    ///   - ring: The ring to measure.
    ///   - afterJoin: `ring` with one more node.
    ///   - afterLeave: `ring` with one node less.
    package init(of ring: Ring, afterJoin: Ring, afterLeave: Ring) {
        precondition(!ring.members.isEmpty, "figures of an empty ring")
        let slots = Double(RingSlot.count)
        let mean = slots / Double(ring.members.count)
        nodes = ring.members.count
        peakToMean = Double(ring.slotsOwned.max() ?? 0) / mean
        minToMean = Double(ring.slotsOwned.min() ?? 0) / mean
        movedOnJoinToMean =
            Double(afterJoin.slotsMoved(from: ring) * afterJoin.members.count) / slots
        movedOnLeaveToMean = Double(afterLeave.slotsMoved(from: ring)) / mean
    }

    /// Returns `count` members of default weight with random ids drawn from `dice`.
    package static func members(_ count: Int, using dice: inout SplitMix64) -> [RingMember] {
        (0..<count).map { _ in RingMember(NodeID(using: &dice)) }
    }
}

/// A slot of the ring: a group of keys that have the same owners.
package struct RingSlot: Hashable, Comparable, Sendable {
    /// The slot's number, 0 to 262,143.
    package let number: UInt32

    /// The number of slots, 2^18; a constant of the protocol.
    package static let count = 1 << bits
    static let bits = 18

    /// Creates a slot from its number, which must be below ``count``.
    package init(number: UInt32) {
        precondition(number < Self.count, "slot \(number) of \(Self.count)")
        self.number = number
    }

    /// Creates the slot of a key: the highest 18 bits of the first eight bytes of its SHA-256, read
    /// as a little-endian number.
    ///
    /// The digests of all variants of a URL share these bits (``EntryName/colocated(with:)``), so
    /// the variants and their index have the same owners. Hash tables inside a node use other bits,
    /// so the keys of one owner spread evenly there.
    @inline(__always)
    package init(of keyDigest: EntryDigest) {
        number = UInt32(truncatingIfNeeded: keyDigest.first &>> UInt64(64 - Self.bits))
    }

    /// Orders slots by number.
    package static func < (left: RingSlot, right: RingSlot) -> Bool {
        left.number < right.number
    }
}

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
