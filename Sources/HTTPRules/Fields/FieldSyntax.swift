package import Ground

/// The syntax elements that field values are built of (RFC 9110 §5.6).
package enum FieldSyntax {
    /// Returns true if all bytes in `range` may occur in a token (RFC 9110 §5.6.2).
    static func isToken(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        for index in range where !ByteSet.token.contains(bytes[index]) { return false }
        return true
    }

    /// Returns `range` without the white space at both ends.
    package static func trimmed(_ bytes: Span<UInt8>, at range: Range<Int>) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, ASCII.isWhitespace(bytes[start]) { start += 1 }
        while start < end, ASCII.isWhitespace(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    /// Returns the offset of the first `delimiter` in `range` outside quoted strings (RFC 9110
    /// §5.6.4), or the end of `range`.
    ///
    /// An unterminated quoted string reaches to the end.
    package static func find(_ delimiter: UInt8, in bytes: Span<UInt8>, at range: Range<Int>) -> Int
    {
        var index = range.lowerBound
        var quoted = false
        while index < range.upperBound {
            let byte = bytes[index]
            if quoted {
                if byte == UInt8(ascii: "\\") { index += 1 }
                if byte == UInt8(ascii: "\"") { quoted = false }
            } else {
                if byte == delimiter { return index }
                quoted = byte == UInt8(ascii: "\"")
            }
            index += 1
        }
        return range.upperBound
    }

    /// Returns the next element of the comma-separated list in `range`, without white space around
    /// it; `nil` at the end.
    ///
    /// Empty elements are skipped (RFC 9110 §5.6.1.2). `cursor` must start at the lower bound of
    /// `range`. Without quoted strings every comma separates.
    package static func nextElement(
        _ bytes: Span<UInt8>, at range: Range<Int>, cursor: inout Int,
        hasQuotedStrings: Bool = true
    ) -> Range<Int>? {
        while cursor < range.upperBound {
            let rest = cursor..<range.upperBound
            let end =
                hasQuotedStrings
                ? find(UInt8(ascii: ","), in: bytes, at: rest)
                : rest.first { bytes[$0] == UInt8(ascii: ",") } ?? rest.upperBound
            let element = trimmed(bytes, at: cursor..<end)
            cursor = end + 1
            if !element.isEmpty { return element }
        }
        return nil
    }
}

/// The syntax of a non-negative number of seconds in a field value (RFC 9111 §1.2.2).
package enum DeltaSeconds {
    /// The number of seconds that replaces every greater one, about 68 years.
    package static let max: Int64 = 2_147_483_648

    /// Parses the number in `range`; `nil` if it is empty or holds anything but digits.
    package static func parse(_ bytes: Span<UInt8>, at range: Range<Int>) -> Interval? {
        if range.isEmpty { return nil }
        var seconds: Int64 = 0
        for index in range {
            guard ASCII.isDigit(bytes[index]) else { return nil }
            seconds = min(max, seconds * 10 + Int64(bytes[index] &- 0x30))
        }
        return .seconds(seconds)
    }
}

extension ByteSet {
    /// The token characters and the slash between a type and its subtype (RFC 9110 §12.5.1).
    @inline(__always)
    static var mediaRange: ByteSet {
        ByteSet(low: 0x03FF_ECFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE)
    }

    /// The unreserved characters (RFC 3986 §2.3), never percent-encoded in a canonical URL.
    @inline(__always)
    static var unreserved: ByteSet {
        ByteSet(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    }

    /// The ``unreserved`` characters and the further ones of Base64 (RFC 4648 §4).
    @inline(__always)
    static var requestID: ByteSet {
        ByteSet(low: 0x23FF_E800_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    }

    /// The characters that need no escape in path and query (RFC 3986 §3.3, §3.4): `pchar` without
    /// escapes, `/` and `?`.
    @inline(__always)
    static var target: ByteSet {
        ByteSet(low: 0xAFFF_FFD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFF)
    }

    /// The ``target`` characters without `.` and `?`, which need further checks in a path.
    @inline(__always)
    static var plainPath: ByteSet {
        ByteSet(low: 0x2FFF_BFD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFF)
    }

    /// The characters of a host name in a canonical URL: lower-case letters, digits, `-`, `_` and
    /// `.`.
    @inline(__always)
    static var host: ByteSet {
        ByteSet(low: 0x03FF_6000_0000_0000, high: 0x07FF_FFFE_8000_0000)
    }
}
