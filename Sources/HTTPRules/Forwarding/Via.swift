import Ground

/// The Via field: the hops that a message has passed (RFC 9110 §7.6.3).
package enum Via {
    /// The name of this cache in Via, in lower case.
    package static let pseudonym = "nuthatch"

    /// Appends this node's Via line for a message received in this HTTP version.
    package static func append(version: String, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "Via: \(version) \(pseudonym)\r\n".utf8)
    }

    /// Returns how many members of Via among `lines` name Nuthatch, one for each node passed or
    /// each pass through one node.
    package static func count(_ lines: [FieldLine], in bytes: Span<UInt8>) -> Int {
        var count = 0
        for line in lines where line.id == .via {
            var start = line.value.range.lowerBound
            while start < line.value.end {
                let end = elementEnd(bytes, start..<line.value.end)
                if isNuthatch(bytes, FieldSyntax.trimmed(bytes, at: start..<end)) { count += 1 }
                start = end + 1
            }
        }
        return count
    }

    /// Returns the offset of the next comma outside comments, which may be nested (RFC 9110
    /// §5.6.5).
    private static func elementEnd(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
        var depth = 0
        var index = range.lowerBound
        while index < range.upperBound {
            switch bytes[index] {
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"): depth = max(0, depth - 1)
            case UInt8(ascii: "\\") where depth > 0: index += 1
            case UInt8(ascii: ",") where depth == 0: return index
            default: break
            }
            index += 1
        }
        return range.upperBound
    }

    /// Returns true if the second word of `protocol received-by [comment]` is ``pseudonym``.
    private static func isNuthatch(_ bytes: Span<UInt8>, _ element: Range<Int>) -> Bool {
        var start = element.lowerBound
        while start < element.upperBound, !ASCII.isWhitespace(bytes[start]) { start += 1 }
        while start < element.upperBound, ASCII.isWhitespace(bytes[start]) { start += 1 }
        var end = start
        while end < element.upperBound, !ASCII.isWhitespace(bytes[end]) { end += 1 }
        return bytes.matchesIgnoringCase(pseudonym, at: start..<end)
    }
}
