import Ground

/// A request's field lines with the bytes that they lie in, for as long as an answer is awaited.
package struct RequestFields: Hashable, Sendable {
    /// The head of the request.
    package let bytes: [UInt8]
    /// The lines in the order received; extents lie in ``bytes``.
    package let lines: [FieldLine]

    package init(bytes: [UInt8], lines: [FieldLine]) {
        self.bytes = bytes
        self.lines = lines
    }

    /// The lines of a head that was written here: a first line, then lines `name: value`.
    package init(serialized head: [UInt8]) {
        self.init(bytes: head, lines: SerializedHead.lines(head))
    }

    /// These lines alone, of a request of which nothing else is known.
    package init(_ settings: [FieldSetting]) {
        var head = Array("GET * HTTP/1.1\r\n".utf8)
        for line in settings { head.appendLine(line) }
        self.init(serialized: head)
    }

    /// True if an answer to the one may be given to the other where Vary nominates `names`
    /// (RFC 9111 §4.1).
    ///
    /// False if what they say in these fields is too long to be compared.
    package func matches(with other: RequestFields, on names: FieldNames) -> Bool {
        var left = VariantKey.valueBytesMax
        var (mine, theirs): ([UInt8], [UInt8]) = ([], [])
        for name in names.names {
            mine.removeAll(keepingCapacity: true)
            theirs.removeAll(keepingCapacity: true)
            guard appendValue(of: name, bytesMax: left, to: &mine),
                other.appendValue(of: name, bytesMax: left, to: &theirs), mine == theirs
            else { return false }
            left -= mine.count
        }
        return true
    }

    /// TE says that trailer fields are read (RFC 9110 §10.1.4).
    package var acceptsTrailers: Bool {
        let bytes = bytes.span
        for line in lines where line.id == .te {
            let range = line.value.range
            var cursor = range.lowerBound
            while let member = FieldSyntax.nextElement(bytes, at: range, cursor: &cursor) {
                let end = FieldSyntax.find(UInt8(ascii: ";"), in: bytes, at: member)
                let name = FieldSyntax.trimmed(bytes, at: member.lowerBound..<end)
                if bytes.matchesIgnoringCase("trailers", at: name) { return true }
            }
        }
        return false
    }

    private func appendValue(of name: [UInt8], bytesMax: Int, to value: inout [UInt8]) -> Bool {
        VariantKey.appendValue(of: name, lines, in: bytes.span, bytesMax: bytesMax, to: &value)
    }
}
