import Cluster
import Foundation
import Ground
import Testing

@Suite("The logarithm of the ring")
struct BinaryLogarithmTests {
    private let logarithm = BinaryLogarithm.table

    /// −log2 of the odd number for which `number` stands, over 2^64, in floating point.
    private func exact(_ number: UInt64) -> Double {
        let odd = number | 1
        guard odd > 1 << 63 else { return 64 - log2(Double(odd)) }
        return -log1p(-Double(0 &- odd) * 0x1p-64) / log(2)
    }

    private func computed(_ number: UInt64) -> Double {
        Double(logarithm.distance(below: number)) * 0x1p-57
    }

    @Test("The interpolation points are exact to 48 bits, rounded down")
    func points() {
        #expect(logarithm.chords.count == 1_025)
        let named = [0, 1, 511, 512, 1_023, 1_024].map { logarithm.chords[$0] >> 9 }
        #expect(
            named == [
                0, 0x5C_4994_DD0F, 0x9582_8704_8518, 0x95C0_1A39_FBD6, 0xFFD1_D28E_4F28, 1 << 48,
            ])
        let all = logarithm.chords.reduce(0) { $0 &* 0x9E37_79B1_85EB_CA87 &+ $1 }
        #expect(all == 0xE418_99D5_ADA0_CA00)
    }

    @Test(
        "Distances of chosen numbers",
        arguments: [
            (0, 1 << 63), (1, 1 << 63), (2, 8_994_954_867_970_167_808),
            (3, 8_994_954_867_970_167_808), (0x1234_5678_9ABC_DEF0, 549_623_799_570_593_868),
            (1 << 63, 1 << 57), (0x8020_0000_0000_0000, 143_912_245_876_089_344),
            (3 << 62, 59_813_207_267_103_744), (0xFFFF_FFFF_FFFF_F000, 47), (.max, 1),
        ] as [(UInt64, UInt64)])
    func chosen(number: UInt64, distance: UInt64) {
        #expect(logarithm.distance(below: number) == distance)
    }

    @Test("The error is at most 2^-22.4, and near 2^64 a four-thousandth")
    func error() throws {
        var dice = SplitMix64(seed: 5)
        for _ in 0..<20_000 {
            let low = dice.next() >> UInt64.random(in: 0...63, using: &dice)
            let error = computed(low) - exact(low)
            try #require(-0x1p-44 <= error && error <= exp2(-22.4))
            let high = UInt64.max - (dice.next() >> UInt64.random(in: 0...30, using: &dice))
            let ratio = computed(high) / exact(high)
            try #require(1 - 0x1p-20 <= ratio && ratio <= 1 + 1 / 4_000)
        }
    }

    @Test("A greater number is never farther from 2^64")
    func falls() throws {
        var dice = SplitMix64(seed: 6)
        var numbers = (0..<1_024 as Range<UInt64>).flatMap { index -> [UInt64] in
            let edge = (1_024 + index) << 53
            return [edge - 2, edge - 1, edge, edge + 1, edge + 2, edge + 3]
        }
        for _ in 0..<20_000 { numbers.append(dice.next() >> (dice.next() & 63)) }
        numbers.sort()
        var last = UInt64.max
        for number in numbers {
            let distance = logarithm.distance(below: number)
            try #require(distance <= last && distance > 0)
            last = distance
        }
    }
}
