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
        !isNumber(bytes, at: lastLabel..<range.upperBound)
            || IPAddress.readV4(bytes, at: range) != nil
    }

    /// True for digits only, and for `0x` followed by hexadecimal digits or nothing.
    private static func isNumber(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        if range.count >= 2, bytes[range.lowerBound] == UInt8(ascii: "0"),
            bytes[range.lowerBound + 1] | 0x20 == UInt8(ascii: "x")
        {
            for index in range.lowerBound + 2..<range.upperBound
            where ASCII.hexValue(bytes[index]) == nil {
                return false
            }
            return true
        }
        for index in range where !ASCII.isDigit(bytes[index]) { return false }
        return true
    }
}
