package import Ground

/// An entity tag in a field value (RFC 9110 §8.8.3).
package struct EntityTag: Hashable, Sendable {
    /// True if the tag begins with `W/`.
    package var isWeak: Bool
    /// The extent of the opaque part with its quotes, which is what comparisons use.
    package var opaque: Extent

    /// Parses the tag that fills `range`; `nil` if it is not one.
    package init?(_ bytes: Span<UInt8>, at range: Range<Int>) {
        guard let (tag, end) = Self.read(bytes, at: range), end == range.upperBound else {
            return nil
        }
        self = tag
    }

    private init(isWeak: Bool, opaque: Extent) {
        self.isWeak = isWeak
        self.opaque = opaque
    }

    /// Parses the tag at the start of `range` and returns it with its end; `nil` if there is none.
    static func read(_ bytes: Span<UInt8>, at range: Range<Int>) -> (EntityTag, end: Int)? {
        var start = range.lowerBound
        let isWeak =
            range.count >= 2 && bytes[start] == UInt8(ascii: "W")
            && bytes[start + 1] == UInt8(ascii: "/")
        if isWeak { start += 2 }
        guard start < range.upperBound, bytes[start] == UInt8(ascii: "\"") else { return nil }
        var index = start + 1
        while index < range.upperBound, bytes[index] != UInt8(ascii: "\"") {
            guard bytes[index] > 0x20, bytes[index] != 0x7F else { return nil }
            index += 1
        }
        guard index < range.upperBound else { return nil }
        let opaque = Extent(start: start, count: index + 1 - start)
        return (EntityTag(isWeak: isWeak, opaque: opaque), index + 1)
    }

    /// The comparison of two tags (RFC 9110 §8.8.3.2).
    package enum Comparison: Hashable, Sendable {
        /// The tags match if they are equal and neither is weak.
        case strong
        /// The tags match if they are equal apart from `W/`.
        case weak
    }

    /// Returns true if this tag, in `bytes`, matches `other`, in `otherBytes`.
    package func matches(
        in bytes: Span<UInt8>, _ other: EntityTag, in otherBytes: Span<UInt8>,
        by comparison: Comparison
    ) -> Bool {
        guard opaque.count == other.opaque.count, comparison == .weak || !(isWeak || other.isWeak)
        else { return false }
        for offset in 0..<Int(opaque.count)
        where bytes[Int(opaque.start) + offset] != otherBytes[Int(other.opaque.start) + offset] {
            return false
        }
        return true
    }

    /// Returns true if the list of tags in `range` holds one that matches `tag`; members that are
    /// not tags match nothing.
    static func list(
        _ bytes: Span<UInt8>, at range: Range<Int>, contains tag: EntityTag,
        in tagBytes: Span<UInt8>, by comparison: Comparison
    ) -> Bool {
        var index = range.lowerBound
        while index < range.upperBound {
            if ASCII.isWhitespace(bytes[index]) || bytes[index] == UInt8(ascii: ",") {
                index += 1
                continue
            }
            if let (member, end) = read(bytes, at: index..<range.upperBound) {
                let isWhole = end == range.upperBound || endsElement(bytes[end])
                if isWhole, member.matches(in: bytes, tag, in: tagBytes, by: comparison) {
                    return true
                }
                index = end
            }
            while index < range.upperBound, bytes[index] != UInt8(ascii: ",") { index += 1 }
        }
        return false
    }

    private static func endsElement(_ byte: UInt8) -> Bool {
        ASCII.isWhitespace(byte) || byte == UInt8(ascii: ",")
    }
}
