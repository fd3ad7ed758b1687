package import Ground

/// Who owns which slot, in which order: the same on every node that has the same members.
///
/// Computed once for a set of members, off the event loops, then shared and never changed: a
/// look-up is a read of an array. A change of members makes another ring (``changed(to:)``). At
/// most 4 MiB. `Ring.md` states the function with test vectors.
package final class Ring: Sendable {
    /// By id.
    package let members: [RingMember]
    /// Number of owners in each slot's list: that of the members, but at most ``listMax``.
    package let ownersPerSlot: Int
    /// At member: the slots that it owns first.
    package let slotsOwned: [Int]
    /// Slot by slot its ``listCount`` nearest members, as indices, the nearest first.
    let ownerIndices: [UInt16]

    /// The most members of a cluster.
    package static let membersMax = 256
    /// The most members that a ring can be computed for: studies look further than clusters grow.
    package static let computableMax = 4_096
    /// The longest list: 2 owners, 3 nodes to look back at, and 3 for those that are not reached.
    package static let ownersPerSlotMax = 8

    /// The ring of `members`, of different ids, in any order.
    ///
    /// It takes as many distances as there are slots and members: 2 to 5 ms a member.
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

    /// Who owns the key with `keyDigest`, that of the URL also for its variants.
    package func owners(of keyDigest: EntryDigest) -> Owners {
        owners(of: RingSlot(of: keyDigest))
    }

    /// Who owns `slot`.
    package func owners(of slot: RingSlot) -> Owners {
        Owners(ring: self, start: Int(slot.number) * ownersPerSlot)
    }

    /// The members of a slot in order of preference: the first owns it, the second is the first's
    /// replica, and so on.
    ///
    /// Empty on an empty ring. Makes no allocation.
    package struct Owners: RandomAccessCollection, Sendable {
        fileprivate let ring: Ring
        /// Where the slot's list begins.
        fileprivate let start: Int

        package var startIndex: Int { 0 }
        package var endIndex: Int { ring.ownersPerSlot }
        package var count: Int { ring.ownersPerSlot }

        package subscript(position: Int) -> NodeID {
            ring.members[memberIndex(at: position)].id
        }

        /// Where in ``Ring/members`` the owner at `position` stands.
        package func memberIndex(at position: Int) -> Int {
            precondition(0..<count ~= position, "position \(position) of \(count)")
            return Int(ring.ownerIndices[start + position])
        }
    }
}

extension Ring: Equatable {
    /// True if all lists are the same, and the weights.
    package static func == (left: Ring, right: Ring) -> Bool {
        left.members == right.members && left.ownerIndices == right.ownerIndices
    }
}

/// What of the ring is whose.
extension Ring {
    /// The part of all slots that `id` owns first, 0 to 1; 0 for a node that is not on the ring.
    package func share(of id: NodeID) -> Double {
        guard let index = members.firstIndex(where: { $0.id == id }) else { return 0 }
        return Double(slotsOwned[index]) / Double(RingSlot.count)
    }

    /// At member: the part of all slots in whose lists it stands at `position`, from 0.
    package func shares(at position: Int) -> [Double] {
        var counts = Array(repeating: 0, count: members.count)
        guard position < ownersPerSlot else { return counts.map { _ in 0 } }
        for index in stride(from: position, to: ownerIndices.count, by: ownersPerSlot) {
            counts[Int(ownerIndices[index])] += 1
        }
        return counts.map { Double($0) / Double(RingSlot.count) }
    }

    /// The slots that have `id` among the first `positions` of their lists, in order.
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

    /// How many slots have another first owner than on `other`, or one where they had none.
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

/// How evenly a ring spreads slots, and how many move when a node joins or leaves.
package struct RingStatistics: Sendable {
    package let nodes: Int
    /// Slots of the node that owns most, and of the one that owns fewest, over the mean.
    package let peakToMean: Double
    package let minToMean: Double
    /// Slots that moved when a node joined, over what it would own if all owned alike.
    package let movedOnJoinToMean: Double
    /// Slots that moved when a node left, over what it would have owned if all had owned alike.
    package let movedOnLeaveToMean: Double

    /// Of `ring`, the same with one node more (`joined`), and with one node less (`left`).
    ///
    /// `ring` is not empty.
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

    /// `count` members of the usual weight with the ids that `dice` throw.
    package static func members(_ count: Int, using dice: inout SplitMix64) -> [RingMember] {
        (0..<count).map { _ in RingMember(NodeID(using: &dice)) }
    }
}
