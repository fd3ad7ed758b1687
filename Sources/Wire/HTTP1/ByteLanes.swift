/// Eight bytes at a time in one `UInt64`, the first byte lowest.
///
/// Every test gives a word with the high bit of each byte that passed. Only the lowest set bit is
/// exact in the tests made with a borrow: what lies above it may be a false alarm.
enum ByteLanes {
    static let ones: UInt64 = 0x0101_0101_0101_0101
    static let highs: UInt64 = 0x8080_8080_8080_8080
    static let lows: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
    static let caseBits: UInt64 = 0x2020_2020_2020_2020

    /// Control bytes, DEL included; the lowest set bit is exact.
    @inline(__always)
    static func controls(_ word: UInt64) -> UInt64 {
        let low = (word &- ones &* 0x20) & ~word
        let apart = word ^ (ones &* 0x7F)
        let del = (apart &- ones) & ~apart
        return (low | del) & highs
    }

    /// Bytes that no request target holds; the lowest set bit is exact.
    ///
    /// They are all up to space, `#`, DEL and all above.
    @inline(__always)
    static func outsideTarget(_ word: UInt64) -> UInt64 {
        let low = (word &- ones &* 0x21) & ~word
        let apart = word ^ (ones &* 0x23)
        let hash = (apart &- ones) & ~apart
        let high = (word &+ ones) | word
        return (low | hash | high) & highs
    }

    /// Bytes that are `byte`; the lowest set bit is exact.
    @inline(__always)
    static func bytes(_ word: UInt64, equalTo byte: UInt8) -> UInt64 {
        let apart = word ^ (ones &* UInt64(byte))
        return (apart &- ones) & ~apart & highs
    }

    /// Bytes that are no letter, no digit, no `-` and no `.`; every bit is exact.
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

    /// Bytes that are neither a letter nor `-`; every bit is exact.
    @inline(__always)
    static func outsideCommonName(_ word: UInt64) -> UInt64 {
        let seven = (word | caseBits) & lows
        let letter = (seven &+ ones &* 0x1F) & ~(seven &+ ones &* 0x05)
        let apart = word ^ (ones &* 0x2D)
        let notDash = ((apart & lows) &+ lows) | apart
        return (~(letter & ~word) & notDash) & highs
    }

    /// The number of bytes below the lowest one that `lanes`, which is not 0, marks.
    @inline(__always)
    static func firstIndex(_ lanes: UInt64) -> Int {
        lanes.trailingZeroBitCount &>> 3
    }
}

extension Span<UInt8> {
    /// The eight bytes from `index`, first byte lowest; zeros stand for all that lies at `end` or
    /// past it.
    ///
    /// `index` must not be negative and `end` must not pass the count.
    @inline(__always)
    func word(at index: Int, end: Int) -> UInt64 {
        if index &+ 8 <= end {
            return unsafe UInt64(
                littleEndian: bytes.unsafeLoadUnaligned(
                    fromUncheckedByteOffset: index, as: UInt64.self))
        }
        return lastWord(at: index, end: end)
    }

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

    /// The byte at `index`, or 0 at `end` and past it; the same demands as ``word(at:end:)``.
    @inline(__always)
    func byte(at index: Int, end: Int) -> UInt8 {
        index < end ? unsafe self[unchecked: index] : 0
    }

    /// The offset of the first control byte other than tab from `index`, or `end`.
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

    /// True if CR LF stand at `index`, both before `end`.
    @inline(__always)
    func holdsLineEnd(at index: Int, end: Int) -> Bool {
        index &+ 2 <= end && UInt16(truncatingIfNeeded: word(at: index, end: end)) == 0x0A0D
    }
}

/// The bytes that the grammar of HTTP/1.1 names (RFC 5234 appendix B.1).
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

/// Sets of ASCII bytes as two words of bits, one for each half of ASCII.
///
/// This room's own, though HTTPRules has such sets too: functions of another room are called, not
/// inlined, and these stand in loops over a head's bytes.
struct ByteClass {
    let low: UInt64
    let high: UInt64

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        let bits = byte < 64 ? low : high
        return byte < 128 && (bits &>> UInt64(byte & 63)) & 1 == 1
    }

    /// `tchar`, of which tokens are made: field names, methods, codings (RFC 9110 §5.6.2).
    static let token = ByteClass(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE)
    /// `unreserved` and `sub-delims`, of which a registered name is made, without `%` (RFC 3986
    /// §3.2.2).
    static let registeredName = ByteClass(low: 0x2BFF_7FD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    /// Hexadecimal digits, `:` and `.`: what stands between the brackets of an IPv6 address.
    static let addressV6 = ByteClass(low: 0x07FF_4000_0000_0000, high: 0x0000_007E_0000_007E)
}

extension UInt8 {
    /// True for what a field value may hold: tab, space, visible ASCII and obs-text (RFC 9110
    /// §5.5).
    @inline(__always)
    var isFieldContent: Bool {
        self == Byte.tab || (self >= Byte.space && self != Byte.del)
    }
}
