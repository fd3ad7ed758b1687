import Ground

/// Tests of eight bytes at a time in one `UInt64`, the first byte lowest.
///
/// Each test returns a word with the high bit of each byte that passed. In the tests that subtract
/// with a borrow only the lowest set bit is exact: bits above it may be false positives.
enum ByteLanes {
    static let ones: UInt64 = 0x0101_0101_0101_0101
    static let highs: UInt64 = 0x8080_8080_8080_8080
    static let lows: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
    static let caseBits: UInt64 = 0x2020_2020_2020_2020

    /// Marks control bytes, including DEL; the lowest set bit is exact.
    @inline(__always)
    static func controls(_ word: UInt64) -> UInt64 {
        let low = (word &- ones &* 0x20) & ~word
        let apart = word ^ (ones &* 0x7F)
        let del = (apart &- ones) & ~apart
        return (low | del) & highs
    }

    /// Marks bytes that are invalid in a request target; the lowest set bit is exact.
    ///
    /// They are all bytes up to space, `#`, DEL and all bytes above.
    @inline(__always)
    static func outsideTarget(_ word: UInt64) -> UInt64 {
        let low = (word &- ones &* 0x21) & ~word
        let apart = word ^ (ones &* 0x23)
        let hash = (apart &- ones) & ~apart
        let high = (word &+ ones) | word
        return (low | hash | high) & highs
    }

    /// Marks bytes equal to `byte`; the lowest set bit is exact.
    @inline(__always)
    static func bytes(_ word: UInt64, equalTo byte: UInt8) -> UInt64 {
        let apart = word ^ (ones &* UInt64(byte))
        return (apart &- ones) & ~apart & highs
    }

    /// Marks bytes that are not a letter, a digit, `-` or `.`; every bit is exact.
    @inline(__always)
    static func outsideCommonHost(_ word: UInt64) -> UInt64 {
        let folded = (word | caseBits) & lows
        let letter = (folded &+ ones &* 0x1F) & ~(folded &+ ones &* 0x05)
        let seven = word & lows
        let dashToNine = (seven &+ ones &* 0x53) & ~(seven &+ ones &* 0x46)
        let apart = word ^ (ones &* 0x2F)
        let notSlash = ((apart & lows) &+ lows) | apart
        return ~((letter | dashToNine) & notSlash & ~word) & highs
    }

    /// Marks bytes that are neither a letter nor `-`; every bit is exact.
    @inline(__always)
    static func outsideCommonName(_ word: UInt64) -> UInt64 {
        let seven = (word | caseBits) & lows
        let letter = (seven &+ ones &* 0x1F) & ~(seven &+ ones &* 0x05)
        let apart = word ^ (ones &* 0x2D)
        let notDash = ((apart & lows) &+ lows) | apart
        return (~(letter & ~word) & notDash) & highs
    }

    /// Returns the number of bytes below the lowest marked one; `lanes` must not be 0.
    @inline(__always)
    static func firstIndex(_ lanes: UInt64) -> Int {
        lanes.trailingZeroBitCount &>> 3
    }
}

extension Span<UInt8> {
    /// Returns the eight bytes from `index`, the first byte lowest; bytes at and past `end` read as
    /// 0.
    ///
    /// `index` must not be negative, and `end` must not exceed the count.
    @inline(__always)
    func word(at index: Int, end: Int) -> UInt64 {
        if index &+ 8 <= end {
            return unsafe UInt64(
                littleEndian: bytes.unsafeLoadUnaligned(
                    fromUncheckedByteOffset: index, as: UInt64.self))
        }
        return lastWord(at: index, end: end)
    }

    /// Returns the same as ``word(at:end:)`` for fewer than eight bytes before `end`.
    @inline(__always)
    private func lastWord(at index: Int, end: Int) -> UInt64 {
        guard index < end else { return 0 }
        if end >= 8 {
            let word = unsafe UInt64(
                littleEndian: bytes.unsafeLoadUnaligned(
                    fromUncheckedByteOffset: end &- 8, as: UInt64.self))
            return word &>> UInt64(truncatingIfNeeded: (index &+ 8 &- end) &* 8)
        }
        return shortWord(at: index, end: end)
    }

    @inline(never)
    private func shortWord(at index: Int, end: Int) -> UInt64 {
        var word: UInt64 = 0
        for offset in index..<end { word |= UInt64(self[offset]) << UInt64(8 * (offset - index)) }
        return word
    }

    /// Returns the byte at `index`, or 0 at and past `end`; with the preconditions of
    /// ``word(at:end:)``.
    @inline(__always)
    func byte(at index: Int, end: Int) -> UInt8 {
        index < end ? unsafe self[unchecked: index] : 0
    }

    /// Returns the offset of the first control byte other than tab from `index` on; `end` if there
    /// is none before it.
    @inline(__always)
    func firstControl(from index: Int, end: Int) -> Int {
        var index = index
        while true {
            let controls = ByteLanes.controls(word(at: index, end: end))
            if controls == 0 {
                index &+= 8
                continue
            }
            index &+= ByteLanes.firstIndex(controls)
            guard byte(at: index, end: end) == Byte.tab else { return index }
            index &+= 1
        }
    }

    /// Returns true if CR LF is at `index`, both before `end`.
    @inline(__always)
    func holdsLineEnd(at index: Int, end: Int) -> Bool {
        index &+ 2 <= end && UInt16(truncatingIfNeeded: word(at: index, end: end)) == 0x0A0D
    }
}

/// Named bytes of the HTTP/1.1 grammar (RFC 5234 appendix B.1).
enum Byte {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let quote: UInt8 = 0x22
    static let percent: UInt8 = 0x25
    static let asterisk: UInt8 = 0x2A
    static let comma: UInt8 = 0x2C
    static let slash: UInt8 = 0x2F
    static let colon: UInt8 = 0x3A
    static let semicolon: UInt8 = 0x3B
    static let equals: UInt8 = 0x3D
    static let question: UInt8 = 0x3F
    static let bracketOpen: UInt8 = 0x5B
    static let backslash: UInt8 = 0x5C
    static let bracketClose: UInt8 = 0x5D
    static let del: UInt8 = 0x7F
}

extension ByteSet {
    /// `unreserved` and `sub-delims`, the bytes of a registered name except `%` (RFC 3986 §3.2.2).
    static let registeredName = ByteSet(low: 0x2BFF_7FD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    /// Hexadecimal digits, `:` and `.`: the bytes between the brackets of an IPv6 address.
    static let addressV6 = ByteSet(low: 0x07FF_4000_0000_0000, high: 0x0000_007E_0000_007E)
}

extension UInt8 {
    /// True if the byte is valid in a field value: tab, space, visible ASCII or obs-text (RFC 9110
    /// §5.5).
    @inline(__always)
    var isFieldContent: Bool {
        self == Byte.tab || (self >= Byte.space && self != Byte.del)
    }
}
