import Ground

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
