import Ground

/// The field lines of a request with the bytes they lie in, kept until its response arrives.
package struct RequestFields: Hashable, Sendable {
    /// The head of the request.
    package let bytes: [UInt8]
    /// The lines in the order received; their extents lie in ``bytes``.
    package let lines: [FieldLine]

    /// Creates the fields of a request; the extents of `lines` lie in `bytes`.
    package init(bytes: [UInt8], lines: [FieldLine]) {
        self.bytes = bytes
        self.lines = lines
    }

    /// Creates the fields of a rendered head: a first line, then lines `name: value`.
    package init(serialized head: [UInt8]) {
        self.init(bytes: head, lines: SerializedHead.lines(head))
    }

    /// Creates the fields of a request that has only these lines.
    package init(_ settings: [FieldSetting]) {
        var head = Array("GET * HTTP/1.1\r\n".utf8)
        for line in settings { head.appendLine(line) }
        self.init(serialized: head)
    }

    /// Returns true if both requests select the same variant where Vary nominates `names` (RFC 9111
    /// §4.1).
    ///
    /// Returns false if the values of these fields are too long to be compared.
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

    /// True if TE accepts trailer fields (RFC 9110 §10.1.4).
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
