import Ground

/// A parser of structured fields, from left to right; each step returns `nil` if the bytes violate
/// the grammar, and the whole field is then ignored (RFC 9651 §4.2).
///
/// There are limits only where the cost grows faster than the field; each is the minimum that a
/// parser must support.
struct StructuredFieldParser {
    /// The maximum number of members of a list or a dictionary (RFC 9651 §3.1, §3.2).
    static let membersMax = 1024
    /// The maximum number of parameters of one item (RFC 9651 §3.1.2).
    static let parametersMax = 256

    var index = 0

    func peek(_ bytes: Span<UInt8>) -> UInt8? {
        index < bytes.count ? bytes[index] : nil
    }

    mutating func consume(_ bytes: Span<UInt8>, _ expected: Unicode.Scalar) -> Bool {
        guard peek(bytes) == UInt8(ascii: expected) else { return false }
        index += 1
        return true
    }

    mutating func skipSpaces(_ bytes: Span<UInt8>) {
        while peek(bytes) == 0x20 { index += 1 }
    }

    /// Returns true if nothing but spaces is left.
    mutating func isAtEnd(_ bytes: Span<UInt8>) -> Bool {
        skipSpaces(bytes)
        return index == bytes.count
    }

    /// Parses the comma after a member.
    ///
    /// Returns true if another member follows, false at the end, and `nil` for anything else,
    /// including a trailing comma (RFC 9651 §4.2.1, §4.2.2).
    mutating func separator(_ bytes: Span<UInt8>) -> Bool? {
        let end = index
        while let byte = peek(bytes), FieldSyntax.isWhitespace(byte) { index += 1 }
        guard index < bytes.count else {
            // A tab after the last member is neither part of it nor a space.
            for place in end..<index where bytes[place] != 0x20 { return nil }
            return false
        }
        guard consume(bytes, ",") else { return nil }
        while let byte = peek(bytes), FieldSyntax.isWhitespace(byte) { index += 1 }
        return index < bytes.count ? true : nil
    }

    /// Parses a member of a list: an item or an inner list (RFC 9651 §4.2.1.1).
    mutating func member(_ bytes: Span<UInt8>) -> StructuredMember? {
        if peek(bytes) == UInt8(ascii: "(") {
            return innerList(bytes).map(StructuredMember.innerList)
        }
        return item(bytes).map(StructuredMember.item)
    }

    /// Parses the value that follows a key of a dictionary (RFC 9651 §4.2.2).
    mutating func dictionaryMember(_ bytes: Span<UInt8>) -> StructuredMember? {
        if consume(bytes, "=") { return member(bytes) }
        return parameters(bytes).map { .item(StructuredItem(.boolean(true), $0)) }
    }

    /// Parses an inner list (RFC 9651 §4.2.1.2).
    private mutating func innerList(_ bytes: Span<UInt8>) -> StructuredInnerList? {
        guard consume(bytes, "(") else { return nil }
        var items: [StructuredItem] = []
        while true {
            skipSpaces(bytes)
            if consume(bytes, ")") {
                return parameters(bytes).map { StructuredInnerList(items, $0) }
            }
            guard let item = item(bytes) else { return nil }
            items.append(item)
            guard let byte = peek(bytes), byte == 0x20 || byte == UInt8(ascii: ")") else {
                return nil
            }
        }
    }

    /// Parses an item with its parameters (RFC 9651 §4.2.3).
    mutating func item(_ bytes: Span<UInt8>) -> StructuredItem? {
        guard let value = bareItem(bytes), let parameters = parameters(bytes) else { return nil }
        return StructuredItem(value, parameters)
    }

    /// Parses parameters (RFC 9651 §4.2.3.2).
    private mutating func parameters(_ bytes: Span<UInt8>) -> StructuredParameters? {
        var parameters = StructuredParameters()
        while consume(bytes, ";") {
            skipSpaces(bytes)
            guard parameters.count < Self.parametersMax, let key = key(bytes) else { return nil }
            var value = StructuredBareItem.boolean(true)
            if consume(bytes, "=") {
                guard let given = bareItem(bytes) else { return nil }
                value = given
            }
            parameters.set(key, to: value)
        }
        return parameters
    }

    /// Parses a key (RFC 9651 §4.2.3.3).
    mutating func key(_ bytes: Span<UInt8>) -> [UInt8]? {
        let start = index
        while let byte = peek(bytes) {
            let isLetter = byte &- 0x61 < 26 || byte == UInt8(ascii: "*")
            let isFurther =
                ASCII.isDigit(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: ".")
            guard isLetter || (isFurther && index > start) else { break }
            index += 1
        }
        return index == start ? nil : bytes.copy(start..<index)
    }
}

extension StructuredFieldParser {
    /// Parses a bare item (RFC 9651 §4.2.3.1).
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

    /// Parses an integer or a decimal (RFC 9651 §4.2.4).
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

    /// Parses digits and returns their value and number; `nil` if there are none.
    ///
    /// Parsing stops after the sixteenth digit, which is always one too many.
    private mutating func digits(_ bytes: Span<UInt8>) -> (value: Int64, count: Int)? {
        let start = index
        var value: Int64 = 0
        while let byte = peek(bytes), ASCII.isDigit(byte), index - start < 16 {
            value = value * 10 + Int64(byte &- 0x30)
            index += 1
        }
        return index == start ? nil : (value, index - start)
    }

    /// Parses a string (RFC 9651 §4.2.5).
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

    /// Parses a token (RFC 9651 §4.2.6).
    private mutating func token(_ bytes: Span<UInt8>) -> [UInt8] {
        let start = index
        while let byte = peek(bytes),
            ByteSet.token.contains(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "/")
        {
            index += 1
        }
        return bytes.copy(start..<index)
    }

    /// Parses a byte sequence (RFC 9651 §4.2.7).
    private mutating func binary(_ bytes: Span<UInt8>) -> [UInt8]? {
        index += 1
        let start = index
        while let byte = peek(bytes), byte != UInt8(ascii: ":") { index += 1 }
        let letters = start..<index
        guard consume(bytes, ":") else { return nil }
        return Base64.parse(bytes, at: letters)
    }

    /// Parses a boolean (RFC 9651 §4.2.8).
    private mutating func boolean(_ bytes: Span<UInt8>) -> StructuredBareItem? {
        index += 1
        if consume(bytes, "1") { return .boolean(true) }
        return consume(bytes, "0") ? .boolean(false) : nil
    }

    /// Parses a date (RFC 9651 §4.2.9).
    private mutating func date(_ bytes: Span<UInt8>) -> StructuredBareItem? {
        index += 1
        guard case .integer(let seconds)? = number(bytes) else { return nil }
        return .date(seconds)
    }

    /// Parses a display string (RFC 9651 §4.2.10).
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

    /// Parses a hexadecimal digit in lower case.
    private mutating func lowerHex(_ bytes: Span<UInt8>) -> UInt8? {
        guard let byte = peek(bytes), ASCII.lowercased(byte) == byte else { return nil }
        index += 1
        return ASCII.hexValue(byte)
    }
}
