import Ground

/// What an answer's Vary nominates, whatever the fields are (RFC 9110 §12.5.5, RFC 9111 §4.1).
package struct VaryNames: Hashable, Sendable {
    /// The nominated names; of use only if ``isSelectable``.
    package private(set) var names = FieldNames()
    /// `*`, or something that is no field name: no other request ever matches.
    package private(set) var isWildcard = false
    /// More or longer names than a ``VariantIndex`` holds.
    package private(set) var exceedsLimits = false

    package init() {}

    /// What all Vary lines of `head` nominate together.
    package init(_ head: ResponseHead) {
        let bytes = head.bytes.span
        for line in head.lines where line.id == .vary { add(bytes, at: line.value.range) }
    }

    /// The same of a head as it was stored; nothing if it is not one of an answer.
    package init(renderedHead head: [UInt8]) {
        guard head.starts(with: "HTTP/".utf8) else { return }
        let bytes = head.span
        for line in StoredHead.lines(head) where line.id == .vary {
            add(bytes, at: line.value.range)
        }
    }

    /// All that images can depend on.
    package static let imageFields = FieldNames(["accept", "accept-encoding"])

    /// What an image depends on that came with these lines, which lie in `bytes`.
    ///
    /// Of a client's fields its origin is told Accept and Accept-Encoding alone, as
    /// ``NegotiationNormaliser`` reduces them; in every other its requests agree. A coding must
    /// reach nobody who did not ask for it, also if the origin forgot to say so.
    package init(image lines: [FieldLine], in bytes: Span<UInt8>) {
        let (accept, encoding) = (Self.imageFields.names[0], Self.imageFields.names[1])
        for line in lines {
            switch line.id {
            case .vary:
                var cursor = line.value.range.lowerBound
                while let name = FieldSyntax.nextElement(
                    bytes, at: line.value.range, cursor: &cursor)
                {
                    if name.count == 1, bytes[name.lowerBound] == UInt8(ascii: "*") {
                        isWildcard = true
                    } else if FieldSyntax.matchesName(accept, bytes, at: name) {
                        names.insert(accept.span, at: accept.indices)
                    } else if FieldSyntax.matchesName(encoding, bytes, at: name) {
                        names.insert(encoding.span, at: encoding.indices)
                    }
                }
            case .contentEncoding
            where !bytes.matchesIgnoringCase("identity", at: line.value.range):
                names.insert(encoding.span, at: encoding.indices)
            default: break
            }
        }
    }

    /// True if the answer can be stored and found again by the fields of later requests.
    package var isSelectable: Bool { !isWildcard && !exceedsLimits }

    /// Adds the value of one Vary line.
    package mutating func add(_ bytes: Span<UInt8>, at range: Range<Int>) {
        var start = range.lowerBound
        while start < range.upperBound {
            var end = start
            while end < range.upperBound, bytes[end] != UInt8(ascii: ",") { end += 1 }
            let member = FieldSyntax.trimmed(bytes, at: start..<end)
            if !member.isEmpty { addMember(bytes, at: member) }
            start = end + 1
        }
    }

    private mutating func addMember(_ bytes: Span<UInt8>, at member: Range<Int>) {
        // `*` is a byte of tokens, so it is a name by its syntax.
        if member.count == 1, bytes[member.lowerBound] == UInt8(ascii: "*") {
            isWildcard = true
            return
        }
        for index in member where !ByteSet.token.contains(bytes[index]) {
            isWildcard = true
            return
        }
        // Beyond the limits nothing is collected, so that a long list costs no more than reading.
        guard !exceedsLimits else { return }
        guard member.count <= VariantIndex.nameBytesMax else {
            exceedsLimits = true
            return
        }
        names.insert(bytes, at: member)
        exceedsLimits = names.count > VariantIndex.namesMax
    }
}
