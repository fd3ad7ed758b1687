import Ground

/// The field Refresh, which HTML alone describes ("shared declarative refresh steps").
enum RefreshField {
    /// Where the URL lies in `5; url=URL`, whose semicolon may be a comma and whose `url=` may be
    /// missing; nil if there is none.
    static func url(_ bytes: Span<UInt8>, at value: Range<Int>) -> Range<Int>? {
        var rest = FieldSyntax.trimmed(bytes, at: value)
        let start = rest.lowerBound
        rest = skip(bytes, rest) { ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }
        guard rest.lowerBound > start else { return nil }
        let time = rest.lowerBound
        rest = FieldSyntax.trimmed(bytes, at: rest)
        if let mark = rest.first, bytes[mark] == UInt8(ascii: ";") || bytes[mark] == 0x2C {
            rest = FieldSyntax.trimmed(bytes, at: mark + 1..<rest.upperBound)
        }
        guard rest.lowerBound > time, !rest.isEmpty else { return nil }
        let word = rest.prefix(3)
        if bytes.matchesIgnoringCase("url", at: word) {
            let behind = FieldSyntax.trimmed(bytes, at: word.upperBound..<rest.upperBound)
            if let mark = behind.first, bytes[mark] == UInt8(ascii: "=") {
                rest = FieldSyntax.trimmed(bytes, at: mark + 1..<rest.upperBound)
            }
        }
        guard let first = rest.first else { return nil }
        let quote = bytes[first]
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return rest }
        let quoted = first + 1..<rest.upperBound
        return quoted.lowerBound..<skip(bytes, quoted) { $0 != quote }.lowerBound
    }

    private static func skip(
        _ bytes: Span<UInt8>, _ range: Range<Int>, while isPassed: (UInt8) -> Bool
    ) -> Range<Int> {
        var start = range.lowerBound
        while start < range.upperBound, isPassed(bytes[start]) { start += 1 }
        return start..<range.upperBound
    }
}
