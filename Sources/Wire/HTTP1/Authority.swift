import Ground

/// Validates `uri-host [":" port]`, the value of Host (RFC 9110 §7.2, RFC 3986 §3.2).
package enum Authority {
    /// Returns true if the bytes in `range` are a non-empty name or address with an optional port
    /// up to 65535.
    ///
    /// User information is rejected (RFC 9110 §4.2.4), as is an empty host (§4.2.1).
    package static func isValid(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard !range.isEmpty else { return false }
        var index = range.lowerBound
        let end = range.upperBound
        if bytes[index] == Byte.bracketOpen {
            guard let close = bracketEnd(bytes, from: index, end: end) else { return false }
            index = close
        } else {
            index = commonPrefixEnd(bytes, from: index, end: end)
            while index < end {
                let byte = bytes[index]
                if ByteSet.registeredName.contains(byte) {
                    index &+= 1
                    continue
                }
                guard byte == Byte.percent else { break }
                guard index + 2 < end, ASCII.hexValue(bytes[index + 1]) != nil,
                    ASCII.hexValue(bytes[index + 2]) != nil
                else { return false }
                index &+= 3
            }
            guard index > range.lowerBound else { return false }
        }
        return index == end || isPort(bytes, from: index, end: end)
    }

    /// Returns the offset of the first byte that is not a letter, digit, `-` or `.`; `end` if there
    /// is none.
    @inline(__always)
    private static func commonPrefixEnd(_ bytes: Span<UInt8>, from start: Int, end: Int) -> Int {
        var index = start
        while true {
            let outside = ByteLanes.outsideCommonHost(bytes.word(at: index, end: end))
            if outside != 0 { return index &+ ByteLanes.firstIndex(outside) }
            index &+= 8
        }
    }

    /// Returns the offset past the `]` of an IPv6 address; `nil` if it is malformed.
    private static func bracketEnd(_ bytes: Span<UInt8>, from start: Int, end: Int) -> Int? {
        var index = start + 1
        while index < end, ByteSet.addressV6.contains(bytes[index]) { index += 1 }
        guard index > start + 2, index < end, bytes[index] == Byte.bracketClose else { return nil }
        return index + 1
    }

    /// Returns true for `:` and at most a 16-bit number; `:` alone means the default port (RFC 3986
    /// §3.2.3).
    private static func isPort(_ bytes: Span<UInt8>, from start: Int, end: Int) -> Bool {
        guard bytes[start] == Byte.colon else { return false }
        var port: UInt32 = 0
        for index in start + 1..<end {
            let digit = bytes[index] &- 0x30
            guard digit < 10 else { return false }
            port = port &* 10 &+ UInt32(digit)
            guard port <= 65535 else { return false }
        }
        return true
    }
}
