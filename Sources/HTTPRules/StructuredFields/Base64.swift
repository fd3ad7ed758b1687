/// The base64 encoding (RFC 4648 §4).
enum Base64 {
    /// Appends `content` in base64 with padding.
    static func append(_ content: [UInt8], to bytes: inout [UInt8]) {
        var index = 0
        while index < content.count {
            let count = min(3, content.count - index)
            var group: UInt32 = 0
            for offset in 0..<3 {
                group = group << 8 | UInt32(offset < count ? content[index + offset] : 0)
            }
            for place in 0..<4 {
                let sextet = UInt8(group >> UInt32(18 - 6 * place) & 63)
                bytes.append(place <= count ? letter(sextet) : UInt8(ascii: "="))
            }
            index += count
        }
    }

    /// Returns the decoded bytes of the letters in `range`; `nil` if they are malformed.
    ///
    /// Padding may be missing, and unused bits need not be 0 (RFC 9651 §4.2.7).
    static func parse(_ bytes: Span<UInt8>, at range: Range<Int>) -> [UInt8]? {
        var end = range.upperBound
        while end > range.lowerBound, range.upperBound - end < 2,
            bytes[end - 1] == UInt8(ascii: "=")
        {
            end -= 1
        }
        let letters = range.lowerBound..<end
        if letters.count % 4 == 1 { return nil }
        if end < range.upperBound, range.count % 4 != 0 { return nil }
        var content: [UInt8] = []
        var group: UInt32 = 0
        var bits: UInt32 = 0
        for index in letters {
            guard let sextet = value(bytes[index]) else { return nil }
            group = (group << 6 | UInt32(sextet)) & 0xFFFF
            bits += 6
            guard bits >= 8 else { continue }
            bits -= 8
            content.append(UInt8(truncatingIfNeeded: group >> bits))
        }
        return content
    }

    private static func letter(_ sextet: UInt8) -> UInt8 {
        switch sextet {
        case 0..<26: UInt8(ascii: "A") + sextet
        case 26..<52: UInt8(ascii: "a") + sextet - 26
        case 52..<62: UInt8(ascii: "0") + sextet - 52
        case 62: UInt8(ascii: "+")
        default: UInt8(ascii: "/")
        }
    }

    private static func value(_ letter: UInt8) -> UInt8? {
        switch letter {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): letter - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): letter - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): letter - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
