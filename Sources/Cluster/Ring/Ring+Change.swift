package import Ground

/// Incremental construction: the results equal those of a full computation, at lower cost.
extension Ring {
    /// Returns the ring of `members`, which have distinct ids and come in any order.
    ///
    /// A member whose weight changed is removed and added. If many members change, the ring is
    /// computed from scratch, which is then cheaper.
    package func changed(to members: [RingMember]) -> Ring {
        let (before, after) = (Set(self.members), Set(members))
        let removed = self.members.filter { !after.contains($0) }
        let added = members.filter { !before.contains($0) }
        if removed.isEmpty && added.isEmpty { return self }
        let cost = removed.count * Self.removalCost + added.count * Self.additionCost
        guard cost < members.count else { return Ring(members: members) }
        var ring = self
        for member in removed { ring = ring.removing(member.id) }
        for member in added { ring = ring.adding(member) }
        return ring
    }

    /// The cost of a removal, in units of one member of a ring computed from scratch.
    private static let removalCost = 10
    /// The cost of an addition, in units of one member of a ring computed from scratch.
    private static let additionCost = 3

    /// Returns this ring with `member` added, whose id must not be on it.
    ///
    /// The new member enters a slot's list ahead of the first entry that is farther away. Entries
    /// behind it move back, and one beyond the maximum length drops out. Nothing else moves.
    package func adding(_ member: RingMember) -> Ring {
        let index = members.firstIndex { member.id < $0.id } ?? members.count
        var members = members
        members.insert(member, at: index)
        let added = UInt16(truncatingIfNeeded: index)
        let distances = members.map { SlotDistance(of: $0) }
        let logarithm = BinaryLogarithm.table
        let count = min(members.count, Self.ownersPerSlotMax)
        var lists = [UInt16](repeating: 0, count: RingSlot.count * count)
        for number in 0..<RingSlot.count {
            let slot = SlotHashWord(UInt32(truncatingIfNeeded: number))
            let distance = distances[index].distance(to: slot, logarithm)
            let (source, target) = (number &* ownersPerSlot, number &* count)
            var place = ownersPerSlot
            while place > 0 {
                let other = Self.shiftedIndex(added, self.ownerIndices[source &+ place &- 1])
                let theirs = distances[Int(other)].distance(to: slot, logarithm)
                guard distance < theirs || distance == theirs && added < other else { break }
                place &-= 1
            }
            for position in 0..<min(place, count) {
                lists[target &+ position] = Self.shiftedIndex(
                    added, self.ownerIndices[source &+ position])
            }
            guard place < count else { continue }
            lists[target &+ place] = added
            for position in place &+ 1..<count {
                lists[target &+ position] =
                    Self.shiftedIndex(added, self.ownerIndices[source &+ position &- 1])
            }
        }
        return Ring(sorted: members, lists: lists)
    }

    /// Returns this ring without the member `id`, or this ring unchanged if `id` is not on it.
    ///
    /// In each list the entries behind `id` move up, and the nearest remaining member fills the
    /// end. Nothing else moves.
    package func removing(_ id: NodeID) -> Ring {
        guard let index = members.firstIndex(where: { $0.id == id }) else { return self }
        var members = members
        members.remove(at: index)
        let removed = UInt16(truncatingIfNeeded: index)
        let distances = members.map { SlotDistance(of: $0) }
        let logarithm = BinaryLogarithm.table
        let count = min(members.count, Self.ownersPerSlotMax)
        var lists = [UInt16](repeating: 0, count: RingSlot.count * count)
        for number in 0..<RingSlot.count {
            let (source, target) = (number &* ownersPerSlot, number &* count)
            var place = 0
            while place < ownersPerSlot, self.ownerIndices[source &+ place] != removed {
                place &+= 1
            }
            if place < ownersPerSlot, count == ownersPerSlot {
                let slot = SlotHashWord(UInt32(truncatingIfNeeded: number))
                let nearest = NearestMembers(of: distances, to: slot, logarithm)
                for position in 0..<count { lists[target &+ position] = nearest[position] }
                continue
            }
            for position in 0..<count {
                let other = self.ownerIndices[source &+ position &+ (position < place ? 0 : 1)]
                lists[target &+ position] = other > removed ? other &- 1 : other
            }
        }
        return Ring(sorted: members, lists: lists)
    }

    /// Returns the index of `member` after an insertion at index `added`.
    @inline(__always)
    private static func shiftedIndex(_ added: UInt16, _ member: UInt16) -> UInt16 {
        member < added ? member : member &+ 1
    }
}
