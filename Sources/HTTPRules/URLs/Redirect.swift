import Ground

/// A redirect that was followed on the way to a response.
package struct Redirect: Hashable, Sendable {
    /// The head of the redirect.
    package var head: ResponseHead
    /// When the redirect was requested and received.
    package var timing: Freshness.ResponseTiming
    /// The URL that it led to, a canonical key.
    package var url: [UInt8]

    /// Creates a redirect from its parts.
    package init(head: ResponseHead, timing: Freshness.ResponseTiming, url: [UInt8]) {
        self.head = head
        self.timing = timing
        self.url = url
    }
}

/// The URL that a redirect leads to (RFC 9110 §10.2.2, RFC 3986 §5.2).
package enum RedirectTarget {
    /// Resolves the value of Location against a canonical key, and normalises the result into a
    /// canonical key.
    ///
    /// Dot segments and the fragment are removed as in any URL.
    ///
    /// - Parameters:
    ///   - location: the value of Location.
    ///   - key: the canonical key of the URL that was requested.
    ///   - scratch: receives the key; its previous content is discarded.
    ///   - bytesMax: the maximum length of the key in bytes.
    /// - Returns: `.normalised` if `scratch` holds the key, or `.refused` with the reason.
    package static func resolve(
        _ location: [UInt8], against key: [UInt8], into scratch: inout [UInt8],
        bytesMax: Int = CacheKey.bytesMaxDefault
    ) -> CacheKeyResult {
        let absolute = absolute(location, against: key)
        return CacheKey.normalise(
            url: absolute.span, at: 0..<absolute.count, into: &scratch, bytesMax: bytesMax)
    }

    /// Returns the absolute URL, not yet normalised; `location` itself if `key` is not canonical.
    private static func absolute(_ location: [UInt8], against key: [UInt8]) -> [UInt8] {
        if hasScheme(location) { return location }
        guard let url = OriginURL(canonical: key.span, at: 0..<key.count) else {
            // A relative reference, which normalising refuses.
            return location
        }
        if location.starts(with: "//".utf8) {
            return Array(url.isSecure ? "https:".utf8 : "http:".utf8) + location
        }
        let target = url.target.range.lowerBound
        return key.prefix(target) + mergedTarget(location, with: key.dropFirst(target))
    }

    /// Returns true if `location` begins with a scheme (RFC 3986 §3.1).
    static func hasScheme(_ location: [UInt8]) -> Bool {
        guard let first = location.first, ASCII.isLetter(first) else { return false }
        for byte in location {
            switch byte {
            case UInt8(ascii: ":"): return true
            case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): continue
            case _ where ASCII.isLetter(byte) || ASCII.isDigit(byte): continue
            default: return false
            }
        }
        return false
    }

    /// Returns path and query of a reference without scheme and authority (RFC 3986 §5.2.2,
    /// §5.2.3).
    private static func mergedTarget(
        _ location: [UInt8], with base: ArraySlice<UInt8>
    ) -> [UInt8] {
        let path = base.prefix { $0 != UInt8(ascii: "?") }
        switch location.first {
        case nil, UInt8(ascii: "#"): return Array(base) + location
        case UInt8(ascii: "/"): return location
        case UInt8(ascii: "?"): return Array(path) + location
        default:
            let directory = path.prefix(
                (path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)
                    - path.startIndex + 1)
            return Array(directory) + location
        }
    }
}
