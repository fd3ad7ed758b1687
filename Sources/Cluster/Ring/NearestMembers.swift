/// The members nearest to a slot, while they are looked for.
///
/// Members are offered in the order of their ids; of two that are equally near the one offered
/// before comes first. Invariant: the first ``count`` of ``distances`` do not fall.
struct NearestMembers {
    private var distances = InlineArray<8, UInt64>(repeating: .max)
    private var indices = InlineArray<8, UInt16>(repeating: 0)
    private var count = 0

    /// The nearest of all whose `distances` these are, by id.
    @inline(__always)
    init(of distances: [SlotDistance], to slot: SlotHashWord, _ logarithm: BinaryLogarithm) {
        for index in distances.indices {
            let distance = distances[index].distance(to: slot, logarithm)
            insert(UInt16(truncatingIfNeeded: index), at: distance)
        }
    }

    /// The member at `place`, the nearest at 0.
    subscript(place: Int) -> UInt16 { indices[place] }

    @inline(__always)
    private mutating func insert(_ member: UInt16, at distance: UInt64) {
        var place = Ring.ownersPerSlotMax &- 1
        if count < Ring.ownersPerSlotMax {
            place = count
            count &+= 1
        } else if distance >= distances[place] {
            return
        }
        while place > 0, distance < distances[place &- 1] {
            distances[place] = distances[place &- 1]
            indices[place] = indices[place &- 1]
            place &-= 1
        }
        distances[place] = distance
        indices[place] = member
    }
}
