import Ground

/// The ways that a message came (RFC 9110 §7.6.3).
package enum Via {
    /// What Nuthatch calls itself there, in lower case.
    package static let pseudonym = "nuthatch"

    /// Appends our line for a message that was received in `version` of HTTP.
    package static func append(version: String, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "Via: \(version) \(pseudonym)\r\n".utf8)
    }

    /// How often Nuthatch stands in the Via lines among `lines`: through how many nodes, or how
    /// often through one, the message came.
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

    /// The next comma outside of comments, which may be nested (RFC 9110 §5.6.5).
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

    /// True if the second word of `protocol received-by [comment]` is our name.
    private static func isNuthatch(_ bytes: Span<UInt8>, _ element: Range<Int>) -> Bool {
        var start = element.lowerBound
        while start < element.upperBound, !FieldSyntax.isWhitespace(bytes[start]) { start += 1 }
        while start < element.upperBound, FieldSyntax.isWhitespace(bytes[start]) { start += 1 }
        var end = start
        while end < element.upperBound, !FieldSyntax.isWhitespace(bytes[end]) { end += 1 }
        return bytes.matchesIgnoringCase(pseudonym, at: start..<end)
    }
}
