/// What one request is called in its answer, in lines of logs, and towards owners and origins: the
/// value of X-Request-Id.
package struct RequestID: Hashable, Sendable {
    /// 1 to ``bytesMax`` bytes, which ``isSafe(_:at:)``.
    package let text: [UInt8]

    /// The name of the field.
    package static let fieldName = "X-Request-Id"
    /// What somebody else may call a request.
    package static let bytesMax = 128

    /// The request with this number of a run of the node: what it drew at its start.
    package init(process: UInt64, number: UInt64) {
        var text: [UInt8] = []
        text.reserveCapacity(2 * HexDigits.count)
        HexDigits(process).append(to: &text)
        HexDigits(number).append(to: &text)
        self.text = text
    }

    /// What somebody else calls it; nil if that is not safe to repeat.
    package init?(_ text: [UInt8]) {
        guard Self.isSafe(text.span, at: text.indices) else { return nil }
        self.text = text
    }

    /// True for a name that can stand in a field and in a line of any log as it is.
    package static func isSafe(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard 1...bytesMax ~= range.count else { return false }
        for index in range where !ByteSet.requestID.contains(bytes[index]) { return false }
        return true
    }
}

extension RequestID: CustomStringConvertible {
    package var description: String { String(decoding: text, as: UTF8.self) }
}

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
