import Ground

/// A request target cut at its first question mark.
struct SplitTarget {
    var path: ArraySlice<UInt8>
    /// Behind the question mark; nil if there is none.
    var query: ArraySlice<UInt8>?

    init(_ target: ArraySlice<UInt8>) {
        let mark = target.firstIndex(of: UInt8(ascii: "?"))
        path = target[..<(mark ?? target.endIndex)]
        query = mark.map { target[($0 + 1)...] }
    }

    /// One parameter of a query; both parts as they were sent.
    struct Parameter {
        var name: ArraySlice<UInt8>
        /// Empty if there is no equals sign, too.
        var value: ArraySlice<UInt8>

        init(_ text: ArraySlice<UInt8>) {
            let equals = text.firstIndex(of: UInt8(ascii: "=")) ?? text.endIndex
            name = text[..<equals]
            value = text[equals...].dropFirst()
        }
    }

    /// The parameters of the query, in their order.
    var parameters: [Parameter] {
        guard let query else { return [] }
        return query.split(separator: UInt8(ascii: "&")).map(Parameter.init)
    }

    /// The same target without `mount`, a path without a slash at its end, before its path; nil if
    /// the path is not below it.
    func removingPrefix(_ mount: [UInt8]) -> SplitTarget? {
        guard path.starts(with: mount) else { return nil }
        var parts = self
        parts.path = path.dropFirst(mount.count)
        guard parts.path.isEmpty || parts.path.first == UInt8(ascii: "/") else { return nil }
        return parts
    }
}

/// Bytes written with percent escapes (RFC 3986 §2.1).
package enum PercentEncoding {
    /// What `text` means, each escape undone once; nil if a `%` stands without two hexadecimal
    /// digits, unless `isLenient` leaves it as it is.
    ///
    /// `plusIsSpace` is for the values of forms, in which browsers write a space as `+` (URL
    /// Standard, application/x-www-form-urlencoded).
    package static func decoded(
        _ text: ArraySlice<UInt8>, plusIsSpace: Bool = false, isLenient: Bool = false
    ) -> [UInt8]? {
        var meant: [UInt8] = []
        meant.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            if byte == UInt8(ascii: "%"), let escaped = escape(text[index...]) {
                meant.append(escaped)
                index += 3
            } else if byte == UInt8(ascii: "%"), !isLenient {
                return nil
            } else {
                meant.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
                index += 1
            }
        }
        return meant
    }

    /// The byte that the escape at the start of `text` stands for; nil if that is none.
    private static func escape(_ text: ArraySlice<UInt8>) -> UInt8? {
        let digits = text.dropFirst().prefix(2)
        guard digits.count == 2, let high = digits.first.flatMap(ASCII.hexValue),
            let low = digits.last.flatMap(ASCII.hexValue)
        else { return nil }
        return high << 4 | low
    }

    /// True if `text` begins with `http:` or `https:` whose colon is escaped, as in a URL that was
    /// escaped as a whole.
    static func isEscapedURL(_ text: ArraySlice<UInt8>) -> Bool {
        let start = text.prefix(8).map(ASCII.lowercased)
        return start.starts(with: "http%3a".utf8) || start.starts(with: "https%3a".utf8)
    }
}
