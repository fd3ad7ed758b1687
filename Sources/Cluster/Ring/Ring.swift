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
