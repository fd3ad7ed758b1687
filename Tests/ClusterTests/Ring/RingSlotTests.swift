import Cluster
import Ground
import Testing

@Suite("Slots")
struct RingSlotTests {
    @Test("A key's slot is the highest 18 bits of the first word of its digest")
    func bits() {
        for bit in 0..<64 as Range<UInt64> {
            let number = RingSlot(of: EntryDigest(first: 1 << bit, second: .max)).number
            #expect(number == (bit < 46 ? 0 : 1 << (bit - 46)))
        }
        #expect(RingSlot(of: EntryDigest(first: .max, second: 0)).number == 262_143)
    }

    @Test("The owners of a key are those of its slot")
    func lookUp() throws {
        var dice = SplitMix64(seed: 3)
        let ring = Ring(members: RingStatistics.members(9, using: &dice))
        for _ in 0..<1_000 {
            let digest = EntryDigest(first: dice.next(), second: dice.next())
            let owners = ring.owners(of: digest)
            try #require(Array(owners) == Array(ring.owners(of: RingSlot(of: digest))))
            try #require(owners.count == 8 && owners.startIndex == 0 && owners.endIndex == 8)
            for position in owners.indices {
                let member = ring.members[owners.memberIndex(at: position)]
                try #require(owners[position] == member.id)
            }
        }
    }

    @Test("Slots are ordered by number")
    func order() {
        #expect(RingSlot(number: 1) < RingSlot(number: 2))
        #expect(!(RingSlot(number: 2) < RingSlot(number: 2)))
    }
}
