import Ground

/// The name of one variant of a URL's answers: the URL's key, the generation of its
/// ``VariantIndex``, and what a request says in the nominated fields (RFC 9111 §4.1).
///
/// `key LF generation LF`, and for each name `name LF` if the request has no such field, else
/// `name:value LF`. The generation is written as 16 hexadecimal digits. Neither a name nor a value
/// holds a line feed, so two requests have the same key only if they match.
package enum VariantKey {
    /// Bytes of all values at most, as they stand in the key.
    package static let valueBytesMax = 4096

    private static let lineFeed: UInt8 = 10

    /// A variant's key, taken apart.
    package struct Parts: Hashable, Sendable {
        /// The key of its URL.
        package let base: [UInt8]
        package let generation: UInt64
        /// What selects it.
        package let names: FieldNames
        /// All behind the generation.
        let selection: ArraySlice<UInt8>

        /// Nil if `key` is that of no variant.
        package init?(_ key: [UInt8]) {
            let lines = key.split(separator: lineFeed, omittingEmptySubsequences: false)
            guard lines.count > 2, lines.last?.isEmpty == true, lines[1].count == 16 else {
                return nil
            }
            var generation: UInt64 = 0
            for digit in lines[1] {
                guard let value = ASCII.hexValue(digit) else { return nil }
                generation = generation << 4 | UInt64(value)
            }
            base = Array(lines[0])
            self.generation = generation
            selection = key[lines[1].endIndex...].dropFirst()
            var names = FieldNames()
            for line in lines[2..<(lines.count - 1)] {
                let name = Array(line.prefix { $0 != UInt8(ascii: ":") })
                names.insert(name.span, at: 0..<name.count)
            }
            guard VariantIndex.canHold(names) else { return nil }
            self.names = names
        }

        /// The key of the same variant in an index of another generation.
        package func key(in generation: UInt64) -> [UInt8] {
            var key = base
            VariantKey.append(generation, to: &key)
            return key + selection
        }
    }

    /// Appends what tells a variant's key of this generation from that of its URL; of one without
    /// nominated fields that is all.
    package static func append(_ generation: UInt64, to key: inout [UInt8]) {
        key.append(lineFeed)
        for place in 0..<UInt64(16) {
            let digit = generation >> (60 - 4 * place) & 15
            key.append(ASCII.hexDigit(UInt8(digit)))
        }
        key.append(lineFeed)
    }

    /// Appends the key of the variant that the request with `lines`, which lie in `bytes`, selects
    /// by `names`.
    ///
    /// False if the values are too long or hold a line feed; nothing is appended then, and the
    /// request is answered without the store. `base` holds no line feed.
    package static func append(
        base: Span<UInt8>, generation: UInt64, names: FieldNames,
        lines: [FieldLine], in bytes: Span<UInt8>, to key: inout [UInt8]
    ) -> Bool {
        let start = key.count
        key.reserveCapacity(start + base.count + 128)
        key.append(addingCapacity: base.count) { output in
            for index in 0..<base.count { output.append(base[index]) }
        }
        append(generation, to: &key)
        var left = valueBytesMax
        for name in names.names {
            key += name
            let valueStart = key.count
            guard appendValue(of: name, lines, in: bytes, bytesMax: left, to: &key) else {
                key.removeSubrange(start...)
                return false
            }
            left -= key.count - valueStart
            key.append(lineFeed)
        }
        return true
    }

    /// Appends a colon and the value of the field, or nothing if there is no such field; false if
    /// that is more than `bytesMax` bytes or holds a line feed.
    static func appendValue(
        of name: [UInt8], _ lines: [FieldLine], in bytes: Span<UInt8>, bytesMax: Int,
        to key: inout [UInt8]
    ) -> Bool {
        let start = key.count
        var value = NormalisedFieldValue(of: name)
        for line in lines where FieldSyntax.matchesName(name, bytes, at: line.name.range) {
            for index in line.value.range where bytes[index] == lineFeed { return false }
            if key.count == start { key.append(UInt8(ascii: ":")) }
            value.append(bytes, at: line.value.range, to: &key)
            guard key.count - start <= bytesMax else { return false }
        }
        return true
    }
}

