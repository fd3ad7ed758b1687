import Ground

/// What may stand as the host of a URL: a DNS name in ASCII, or an IPv4 address as four decimal
/// numbers.
package enum HostName {
    /// Bytes of a label (RFC 1035 §2.3.4).
    package static let labelBytesMax = 63
    /// Bytes of a whole name without its trailing dot (RFC 1035 §2.3.4).
    package static let bytesMax = 253

    /// False if the last label is a number but the whole is not an IPv4 address in its one strict
    /// form.
    ///
    /// Other readers take `0x7f.1`, `127.1`, `2130706433` and `0177.0.0.1` for addresses, so none
    /// is let through as a name (the URL Standard's "ends in a number").
    package static func isNameOrIPv4(
        _ bytes: Span<UInt8>, at range: Range<Int>, lastLabel: Int
    ) -> Bool {
        !isNumber(bytes, at: lastLabel..<range.upperBound) || isIPv4(bytes, at: range)
    }

    /// True for digits only, and for `0x` followed by hexadecimal digits or nothing.
    private static func isNumber(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        if range.count >= 2, bytes[range.lowerBound] == UInt8(ascii: "0"),
            bytes[range.lowerBound + 1] | 0x20 == UInt8(ascii: "x")
        {
            for index in range.lowerBound + 2..<range.upperBound
            where Byte.hexValue(bytes[index]) == nil {
                return false
            }
            return true
        }
        for index in range where !Byte.isDigit(bytes[index]) { return false }
        return true
    }

    /// True for four decimal numbers of 0 to 255 without leading zeros, with dots between.
    package static func isIPv4(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        ipv4(bytes, at: range) != nil
    }

    /// The address as a number, first part highest; nil if it is not in the one strict form.
    package static func ipv4(_ bytes: Span<UInt8>, at range: Range<Int>) -> UInt32? {
        var address: UInt32 = 0
        var parts = 0
        var index = range.lowerBound
        while true {
            let start = index
            var part: UInt32 = 0
            while index < range.upperBound, index < start + 4, Byte.isDigit(bytes[index]) {
                part = part * 10 + UInt32(bytes[index] &- 0x30)
                index += 1
            }
            guard index > start, part <= 255,
                index == start + 1 || bytes[start] != UInt8(ascii: "0")
            else { return nil }
            address = address << 8 | part
            parts += 1
            if index == range.upperBound { return parts == 4 ? address : nil }
            guard parts < 4, bytes[index] == UInt8(ascii: ".") else { return nil }
            index += 1
        }
    }
}
