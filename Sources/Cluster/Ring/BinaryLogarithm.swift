/// A fixed-point −log2(number / 2^64) that gives the same bits on every machine.
///
/// The last bit of a floating-point logarithm differs between C libraries, and two nodes that
/// differ in it would compute different owners. Here 1,024 chords approximate the curve between two
/// powers of two. A chord lies below the curve by at most 2^-22.4 (δ² / (8 ln 2) at δ = 2^-10), so
/// results are too large by at most that much. Near 2^64, where results are small and owners are
/// decided, the error is at most 1 in 4,096. Unequal weights cause larger deviations by chance.
package struct BinaryLogarithm: Sendable {
    /// The 1,025 chord ends: element `index` is 2^9 × ⌊2^48 × log2(1 + `index` / 1,024)⌋.
    package let chords: [UInt64]

    /// The number of fraction bits of results, whose unit is 2^-57.
    package static let fractionBits: UInt64 = 57

    /// The shared instance.
    package static let table = BinaryLogarithm()

    private static let indexBits: UInt64 = 10

    private init() {
        let count: UInt64 = 1 << Self.indexBits
        var chords = (0..<count).map { index in
            Self.fraction(of: (count + index) << (63 - Self.indexBits))
        }
        chords.append(1 << Self.fractionBits)
        self.chords = chords
    }

    /// Returns how far `number`, with its lowest bit set, lies below 2^64 on a binary logarithmic
    /// scale.
    ///
    /// Monotonic: never rises as `number` rises.
    ///
    /// - Returns: 1 to 2^63, in units of 2^-57.
    @inline(__always)
    package func distance(below number: UInt64) -> UInt64 {
        let odd = number | 1
        let zeros = UInt64(truncatingIfNeeded: odd.leadingZeroBitCount)
        let mantissa = (odd &<< zeros) &<< 1
        let index = Int(truncatingIfNeeded: mantissa &>> (64 &- Self.indexBits))
        let (start, end) = (chords[index], chords[index &+ 1])
        let along = (end &- start).multipliedFullWidth(by: mantissa &<< Self.indexBits).high
        return ((zeros &+ 1) &<< Self.fractionBits) &- start &- along
    }

    /// Returns log2(`number` / 2^63) in units of 2^-57, for `number` from 2^63 up.
    ///
    /// Squaring doubles the logarithm; each time the square reaches 2 the next bit is 1 (Knuth,
    /// TAOCP 1, §1.2.2). 48 bits are certain with 64-bit squares unless the value lies within 2^-62
    /// of a multiple of 2^-48; none of the 1,024 values does.
    private static func fraction(of number: UInt64) -> UInt64 {
        let certainBits: UInt64 = 48
        var square = number
        var bits: UInt64 = 0
        for _ in 0..<certainBits {
            let (high, low) = square.multipliedFullWidth(by: square)
            bits = bits << 1 | high >> 63
            square = high >> 63 == 1 ? high : high << 1 | low >> 63
        }
        return bits << (fractionBits - certainBits)
    }
}
