/// Takes the query parameters out of a request target that a site's answers do not depend on.
///
/// Names are compared byte by byte with what stands before the equals sign: an escaped letter is
/// another letter. Everything that stays keeps its place and its spelling.
package struct QueryFilter: Hashable, Sendable {
    /// A name, or the beginning of names if it ended in a star.
    private struct Pattern: Hashable, Sendable {
        var text: [UInt8]
        var isPrefix: Bool

        func matches(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
            guard isPrefix ? text.count <= range.count : text.count == range.count else {
                return false
            }
            for offset in text.indices where bytes[range.lowerBound + offset] != text[offset] {
                return false
            }
            return true
        }
    }

    private let patterns: [Pattern]

    /// A filter of these names; `utm_*` means all that begin with `utm_`, and `*` every parameter.
    package init(ignoring names: [String]) {
        patterns = names.map { name in
            let isPrefix = name.hasSuffix("*")
            return Pattern(
                text: Array((isPrefix ? name.dropLast() : name[...]).utf8), isPrefix: isPrefix)
        }
    }

    /// Makes `filtered` the target without the ignored parameters.
    ///
    /// False if there are none in it: the target is good as it is, and `filtered` is untouched. If
    /// nothing is left of the query its question mark goes, too.
    package func filter(
        _ bytes: Span<UInt8>, at target: Range<Int>, into filtered: inout [UInt8]
    ) -> Bool {
        guard !patterns.isEmpty else { return false }
        var mark = target.lowerBound
        while mark < target.upperBound, bytes[mark] != UInt8(ascii: "?") { mark += 1 }
        guard mark < target.upperBound else { return false }
        let query = mark + 1..<target.upperBound
        var first = query.lowerBound
        while !isIgnored(bytes, at: first..<query.upperBound) {
            first = Self.end(bytes, at: first..<query.upperBound) + 1
            guard first <= query.upperBound else { return false }
        }
        filtered.removeAll(keepingCapacity: true)
        // Up to the delimiter before the first that goes, so that each that stays brings its own.
        for index in target.lowerBound..<first - 1 { filtered.append(bytes[index]) }
        var delimiter = first == query.lowerBound ? UInt8(ascii: "?") : UInt8(ascii: "&")
        var start = first
        while start <= query.upperBound {
            let end = Self.end(bytes, at: start..<query.upperBound)
            if !isIgnored(bytes, at: start..<query.upperBound) {
                filtered.append(delimiter)
                for index in start..<end { filtered.append(bytes[index]) }
                delimiter = UInt8(ascii: "&")
            }
            start = end + 1
        }
        if filtered.last == UInt8(ascii: "?"), filtered.count == mark - target.lowerBound + 1 {
            filtered.removeLast()
        }
        return true
    }

    /// The end of the parameter at the start of `range`.
    private static func end(_ bytes: Span<UInt8>, at range: Range<Int>) -> Int {
        var end = range.lowerBound
        while end < range.upperBound, bytes[end] != UInt8(ascii: "&") { end += 1 }
        return end
    }

    /// True if the parameter at the start of `range` is to go.
    private func isIgnored(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        var end = range.lowerBound
        while end < range.upperBound, bytes[end] != UInt8(ascii: "&"),
            bytes[end] != UInt8(ascii: "=")
        {
            end += 1
        }
        for pattern in patterns where pattern.matches(bytes, at: range.lowerBound..<end) {
            return true
        }
        return false
    }
}
