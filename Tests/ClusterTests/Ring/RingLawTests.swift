import Cluster
import Ground
import Testing
import Trials

@Suite("Invariants of the ring", .disabled(if: Trials.isReduced))
struct RingLawTests {
    /// Every 31st slot, and the last.
    private static let sample = Array(stride(from: 0, to: RingSlot.count, by: 31)) + [262_143]

    private func slot(_ number: Int) -> RingSlot { RingSlot(number: UInt32(number)) }

    /// Random members with weights from 50 to 400.
    private func members(_ count: Int, seed: UInt64) -> [RingMember] {
        var dice = SplitMix64(seed: seed)
        return (0..<count).map { _ in
            RingMember(NodeID(using: &dice), weight: .random(in: 50...400, using: &dice))
        }
    }

    @Test(
        "A list has the eight members with the least distance, or all",
        arguments: [1, 2, 7, 8, 9, 12, 260])
    func model(count: Int) throws {
        let members = members(count, seed: 1)
        let distances = members.map { ($0.id, SlotDistance(of: $0)) }
        let ring = Ring(members: members)
        #expect(ring.ownersPerSlot == min(count, 8))
        for number in stride(from: 0, to: RingSlot.count, by: 1_021) {
            let slot = slot(number)
            let order = distances.map { ($0.1.distance(to: slot), $0.0) }.sorted { $0 < $1 }
            try #require(Array(ring.owners(of: slot)) == order.prefix(8).map(\.1))
        }
    }

    @Test("A slot's draw is XXH64 of its number, seeded with XXH64 of the id")
    func hash() throws {
        for member in members(20, seed: 2) {
            var name: [UInt8] = []
            name.append(member.id)
            let distance = SlotDistance(of: member)
            for number in Self.sample.prefix(100) + [262_143] {
                var word: [UInt8] = []
                word.appendLittle(UInt64(number))
                let seed = XXH64.hash(name.span, seed: 0)
                let hash = XXH64.hash(word.span, seed: seed)
                try #require(distance.hash(slot(number)) == hash)
            }
        }
    }

