import Ground

/// The media types that the image API serves: images, and types that the operator adds.
package struct ImageMediaTypes: Hashable, Sendable {
    /// The operator's types in lower case, without parameters, such as `application/json`.
    package var extra: [String]

    /// Creates the accepted types from the operator's types, which are in lower case.
    package init(extra: [String] = []) {
        self.extra = extra
    }

    /// Returns the range of the type without its parameters (RFC 9110 §8.3.1) in the Content-Type
    /// value in `range`.
    static func essence(_ bytes: Span<UInt8>, at range: Range<Int>) -> Range<Int> {
        let end = FieldSyntax.find(UInt8(ascii: ";"), in: bytes, at: range)
        return FieldSyntax.trimmed(bytes, at: range.lowerBound..<end)
    }

    /// Returns true if the one Content-Type of `head` is an image type or one of the operator's.
    ///
    /// A head without Content-Type, or with several that differ, is not accepted: clients would
    /// have to guess.
    package func accepts(_ head: ResponseHead) -> Bool {
        let bytes = head.bytes.span
        var found: Range<Int>?
        for line in head.lines where line.id == .contentType {
            let type = Self.essence(bytes, at: line.value.range)
            if let found, !bytes.matchesFieldName(at: found, of: bytes, at: type) { return false }
            found = type
        }
        guard let found else { return false }
        if Self.isImage(bytes, at: found) {
            return found.count > 6
                && FieldSyntax.isToken(bytes, at: found.lowerBound + 6..<found.upperBound)
        }
        return extra.contains { bytes.matchesIgnoringCase($0, at: found) }
    }

    /// Returns true if the type without parameters, which lies in `essence`, begins with `image/`.
    static func isImage(_ bytes: Span<UInt8>, at essence: Range<Int>) -> Bool {
        let image = essence.lowerBound..<min(essence.lowerBound + 6, essence.upperBound)
        return bytes.matchesIgnoringCase("image/", at: image)
    }
}

/// The media types of a site's responses that are stored: `type/subtype` or `type/*`.
package struct SiteMediaTypes: Hashable, Sendable {
    /// The types in lower case, without parameters.
    package let ranges: [String]

    /// Creates the accepted types from `type/subtype` or `type/*` in lower case.
    package init(_ ranges: [String]) {
        self.ranges = ranges
    }

    /// Returns true if every Content-Type of `head` is one of these types; false if there is none.
    package func accepts(_ head: ResponseHead) -> Bool {
        let bytes = head.bytes.span
        var isTyped = false
        for line in head.lines where line.id == .contentType {
            isTyped = true
            let type = ImageMediaTypes.essence(bytes, at: line.value.range)
            guard ranges.contains(where: { Self.matches($0, bytes, at: type) }) else {
                return false
            }
        }
        return isTyped
    }

    private static func matches(
        _ range: String, _ bytes: Span<UInt8>, at type: Range<Int>
    ) -> Bool {
        guard range.hasSuffix("/*") else { return bytes.matchesIgnoringCase(range, at: type) }
        let prefix = String(range.dropLast())
        let count = prefix.utf8.count
        guard type.count > count else { return false }
        return bytes.matchesIgnoringCase(prefix, at: type.lowerBound..<type.lowerBound + count)
    }
}
