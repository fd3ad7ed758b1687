import Ground

/// The distances of one member to all slots; the nearest members own a slot.
///
/// Rendezvous hashing (Thaler, Ravishankar 1996) with weights by the logarithmic method
/// (Schindelhauer, Schomaker, SPAA 2005). Among independent values −log(u)/weight, u uniform
/// between 0 and 1, each is the least with a probability proportional to its weight; after removal
/// of the least the same holds for the rest. u is XXH64 of the slot's number (8 bytes,
/// little-endian), seeded with XXH64 of the member's id (16 bytes, little-endian, seed 0). All of
/// this is constant in the protocol.
package struct SlotDistance: Sendable {
    /// The XXH64 accumulator before its only word of input.
    private let start: UInt64
    /// ⌊(2^64 − 1) / weight⌋.
    private let reciprocal: UInt64

    /// Creates the distance function of `member` from its id and weight.
    package init(of member: RingMember) {
        var bytes: [UInt8] = []
        bytes.append(member.id)
        start = XXH64.hash(bytes.span, seed: 0) &+ XXH64Prime.fifth &+ 8
        reciprocal = .max / UInt64(member.weight)
    }

    /// Returns the distance to `slot`: ⌊2^57 × −log2(u) / weight⌋, within the error of the
    /// logarithm.
    package func distance(to slot: RingSlot) -> UInt64 {
        distance(to: SlotHashWord(slot.number), .table)
    }

    @inline(__always)
    func distance(to slot: SlotHashWord, _ logarithm: BinaryLogarithm) -> UInt64 {
        logarithm.distance(below: hash(slot)).multipliedFullWidth(by: reciprocal).high
    }

    /// Returns the pseudo-random number of this member and `slot`: XXH64 of the slot's number.
    package func hash(_ slot: RingSlot) -> UInt64 {
        hash(SlotHashWord(slot.number))
    }

    @inline(__always)
    private func hash(_ slot: SlotHashWord) -> UInt64 {
        var hash = rotate(start ^ slot.premixed, 27) &* XXH64Prime.first &+ XXH64Prime.fourth
        hash = (hash ^ hash &>> 33) &* XXH64Prime.second
        hash = (hash ^ hash &>> 29) &* XXH64Prime.third
        return hash ^ hash &>> 32
    }
}

/// The part of the XXH64 of a slot's number that does not depend on the member.
struct SlotHashWord {
    fileprivate let premixed: UInt64

    @inline(__always)
    init(_ number: UInt32) {
        premixed = rotate(UInt64(number) &* XXH64Prime.second, 31) &* XXH64Prime.first
    }
}

/// The prime constants of XXH64.
private enum XXH64Prime {
    static let first: UInt64 = 0x9E37_79B1_85EB_CA87
    static let second: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    static let third: UInt64 = 0x1656_67B1_9E37_79F9
    static let fourth: UInt64 = 0x85EB_CA77_C2B2_AE63
    static let fifth: UInt64 = 0x27D4_EB2F_1656_67C5
}

@inline(__always)
private func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 {
    (word &<< bits) | (word &>> (64 &- bits))
}

/// The members nearest to a slot, found by insertion.
///
/// Members are inserted in the order of their ids; of two at one distance the one inserted first is
/// preferred. Invariant: the first `count` elements of `distances` do not descend.
struct NearestMembers {
    private var distances = InlineArray<8, UInt64>(repeating: .max)
    private var indices = InlineArray<8, UInt16>(repeating: 0)
    private var count = 0

    /// Finds the nearest of the members that `distances` belong to, which are ascending by id.
    @inline(__always)
    init(of distances: [SlotDistance], to slot: SlotHashWord, _ logarithm: BinaryLogarithm) {
        for index in distances.indices {
            let distance = distances[index].distance(to: slot, logarithm)
            insert(UInt16(truncatingIfNeeded: index), at: distance)
        }
    }

    /// The index of the member at `place`, from 0 for the nearest.
    subscript(place: Int) -> UInt16 { indices[place] }

    /// Inserts a member behind those that are as near, unless eight nearer ones are known.
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