    @Test("The ring does not depend on the order of its members")
    func order() {
        var dice = SplitMix64(seed: 3)
        let members = members(10, seed: 3)
        let ring = Ring(members: members)
        #expect(ring.members == members.sorted { $0.id < $1.id })
        for _ in 0..<3 { #expect(Ring(members: members.shuffled(using: &dice)) == ring) }
        var grown = Ring(members: [])
        for member in members.shuffled(using: &dice) { grown = grown.adding(member) }
        #expect(grown == ring)
    }

    @Test("An updated ring equals a newly computed one", arguments: [0, 1, 7, 8])
    func incremental(count: Int) {
        let ring = Ring(members: members(count, seed: 4))
        let newcomers = [
            RingMember(NodeID(low: 0, high: 0), weight: 100),
            RingMember(NodeID(low: 0, high: 1 << 63), weight: 300),
            RingMember(NodeID(low: .max, high: .max), weight: 50),
        ]
        for newcomer in newcomers {
            let joined = ring.adding(newcomer)
            #expect(joined == Ring(members: [newcomer] + ring.members))
            #expect(joined != ring)
            #expect(joined.removing(newcomer.id) == ring)
        }
        #expect(ring.removing(NodeID(low: 5, high: 5)) == ring)
    }

    /// Of 14 nodes, the numbers that leave, that change weight, and that join.
    @Test(
        "After any combination of changes the updated ring equals a new one",
        arguments: [(0, 0, 0), (1, 0, 1), (0, 1, 0), (2, 0, 3), (14, 0, 0)])
    func changed(gone: Int, reweighted: Int, come: Int) {
        let all = members(14 + come, seed: 5)
        var after = Array(all[gone...])
        for index in 0..<reweighted {
            after[index] = RingMember(after[index].id, weight: after[index].weight + 1)
        }
        let ring = Ring(members: Array(all.prefix(14)))
        #expect(ring.changed(to: after.reversed()) == Ring(members: after))
    }

    @Test(
        "A joining member enters lists and displaces the last; all others keep their order",
        arguments: [1, 7, 8, 12])
    func joins(count: Int) throws {
        let members = members(count + 1, seed: 6)
        let newcomer = members[count].id
        let ring = Ring(members: members.dropLast())
        let joined = ring.adding(members[count])
        var entered = Array(repeating: 0, count: 8)
        for number in Self.sample {
            let before = Array(ring.owners(of: slot(number)))
            let after = Array(joined.owners(of: slot(number)))
            let others = after.filter { $0 != newcomer }
            try #require(others == Array(before.prefix(others.count)))
            try #require(after.count == min(count + 1, 8) && others.count >= after.count - 1)
            if let place = after.firstIndex(of: newcomer) { entered[place] += 1 }
        }
        #expect(entered.prefix(joined.ownersPerSlot).allSatisfy { $0 > 0 })
    }

    @Test(
        "A leaving member is followed by those after it; all others keep their order",
        arguments: [1, 2, 8, 9, 12])
    func leaves(count: Int) throws {
        let members = members(count, seed: 7)
        let gone = members[count / 2].id
        let ring = Ring(members: members)
        let left = ring.removing(gone)
        for number in Self.sample {
            let before = Array(ring.owners(of: slot(number)))
            let after = Array(left.owners(of: slot(number)))
            let others = before.filter { $0 != gone }
            try #require(Array(after.prefix(others.count)) == others)
            try #require(after.count == min(count - 1, 8))
            try #require(Set(after).count == after.count && !after.contains(gone))
        }
    }

    @Test("At equal distance the lower id comes first, whatever the order")
    func ties() throws {
        let low = NodeID(low: 1, high: 0x1000)
        let high = colliding(with: low, low: 2)
        let (first, second) = low < high ? (low, high) : (high, low)
        let distances = [first, second].map { SlotDistance(of: RingMember($0)) }
        let third = RingMember(NodeID(low: 3, high: 3))
        let rings = [
            Ring(members: [RingMember(second), third, RingMember(first)]),
            Ring(members: [third, RingMember(first)]).adding(RingMember(second)),
            Ring(members: [third, RingMember(second)]).adding(RingMember(first)),
        ]
        for number in Self.sample {
            let slot = slot(number)
            try #require(distances[0].distance(to: slot) == distances[1].distance(to: slot))
            for ring in rings {
                let order = ring.owners(of: slot).filter { $0 != third.id }
                try #require(order == [first, second])
            }
        }
        #expect(rings[0].share(of: second) == 0)
    }

    /// An id with the first word `low` whose XXH64 equals that of `id`.
    ///
    /// The second word can compensate for any first one.
    private func colliding(with id: NodeID, low: UInt64) -> NodeID {
        let (first, second, fourth, fifth): (UInt64, UInt64, UInt64, UInt64) = (
            0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x85EB_CA77_C2B2_AE63,
            0x27D4_EB2F_1656_67C5
        )
        func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 { word << bits | word >> (64 - bits) }
        func inverse(_ odd: UInt64) -> UInt64 {
            (0..<6).reduce(odd) { guess, _ in guess &* (2 &- odd &* guess) }
        }
        func mixed(_ word: UInt64) -> UInt64 { rotate(word &* second, 31) &* first }
        func unmixed(_ word: UInt64) -> UInt64 {
            rotate(word &* inverse(first), 33) &* inverse(second)
        }
        func accumulated(_ word: UInt64) -> UInt64 {
            rotate((fifth &+ 16) ^ mixed(word), 27) &* first &+ fourth
        }
        let difference = accumulated(id.low) ^ accumulated(low)
        return NodeID(low: low, high: unmixed(mixed(id.high) ^ difference))
    }

    @Test("An empty ring has no owners, and a ring of one has one")
    func small() {
        let empty = Ring(members: [])
        #expect(empty.owners(of: slot(5)).isEmpty && empty.slotsMoved(from: empty) == 0)
        let member = members(1, seed: 8)[0]
        #expect(empty.share(of: member.id) == 0 && empty.slots(ownedBy: member.id).isEmpty)
        let one = Ring(members: [member])
        #expect(Self.sample.allSatisfy { Array(one.owners(of: slot($0))) == [member.id] })
        #expect(one.share(of: member.id) == 1)
        #expect(one.slots(ownedBy: member.id).map(\.number) == Array(0..<262_144))
        #expect(one.slotsMoved(from: empty) == RingSlot.count)
        #expect(empty.slotsMoved(from: one) == RingSlot.count)
    }
}
