import Ground

/// The test whether a URL is already in the form that ``CacheKey`` would give it, in one pass and
/// without a copy.
///
/// Only an IPv6 literal as host costs an allocation, because it is printed and compared.
enum CanonicalForm {
    /// The interpretation of an escape in path or query.
    enum Escapes {
        /// The bytes are a URL.
        case kept
        /// The bytes are a URL in the value of a query parameter, which normalising decodes once
        /// before anything else.
        ///
        /// `%20` becomes a space and then `%20` again; `%41` becomes `A`.
        case decoded
    }

    /// Returns true if and only if normalising returns exactly the bytes in `range`.
    @inline(__always)
    static func isCanonical(
        _ bytes: Span<UInt8>, at range: Range<Int>, escapes: Escapes, lengthMax: Int
    ) -> Bool {
        // The compiler drops bounds checks in a loop that runs to the span's own end.
        let url = bytes.extracting(range)
        guard url.count <= lengthMax, url.count > 8 else { return false }
        guard url[0] == UInt8(ascii: "h"), url[1] == UInt8(ascii: "t"),
            url[2] == UInt8(ascii: "t"), url[3] == UInt8(ascii: "p")
        else { return false }
        let secure = url[4] == UInt8(ascii: "s")
        let colon = secure ? 5 : 4
        guard url[colon] == UInt8(ascii: ":"), url[colon + 1] == UInt8(ascii: "/"),
            url[colon + 2] == UInt8(ascii: "/")
        else { return false }
        guard let hostEnd = host(url, at: colon + 3..<url.count),
            let path = port(url, at: hostEnd..<url.count, secure: secure)
        else { return false }
        return target(url, from: path, escapes: escapes)
    }

    /// Returns the end of the canonical host at the start of `range`; `nil` if the host is not
    /// canonical.
    @inline(__always)
    private static func host(_ bytes: Span<UInt8>, at range: Range<Int>) -> Int? {
        guard !range.isEmpty else { return nil }
        if bytes[range.lowerBound] == UInt8(ascii: "[") { return ipv6(bytes, at: range) }
        var index = range.lowerBound
        var label = index
        while index < bytes.count {
            let byte = bytes[index]
            guard ByteSet.host.contains(byte) else { break }
            index &+= 1
            guard byte == UInt8(ascii: ".") else { continue }
            guard label + 1 < index, index - label <= HostName.labelBytesMax + 1 else { return nil }
            label = index
        }
        guard label < index, index - label <= HostName.labelBytesMax,
            index - range.lowerBound <= HostName.bytesMax
        else { return nil }
        // Only a last label that begins with a digit can be a number.
        if ASCII.isDigit(bytes[label]) {
            guard HostName.isNameOrIPv4(bytes, at: range.lowerBound..<index, lastLabel: label)
            else { return nil }
        }
        return index
    }

    /// Returns the end of the IPv6 literal at the start of `range`; `nil` if it is not canonical.
    private static func ipv6(_ bytes: Span<UInt8>, at range: Range<Int>) -> Int? {
        var end = range.lowerBound + 1
        while end < range.upperBound, bytes[end] != UInt8(ascii: "]") { end += 1 }
        guard end < range.upperBound,
            let number = IPAddress.readV6(bytes, at: range.lowerBound + 1..<end)
        else { return nil }
        var printed: [UInt8] = []
        IPAddress.v6(number).append(to: &printed)
        let written = bytes.extracting(range.lowerBound + 1..<end)
        return printed.span.equals(written) ? end + 1 : nil
    }

    /// Returns the start of the path, after the host or after a canonical port that is not the
    /// scheme's default; `nil` if there is none.
    @inline(__always)
    private static func port(_ bytes: Span<UInt8>, at range: Range<Int>, secure: Bool) -> Int? {
        guard let first = range.first else { return nil }
        if bytes[first] == UInt8(ascii: "/") { return first }
        guard bytes[first] == UInt8(ascii: ":") else { return nil }
        var index = first + 1
        var number = 0
        while index < range.upperBound, index < first + 7, ASCII.isDigit(bytes[index]) {
            number = number * 10 + Int(bytes[index] &- 0x30)
            index &+= 1
        }
        guard index > first + 1, index < range.upperBound, bytes[index] == UInt8(ascii: "/"),
            bytes[first + 1] != UInt8(ascii: "0"), number <= 65_535,
            number != (secure ? 443 : 80)
        else { return nil }
        return index
    }

