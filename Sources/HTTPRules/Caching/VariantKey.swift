import Ground

/// The key of one variant of a URL: the URL's key, the generation of its ``VariantIndex``, and the
/// request's values of the nominated fields (RFC 9111 §4.1).
///
/// The format is `key LF generation LF`, then for each name `name LF` if the request lacks the
/// field, else `name:value LF`. The generation is written as 16 hexadecimal digits. Neither a name
/// nor a value holds a line feed, so two requests have the same key only if they match.
package enum VariantKey {
    /// The maximum length of all values in a key together, in bytes.
    package static let valueBytesMax = 4096

    private static let lineFeed: UInt8 = 10

    /// The parts of a variant's key.
    package struct Parts: Hashable, Sendable {
        /// The key of the URL.
        package let base: [UInt8]
        /// The generation of the URL's ``VariantIndex``.
        package let generation: UInt64
        /// The nominated field names that select the variant.
        package let names: FieldNames
        /// The bytes after the generation.
        let selection: ArraySlice<UInt8>

        /// Parses a key; `nil` if it is not that of a variant.
        package init?(_ key: [UInt8]) {
            let lines = key.split(separator: lineFeed, omittingEmptySubsequences: false)
            guard lines.count > 2, lines.last?.isEmpty == true,
                lines[1].count == HexDigits.count,
                let generation = key.span.hexadecimal(at: lines[1].indices)
            else { return nil }
            base = Array(lines[0])
            self.generation = UInt64(generation)
            selection = key[lines[1].endIndex...].dropFirst()
            var names = FieldNames()
            for line in lines[2..<(lines.count - 1)] {
                let name = Array(line.prefix { $0 != UInt8(ascii: ":") })
                names.insert(name.span, at: 0..<name.count)
            }
            guard VariantIndex.canHold(names) else { return nil }
            self.names = names
        }

        /// Returns the key of the same variant under another generation of the index.
        package func key(in generation: UInt64) -> [UInt8] {
            var key = base
            VariantKey.append(generation, to: &key)
            return key + selection
        }
    }

    /// Appends the suffix that a variant's key has after the URL's key; for one without nominated
    /// fields this is all.
    package static func append(_ generation: UInt64, to key: inout [UInt8]) {
        key.append(lineFeed)
        HexDigits(generation).append(to: &key)
        key.append(lineFeed)
    }

    /// Appends the key of the variant that a request selects.
    ///
    /// - Parameters:
    ///   - base: the key of the URL; it holds no line feed.
    ///   - generation: the generation of the URL's index.
    ///   - names: the nominated field names.
    ///   - lines: the request's field lines; their extents lie in `bytes`.
    ///   - bytes: the bytes of the request's head.
    ///   - key: the buffer to append to.
    /// - Returns: false if the values are too long or hold a line feed. Nothing is appended then,
    ///   and the request bypasses the store.
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

    /// Appends a colon and the value of the field, or nothing if the field is absent.
    ///
    /// Returns false if the result is longer than `bytesMax` bytes or holds a line feed.
    static func appendValue(
        of name: [UInt8], _ lines: [FieldLine], in bytes: Span<UInt8>, bytesMax: Int,
        to key: inout [UInt8]
    ) -> Bool {
        let start = key.count
        var value = NormalisedFieldValue(of: name)
        for line in lines where bytes.matchesFieldName(at: line.name.range, of: name) {
            for index in line.value.range where bytes[index] == lineFeed { return false }
            if key.count == start { key.append(UInt8(ascii: ":")) }
            value.append(bytes, at: line.value.range, to: &key)
            guard key.count - start <= bytesMax else { return false }
        }
        return true
    }
}

/// The normalised value of a field: all its lines joined, spelt alike for requests that mean the
/// same (RFC 9111 §4.1).
///
/// White space around list members is removed. Their order is kept, because some origins read it as
/// a preference (RFC 9110 §12.5.4). Values that the field's definition does not allow to be changed
/// are kept as they are.
struct NormalisedFieldValue {
    private enum Syntax {
        /// The value is not a list, or is a list with other commas: lines are joined unchanged.
        case verbatim
        /// Cookie pairs, which HTTP/2 may send in lines of their own (RFC 9113 §8.2.3).
        case cookies
        /// An unknown field: everything between commas counts as a member, even if empty.
        case members
        /// Case-insensitive members; empty ones are dropped (RFC 9110 §12.5.2, §12.5.3, §12.5.4).
        case tokens
        /// Members like ``tokens``, but the values of parameters keep their case (RFC 9110 §8.3.1,
        /// §12.5.1).
        case mediaTypes
    }

    private let syntax: Syntax
    /// The number of members or lines written.
    private var count = 0

    /// Starts the value of the field with this name in lower case.
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

    /// Appends the part of the value that comes from the line value in `range`.
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

    /// Appends a member with its parameters, without white space around semicolons, and in lower
    /// case where case has no meaning.
    private func appendFolded(
        _ bytes: Span<UInt8>, at element: Range<Int>, to key: inout [UInt8]
    ) {
        var start = element.lowerBound
        while start <= element.upperBound {
            let end = FieldSyntax.find(UInt8(ascii: ";"), in: bytes, at: start..<element.upperBound)
            if start > element.lowerBound { key.append(UInt8(ascii: ";")) }
            let part = FieldSyntax.trimmed(bytes, at: start..<end)
            // Only after a semicolon does an equals sign start the value of a parameter.
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
