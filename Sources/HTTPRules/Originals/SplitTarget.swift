import Ground

/// A request target split at its first question mark.
struct SplitTarget {
    var path: ArraySlice<UInt8>
    /// The bytes after the question mark; `nil` if there is none.
    var query: ArraySlice<UInt8>?

    init(_ target: ArraySlice<UInt8>) {
        let mark = target.firstIndex(of: UInt8(ascii: "?"))
        path = target[..<(mark ?? target.endIndex)]
        query = mark.map { target[($0 + 1)...] }
    }

    /// One parameter of a query, with name and value as received.
    struct Parameter {
        var name: ArraySlice<UInt8>
        /// The value; also empty if there is no equals sign.
        var value: ArraySlice<UInt8>

        init(_ text: ArraySlice<UInt8>) {
            let equals = text.firstIndex(of: UInt8(ascii: "=")) ?? text.endIndex
            name = text[..<equals]
            value = text[equals...].dropFirst()
        }
    }

    /// The parameters of the query in order.
    var parameters: [Parameter] {
        guard let query else { return [] }
        return query.split(separator: UInt8(ascii: "&")).map(Parameter.init)
    }

    /// Returns the target without the path prefix `mount`; `nil` if the path is not below it.
    ///
    /// `mount` must not end in a slash.
    func removingPrefix(_ mount: [UInt8]) -> SplitTarget? {
        guard path.starts(with: mount) else { return nil }
        var parts = self
        parts.path = path.dropFirst(mount.count)
        guard parts.path.isEmpty || parts.path.first == UInt8(ascii: "/") else { return nil }
        return parts
    }
}

/// Percent encoding (RFC 3986 §2.1).
package enum PercentEncoding {
    /// Returns `text` with each escape decoded once.
    ///
    /// - Parameters:
    ///   - text: the encoded bytes.
    ///   - plusIsSpace: true for form values, in which browsers write a space as `+` (URL Standard,
    ///     application/x-www-form-urlencoded).
    ///   - isLenient: true to keep a `%` without two hexadecimal digits as it is.
    /// - Returns: `nil` if a `%` lacks two hexadecimal digits and `isLenient` is false.
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

    /// Returns true for an unreserved byte (RFC 3986 §2.3), which needs no escape anywhere.
    package static func isUnreserved(_ byte: UInt8) -> Bool { ByteSet.unreserved.contains(byte) }

    /// Returns `text` with an escape in place of each byte that is not plain; without `isPlain`,
    /// unreserved bytes are.
    package static func encoded(
        _ text: some Sequence<UInt8>, _ isPlain: (UInt8) -> Bool = isUnreserved
    ) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return text.flatMap { byte in
            isPlain(byte)
                ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }

    /// Returns the byte that the escape at the start of `text` encodes; `nil` if there is none.
    private static func escape(_ text: ArraySlice<UInt8>) -> UInt8? {
        let digits = text.dropFirst().prefix(2)
        guard digits.count == 2, let high = digits.first.flatMap(ASCII.hexValue),
            let low = digits.last.flatMap(ASCII.hexValue)
        else { return nil }
        return high << 4 | low
    }

    /// Returns true if `text` begins with `http:` or `https:` with an escaped colon, as in a URL
    /// that was escaped as a whole.
    static func isEscapedURL(_ text: ArraySlice<UInt8>) -> Bool {
        let start = text.prefix(8).map(ASCII.lowercased)
        return start.starts(with: "http%3a".utf8) || start.starts(with: "https%3a".utf8)
    }
}
