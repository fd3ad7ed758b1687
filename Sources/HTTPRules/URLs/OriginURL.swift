package import Ground

/// The parts of a canonical key that an origin client needs; extents lie in the key.
package struct OriginURL: Hashable, Sendable {
    /// True for `https`.
    package var isSecure: Bool
    /// The host to resolve or to connect to: a name, or an IP address; an IPv6 address lacks its
    /// brackets.
    package var host: Extent
    /// True if the host is an IPv6 address.
    package var isIPv6: Bool
    /// The port, even if the key does not name it.
    package var port: UInt16
    /// The value of Host (RFC 9110 §7.2): the host, with brackets, and the port unless it is the
    /// scheme's default.
    package var authority: Extent
    /// The path and query for the request line (RFC 9112 §3.2.1).
    package var target: Extent

    /// Parses the key in `range`; `nil` if it is not a canonical key, which is an error of the
    /// caller.
    package init?(canonical key: Span<UInt8>, at range: Range<Int>) {
        let start = range.lowerBound
        guard range.count > 8, key.matches("http", at: start..<start + 4) else { return nil }
        isSecure = key[start + 4] == UInt8(ascii: "s")
        let begin = start + (isSecure ? 8 : 7)
        var end = begin
        while end < range.upperBound, key[end] != UInt8(ascii: "/") { end += 1 }
        guard begin < end, end < range.upperBound else { return nil }
        isIPv6 = key[begin] == UInt8(ascii: "[")
        var hostEnd = begin
        let stop = isIPv6 ? UInt8(ascii: "]") : UInt8(ascii: ":")
        while hostEnd < end, key[hostEnd] != stop { hostEnd += 1 }
        let colon = isIPv6 ? hostEnd + 1 : hostEnd
        guard colon <= end else { return nil }
        if colon < end {
            guard let number = key.decimal(at: colon + 1..<end), let port = UInt16(exactly: number)
            else { return nil }
            self.port = port
        } else {
            port = isSecure ? 443 : 80
        }
        let hostStart = isIPv6 ? begin + 1 : begin
        host = Extent(start: hostStart, count: hostEnd - hostStart)
        authority = Extent(start: begin, count: end - begin)
        target = Extent(start: end, count: range.upperBound - end)
    }
}

/// The parts of an absolute URL (RFC 3986 §4.3), as operators write one.
package struct AbsoluteURL {
    /// True for https.
    package let isSecure: Bool
    /// The host, and the port if there is one.
    package let host: Range<Int>
    /// The path and query, without a fragment.
    package let target: Range<Int>

    /// Splits a URL without validating it; `nil` if it has no `://`.
    package init?(_ url: [UInt8]) {
        guard let colon = url.firstRange(of: Array("://".utf8)) else { return nil }
        isSecure = String(decoding: url[..<colon.lowerBound], as: UTF8.self).lowercased() == "https"
        let end = url.firstIndex(of: UInt8(ascii: "#")) ?? url.count
        let rest = url[colon.upperBound..<max(end, colon.upperBound)]
        let slash = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
        host = colon.upperBound..<(slash ?? rest.endIndex)
        target = (slash ?? rest.endIndex)..<rest.endIndex
    }
}
