import Ground

extension ResponseHead {
    /// The size of the whole that Content-Range names (RFC 9110 §14.4); nil if it names none.
    package var completeLength: UInt64? {
        let values = lines(.contentRange)
        guard values.count == 1 else { return nil }
        let range = values[0].value.range
        let span = bytes.span
        let unit = range.lowerBound..<min(range.lowerBound + 6, range.upperBound)
        guard span.matchesIgnoringCase("bytes ", at: unit) else { return nil }
        let slash = FieldSyntax.find(UInt8(ascii: "/"), in: span, at: range)
        guard slash < range.upperBound else { return nil }
        return span.decimal(at: slash + 1..<range.upperBound)
    }
}
