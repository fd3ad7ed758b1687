import Ground

/// Reads a structured field from left to right; every step answers nil when the bytes do not follow
/// the grammar, upon which the whole field counts for nothing (RFC 9651 §4.2).
///
/// There are limits only where the effort grows faster than the field, each at what a reader has to
/// support.
struct StructuredFieldParser {
    /// Members of a list or a dictionary (RFC 9651 §3.1, §3.2).
    static let membersMax = 1024
    /// Parameters of one item (RFC 9651 §3.1.2).
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

    /// True if nothing but spaces is left.
    mutating func isAtEnd(_ bytes: Span<UInt8>) -> Bool {
        skipSpaces(bytes)
        return index == bytes.count
    }

    /// The comma behind a member: true if another member follows, false at the end, and nil for
    /// anything else, a last comma too (RFC 9651 §4.2.1, §4.2.2).
    mutating func separator(_ bytes: Span<UInt8>) -> Bool? {
        let end = index
        while let byte = peek(bytes), FieldSyntax.isWhitespace(byte) { index += 1 }
        guard index < bytes.count else {
            // A tab behind the last member is neither part of it nor a space.
            for place in end..<index where bytes[place] != 0x20 { return nil }
            return false
        }
        guard consume(bytes, ",") else { return nil }
        while let byte = peek(bytes), FieldSyntax.isWhitespace(byte) { index += 1 }
        return index < bytes.count ? true : nil
    }

    /// What a list may hold (RFC 9651 §4.2.1.1).
    mutating func member(_ bytes: Span<UInt8>) -> StructuredMember? {
        if peek(bytes) == UInt8(ascii: "(") {
            return innerList(bytes).map(StructuredMember.innerList)
        }
        return item(bytes).map(StructuredMember.item)
    }

    /// What follows a key of a dictionary (RFC 9651 §4.2.2).
    mutating func dictionaryMember(_ bytes: Span<UInt8>) -> StructuredMember? {
        if consume(bytes, "=") { return member(bytes) }
        return parameters(bytes).map { .item(StructuredItem(.boolean(true), $0)) }
    }

    /// RFC 9651 §4.2.1.2.
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

    /// RFC 9651 §4.2.3.
    mutating func item(_ bytes: Span<UInt8>) -> StructuredItem? {
        guard let value = bareItem(bytes), let parameters = parameters(bytes) else { return nil }
        return StructuredItem(value, parameters)
    }

    /// RFC 9651 §4.2.3.2.
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

    /// RFC 9651 §4.2.3.3.
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
