import Ground

/// The field names that a response's Vary nominates (RFC 9110 §12.5.5, RFC 9111 §4.1).
package struct VaryNames: Hashable, Sendable {
    /// The nominated names; valid only if ``isSelectable``.
    package private(set) var names = FieldNames()
    /// True if Vary has `*` or a member that is not a field name: no other request ever matches.
    package private(set) var isWildcard = false
    /// True if there are more or longer names than a ``VariantIndex`` holds.
    package private(set) var exceedsLimits = false

    /// Creates an empty set of names.
    package init() {}

    /// Collects the names of all Vary lines of `head`.
    package init(_ head: ResponseHead) {
        let bytes = head.bytes.span
        for line in head.lines where line.id == .vary { add(bytes, at: line.value.range) }
    }

    /// Collects the names of all Vary lines of a rendered head; none if `head` is not that of a
    /// response.
    package init(renderedHead head: [UInt8]) {
        guard head.starts(with: "HTTP/".utf8) else { return }
        let bytes = head.span
        for line in StoredHead.lines(head) where line.id == .vary {
            add(bytes, at: line.value.range)
        }
    }

    /// The fields that images can vary by.
    package static let imageFields = FieldNames(["accept", "accept-encoding"])

    /// Collects the names that an image varies by, from its Vary and Content-Encoding lines.
    ///
    /// The node forwards only Accept and Accept-Encoding of the client's fields, as reduced by
    /// ``NegotiationNormaliser``; all other fields of its requests are the same. A response with a
    /// content coding counts as varying by Accept-Encoding even if Vary does not say so, so that it
    /// reaches no client that did not accept the coding.
    ///
    /// - Parameters:
    ///   - lines: the field lines of the response; their extents lie in `bytes`.
    ///   - bytes: the bytes of the response's head.
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
                    } else if bytes.matchesFieldName(at: name, of: accept) {
                        names.insert(accept.span, at: accept.indices)
                    } else if bytes.matchesFieldName(at: name, of: encoding) {
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

    /// True if the response can be stored and found again by the fields of later requests.
    package var isSelectable: Bool { !isWildcard && !exceedsLimits }

    /// Adds the names in the value of one Vary line.
    package mutating func add(_ bytes: Span<UInt8>, at range: Range<Int>) {
        var cursor = range.lowerBound
        while let member = FieldSyntax.nextElement(
            bytes, at: range, cursor: &cursor, hasQuotedStrings: false)
        {
            addMember(bytes, at: member)
        }
    }

    /// Adds a field name; `*`, a malformed name, or a name beyond the limits sets the property for
    /// it instead.
    private mutating func addMember(_ bytes: Span<UInt8>, at member: Range<Int>) {
        // `*` is a token byte, so the token check alone would accept it as a name.
        if member.count == 1, bytes[member.lowerBound] == UInt8(ascii: "*") {
            isWildcard = true
            return
        }
        guard FieldSyntax.isToken(bytes, at: member) else {
            isWildcard = true
            return
        }
        // Beyond the limits no names are collected, so that a long list costs only its parsing.
        guard !exceedsLimits else { return }
        guard member.count <= VariantIndex.nameBytesMax else {
            exceedsLimits = true
            return
        }
        names.insert(bytes, at: member)
        exceedsLimits = names.count > VariantIndex.namesMax
    }
}
