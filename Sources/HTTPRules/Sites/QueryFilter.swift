/// A filter that removes query parameters on which a site's responses do not depend.
///
/// Names are compared byte by byte with the text before the equals sign; an escaped letter is a
/// different letter. The remaining parameters keep their order and spelling.
package struct QueryFilter: Hashable, Sendable {
    /// A parameter name, or a prefix of names if it was written with a star.
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

    /// Creates a filter of these names; `utm_*` matches all names that begin with `utm_`, and `*`
    /// matches every parameter.
    package init(ignoring names: [String]) {
        patterns = names.map { name in
            let isPrefix = name.hasSuffix("*")
            return Pattern(
                text: Array((isPrefix ? name.dropLast() : name[...]).utf8), isPrefix: isPrefix)
        }
    }

    /// Sets `filtered` to the target without the ignored parameters.
    ///
    /// If no parameter is left, the question mark is removed, too.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that hold the target.
    ///   - target: the range of path and query.
    ///   - filtered: the result, replaced only if a parameter was removed.
    /// - Returns: false if nothing was removed; use the target as it is.
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
        // Copy up to the delimiter before the first removed parameter; each later one brings its
        // own.
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

    /// Returns the end of the parameter at the start of `range`.
    private static func end(_ bytes: Span<UInt8>, at range: Range<Int>) -> Int {
        var end = range.lowerBound
        while end < range.upperBound, bytes[end] != UInt8(ascii: "&") { end += 1 }
        return end
    }

    /// Returns true if the parameter at the start of `range` is ignored.
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
