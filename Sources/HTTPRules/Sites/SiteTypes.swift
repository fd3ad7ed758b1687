import Ground

/// The media types of a site's answers that are stored: `type/subtype` or `type/*`.
package struct SiteMediaTypes: Hashable, Sendable {
    /// In lower case, without parameters.
    package let ranges: [String]

    package init(_ ranges: [String]) {
        self.ranges = ranges
    }

    /// True if every Content-Type of `head` is one of these; an answer without any is none of them.
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
