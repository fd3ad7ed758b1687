package import Ground

/// Rings made from rings: what they give is what computing anew gives, for less.
extension Ring {
    /// The ring of `members`, of different ids, in any order.
    ///
    /// A member with another weight has left and joined. Where many members change a ring anew
    /// costs less, and is computed.
    package func changed(to members: [RingMember]) -> Ring {
        let (before, after) = (Set(self.members), Set(members))
        let gone = self.members.filter { !after.contains($0) }
        let come = members.filter { !before.contains($0) }
        if gone.isEmpty && come.isEmpty { return self }
        let cost = gone.count * Self.removalCost + come.count * Self.additionCost
        guard cost < members.count else { return Ring(members: members) }
        var ring = self
        for member in gone { ring = ring.removing(member.id) }
        for member in come { ring = ring.adding(member) }
        return ring
    }

    /// What a removal costs, in members of a ring computed anew.
    private static let removalCost = 10
    /// What an addition costs, in members of a ring computed anew.
    private static let additionCost = 3

    /// The ring with `member`, whose id must not be on it.
    ///
    /// The new member enters the lists where it is nearer than one that is there, and the last goes
    /// out; nothing else moves.
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

    /// The ring without the member `id`; this one if it is not on it.
    ///
    /// Those behind it in a list move up, and the nearest of the others comes in at the end;
    /// nothing else moves.
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

    /// `member`'s index after one was inserted at `added`.
    @inline(__always)
    private static func shiftedIndex(_ added: UInt16, _ member: UInt16) -> UInt16 {
        member < added ? member : member &+ 1
    }
}
