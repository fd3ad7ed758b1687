/// A number of 64 bits as sixteen hexadecimal digits in lower case, made without a table, a branch
/// or memory of its own.
package struct HexDigits: Hashable, Sendable {
    /// The digits, eight to a word: in the order of memory of a little-endian machine.
    package let high: UInt64
    package let low: UInt64

    /// How many digits there are.
    package static let count = 16

    package init(_ number: UInt64) {
        high = Self.digits(number &>> 32)
        low = Self.digits(number & 0xFFFF_FFFF)
    }

    package func append(to bytes: inout [UInt8]) {
        for word in [high, low] {
            for place in 0..<8 as Range<UInt64> {
                bytes.append(UInt8(truncatingIfNeeded: word &>> (8 &* place)))
            }
        }
    }

    /// Eight digits of 32 bits, the first in the lowest byte.
    @inline(__always)
    private static func digits(_ number: UInt64) -> UInt64 {
        // One nibble to a byte.
        var lanes = (number | number &<< 16) & 0x0000_FFFF_0000_FFFF
        lanes = (lanes | lanes &<< 8) & 0x00FF_00FF_00FF_00FF
        lanes = (lanes | lanes &<< 4) & 0x0F0F_0F0F_0F0F_0F0F
        // 1 in each byte that is ten or more: there the letters stand further on.
        let letters = (lanes &+ 0x0606_0606_0606_0606) &>> 4 & 0x0101_0101_0101_0101
        return (lanes &+ 0x3030_3030_3030_3030 &+ letters &* 0x27).byteSwapped
    }
}
