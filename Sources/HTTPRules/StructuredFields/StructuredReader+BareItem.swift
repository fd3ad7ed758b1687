import Ground

extension StructuredFieldParser {
    /// RFC 9651 §4.2.3.1.
    mutating func bareItem(_ bytes: Span<UInt8>) -> StructuredBareItem? {
        guard let first = peek(bytes) else { return nil }
        switch first {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return number(bytes)
        case UInt8(ascii: "\""): return string(bytes).map(StructuredBareItem.string)
        case UInt8(ascii: ":"): return binary(bytes).map(StructuredBareItem.bytes)
        case UInt8(ascii: "?"): return boolean(bytes)
        case UInt8(ascii: "@"): return date(bytes)
        case UInt8(ascii: "%"): return display(bytes).map(StructuredBareItem.displayString)
        case _ where (first | 0x20) &- 0x61 < 26 || first == UInt8(ascii: "*"):
            return .token(token(bytes))
        default: return nil
        }
    }

    /// RFC 9651 §4.2.4.
    private mutating func number(_ bytes: Span<UInt8>) -> StructuredBareItem? {
        let isNegative = consume(bytes, "-")
        guard let (whole, wholeDigits) = digits(bytes), wholeDigits <= 15 else { return nil }
        guard peek(bytes) == UInt8(ascii: ".") else {
            return .integer(isNegative ? -whole : whole)
        }
        index += 1
        guard wholeDigits <= 12, let (part, partDigits) = digits(bytes), partDigits <= 3 else {
            return nil
        }
        let scale: Int64 = partDigits == 1 ? 100 : partDigits == 2 ? 10 : 1
        let thousandths = whole * 1000 + part * scale
        return .decimal(thousandths: isNegative ? -thousandths : thousandths)
    }

    /// The number that the digits here make, and how many they are; nil if there is none.
    ///
    /// After the sixteenth, which is always one too many, none is looked at.
    private mutating func digits(_ bytes: Span<UInt8>) -> (value: Int64, count: Int)? {
        let start = index
        var value: Int64 = 0
        while let byte = peek(bytes), ASCII.isDigit(byte), index - start < 16 {
            value = value * 10 + Int64(byte &- 0x30)
            index += 1
        }
        return index == start ? nil : (value, index - start)
    }

    /// RFC 9651 §4.2.5.
    private mutating func string(_ bytes: Span<UInt8>) -> [UInt8]? {
        index += 1
        var text: [UInt8] = []
        while let byte = peek(bytes) {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return text
            case UInt8(ascii: "\\"):
                guard let escaped = peek(bytes),
                    escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\")
                else { return nil }
                index += 1
                text.append(escaped)
            case 0x20...0x7E: text.append(byte)
            default: return nil
            }
        }
        return nil
    }

    /// RFC 9651 §4.2.6.
    private mutating func token(_ bytes: Span<UInt8>) -> [UInt8] {
        let start = index
        while let byte = peek(bytes),
            ByteSet.token.contains(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "/")
        {
            index += 1
        }
        return bytes.copy(start..<index)
    }

    /// RFC 9651 §4.2.7.
    private mutating func binary(_ bytes: Span<UInt8>) -> [UInt8]? {
        index += 1
        let start = index
        while let byte = peek(bytes), byte != UInt8(ascii: ":") { index += 1 }
        let letters = start..<index
        guard consume(bytes, ":") else { return nil }
        return Base64.parse(bytes, at: letters)
    }

    /// RFC 9651 §4.2.8.
    private mutating func boolean(_ bytes: Span<UInt8>) -> StructuredBareItem? {
        index += 1
        if consume(bytes, "1") { return .boolean(true) }
        return consume(bytes, "0") ? .boolean(false) : nil
    }

    /// RFC 9651 §4.2.9.
    private mutating func date(_ bytes: Span<UInt8>) -> StructuredBareItem? {
        index += 1
        guard case .integer(let seconds)? = number(bytes) else { return nil }
        return .date(seconds)
    }

    /// RFC 9651 §4.2.10.
    private mutating func display(_ bytes: Span<UInt8>) -> String? {
        index += 1
        guard consume(bytes, "\"") else { return nil }
        var text: [UInt8] = []
        while let byte = peek(bytes) {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self)
            case UInt8(ascii: "%"):
                guard let high = lowerHex(bytes), let low = lowerHex(bytes) else { return nil }
                text.append(high << 4 | low)
            case 0x20...0x7E: text.append(byte)
            default: return nil
            }
        }
        return nil
    }

    /// A hexadecimal digit, whose letters are small.
    private mutating func lowerHex(_ bytes: Span<UInt8>) -> UInt8? {
        guard let byte = peek(bytes), ASCII.lowercased(byte) == byte else { return nil }
        index += 1
        return ASCII.hexValue(byte)
    }
}
