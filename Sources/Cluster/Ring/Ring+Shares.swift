package import Ground

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
