package import Ground

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
