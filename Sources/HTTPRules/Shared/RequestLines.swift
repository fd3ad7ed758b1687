import Ground

/// A request's field lines with the bytes that they lie in, for as long as an answer is awaited.
package struct RequestLines: Hashable, Sendable {
    /// The head of the request.
    package let bytes: [UInt8]
    /// The lines in the order received; extents lie in ``bytes``.
    package let lines: [FieldLine]

    package init(bytes: [UInt8], lines: [FieldLine]) {
        self.bytes = bytes
        self.lines = lines
    }

    /// True if an answer to the one may be given to the other where Vary nominates `names`
    /// (RFC 9111 §4.1).
    package func agrees(with other: RequestLines, on names: FieldNames) -> Bool {
        guard !names.isEmpty else { return true }
        guard let mine = selector(names), let theirs = other.selector(names) else { return false }
        return mine == theirs
    }

    /// TE says that trailer fields are read (RFC 9110 §10.1.4).
    package var takesTrailers: Bool {
        let bytes = bytes.span
        for line in lines where line.id == .te {
            let range = line.value.range
            var cursor = range.lowerBound
            while let member = FieldSyntax.nextElement(bytes, at: range, cursor: &cursor) {
                let end = FieldSyntax.find(UInt8(ascii: ";"), in: bytes, at: member)
                let name = FieldSyntax.trimmed(bytes, at: member.lowerBound..<end)
                if bytes.holdsIgnoringCase("trailers", at: name) { return true }
            }
        }
        return false
    }

    /// What the nominated fields come to; nil if that is too long to be compared.
    private func selector(_ names: FieldNames) -> [UInt8]? {
        var text: [UInt8] = []
        let base: [UInt8] = []
        let isMade = VariantKey.append(
            base: base.span, generation: 0, names: names, lines: lines, in: bytes.span, to: &text)
        return isMade ? text : nil
    }
}