/// The lines of one field as one value, spelt alike for all requests that say the same by it (RFC
/// 9111 §4.1).
///
/// White space around the members of lists goes away; their order stays, because some origins read
/// it as a preference (RFC 9110 §12.5.4). What a field's own definition does not let be changed is
/// left as it is.
struct NormalisedFieldValue {
    private enum Syntax {
        /// Not a list, or a list by other commas: only lines are joined.
        case verbatim
        /// Crumbs of cookies, which HTTP/2 sends in lines of their own (RFC 9113 §8.2.3).
        case cookies
        /// Of a field that is not known: all that can be thought of as a member counts.
        case members
        /// Without regard to case, empty members nothing (RFC 9110 §12.5.2, §12.5.3, §12.5.4).
        case tokens
        /// As ``words``, but for the values of parameters (RFC 9110 §8.3.1, §12.5.1).
        case mediaTypes
    }

    private let syntax: Syntax
    /// Members or lines that were written.
    private var count = 0

    /// The value of the field with this name in lower case.
    init(of name: [UInt8]) {
        let name = name.span
        let all = 0..<name.count
        if name.matches("accept-encoding", at: all) || name.matches("accept-language", at: all)
            || name.matches("accept-charset", at: all)
        {
            syntax = .tokens
        } else if name.matches("accept", at: all) {
            syntax = .mediaTypes
        } else if name.matches("cookie", at: all) {
            syntax = .cookies
        } else if name.matches("authorization", at: all) || name.matches("user-agent", at: all)
            || name.matches("referer", at: all)
        {
            syntax = .verbatim
        } else {
            syntax = .members
        }
    }

    /// Appends what the line with the value in `range` adds.
    mutating func append(_ bytes: Span<UInt8>, at range: Range<Int>, to key: inout [UInt8]) {
        switch syntax {
        case .verbatim:
            separate(by: Self.comma, &key)
            for index in range { key.append(bytes[index]) }
        case .cookies:
            separate(by: Self.crumbs, &key)
            for index in range { key.append(bytes[index]) }
        case .members: appendMembers(bytes, at: range, to: &key)
        case .tokens, .mediaTypes:
            var cursor = range.lowerBound
            while let element = FieldSyntax.nextElement(bytes, at: range, cursor: &cursor) {
                separate(by: Self.comma, &key)
                appendFolded(bytes, at: element, to: &key)
            }
        }
    }

    private static let comma = [UInt8(ascii: ",")]
    private static let crumbs = Array("; ".utf8)

    private mutating func separate(by separator: [UInt8], _ key: inout [UInt8]) {
        if count > 0 { key += separator }
        count += 1
    }

    private mutating func appendMembers(
        _ bytes: Span<UInt8>, at range: Range<Int>, to key: inout [UInt8]
    ) {
        var start = range.lowerBound
        while start <= range.upperBound {
            let end = FieldSyntax.find(UInt8(ascii: ","), in: bytes, at: start..<range.upperBound)
            separate(by: Self.comma, &key)
            for index in FieldSyntax.trimmed(bytes, at: start..<end) { key.append(bytes[index]) }
            start = end + 1
        }
    }

    /// Appends an element with its parameters, without white space around the semicolons and in
    /// lower case where case says nothing.
    private func appendFolded(
        _ bytes: Span<UInt8>, at element: Range<Int>, to key: inout [UInt8]
    ) {
        var start = element.lowerBound
        while start <= element.upperBound {
            let end = FieldSyntax.find(UInt8(ascii: ";"), in: bytes, at: start..<element.upperBound)
            if start > element.lowerBound { key.append(UInt8(ascii: ";")) }
            let part = FieldSyntax.trimmed(bytes, at: start..<end)
            // Only behind the semicolon does an equals sign begin the value of a parameter.
            let hasValue = syntax == .mediaTypes && start > element.lowerBound
            key.append(addingCapacity: part.count) { output in
                var folds = true
                for index in part {
                    output.append(folds ? ASCII.lowercased(bytes[index]) : bytes[index])
                    if hasValue, bytes[index] == UInt8(ascii: "=") { folds = false }
                }
            }
            start = end + 1
        }
    }
}