    /// Returns true if path and query, which begin at `path`, are canonical.
    @inline(__always)
    private static func target(_ url: Span<UInt8>, from path: Int, escapes: Escapes) -> Bool {
        var index = path
        var inPath = true
        while index < url.count {
            let byte = url[index]
            if ByteSet.plainPath.contains(byte) {
                index &+= 1
            } else if byte == UInt8(ascii: ".") {
                if inPath, isDotSegment(url, at: index..<url.count) { return false }
                index &+= 1
            } else if byte == UInt8(ascii: "?") {
                inPath = false
                index &+= 1
            } else {
                guard byte == UInt8(ascii: "%"), isEscape(url, at: index..<url.count, escapes)
                else { return false }
                index &+= 3
            }
        }
        return true
    }

    /// Returns true if the dot at the start of `range`, which is in a path, begins `.` or `..`
    /// between slashes.
    private static func isDotSegment(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        let start = range.lowerBound
        guard bytes[start - 1] == UInt8(ascii: "/") else { return false }
        var end = start + 1
        if end < range.upperBound, bytes[end] == UInt8(ascii: ".") { end += 1 }
        return end == range.upperBound || bytes[end] == UInt8(ascii: "/")
            || bytes[end] == UInt8(ascii: "?")
    }

    /// Returns true if normalising keeps the escape at the start of `range`.
    private static func isEscape(
        _ bytes: Span<UInt8>, at range: Range<Int>, _ escapes: Escapes
    ) -> Bool {
        let start = range.lowerBound
        guard range.count >= 3, let high = upperHexValue(bytes[start + 1]),
            let low = upperHexValue(bytes[start + 2])
        else { return false }
        let byte = high << 4 | low
        switch escapes {
        case .kept: return !ByteSet.unreserved.contains(byte)
        case .decoded: return URLNormaliser.isEncoded(byte)
        }
    }

    @inline(__always)
    private static func upperHexValue(_ byte: UInt8) -> UInt8? {
        byte &- 0x61 < 26 ? nil : ASCII.hexValue(byte)
    }
}

/// The syntax of a URL's host: a DNS name in ASCII, or an IPv4 address as four decimal numbers.
package enum HostName {
    /// The maximum length of a label in bytes (RFC 1035 §2.3.4).
    package static let labelBytesMax = 63
    /// The maximum length of a name in bytes, without its trailing dot (RFC 1035 §2.3.4).
    package static let bytesMax = 253

    /// Returns false if the last label is a number but the whole is not an IPv4 address in strict
    /// form.
    ///
    /// Other parsers accept `0x7f.1`, `127.1`, `2130706433` and `0177.0.0.1` as addresses, so none
    /// is accepted as a name (the URL Standard's "ends in a number").
    ///
    /// - Parameters:
    ///   - bytes: the bytes that hold the host.
    ///   - range: the range of the host.
    ///   - lastLabel: the offset at which the last label begins.
    /// - Returns: true if the host is a name or an IPv4 address in strict form.
    package static func isNameOrIPv4(
        _ bytes: Span<UInt8>, at range: Range<Int>, lastLabel: Int
    ) -> Bool {
        !isNumber(bytes, at: lastLabel..<range.upperBound)
            || IPAddress.readV4(bytes, at: range) != nil
    }

    /// Returns true for digits only, and for `0x` followed by hexadecimal digits or nothing.
    private static func isNumber(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        if range.count >= 2, bytes[range.lowerBound] == UInt8(ascii: "0"),
            bytes[range.lowerBound + 1] | 0x20 == UInt8(ascii: "x")
        {
            for index in range.lowerBound + 2..<range.upperBound
            where ASCII.hexValue(bytes[index]) == nil {
                return false
            }
            return true
        }
        for index in range where !ASCII.isDigit(bytes[index]) { return false }
        return true
    }
}
