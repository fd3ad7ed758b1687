package import Ground

/// The cache key of a site's response: `//`, the host, path and query as sent, and `#https` if the
/// request came by TLS, because the scheme is part of the URI (RFC 9111 §2, RFC 9110 §4.2).
///
/// It never equals the key of an image, which begins with `http`. Two different hosts and targets
/// never have the same key: no host holds a slash, every path begins with one, and no target holds
/// `#`.
package enum SiteKey {
    /// Appends the key of a request at `site`.
    ///
    /// The host in the key of a named site is the site's name, in whichever spelling it was sent.
    /// For `*` it is the requested authority in lower case, without a final dot and without its
    /// scheme's default port.
    ///
    /// - Parameters:
    ///   - site: the site that serves the request.
    ///   - host: the range of the requested authority in `bytes`.
    ///   - bytes: the bytes that hold the authority.
    ///   - path: the range of path and query in `target`, without the authority of an absolute
    ///     target. It may be empty or begin with `?` (RFC 9110 §4.2.3). The caller must have
    ///     rejected control bytes and `#`.
    ///   - target: the bytes that hold path and query.
    ///   - isSecure: true if the request came by TLS.
    ///   - key: the buffer to append to.
    /// - Returns: false, with nothing appended, if the request has no key: its target is the `*` of
    ///   OPTIONS or the authority of CONNECT, or the host is invalid.
    package static func append(
        _ site: Site, host: Range<Int>, in bytes: Span<UInt8>,
        path: Range<Int>, of target: Span<UInt8>, isSecure: Bool = false, to key: inout [UInt8]
    ) -> Bool {
        append(
            prefix: site.keyPrefix, host: host, in: bytes, path: path, of: target,
            isSecure: isSecure, to: &key)
    }

    /// Appends the key of a request at a site of which only the pattern is known.
    ///
    /// - Parameters:
    ///   - pattern: the pattern of the site.
    ///   - host: the range of the requested authority in `bytes`.
    ///   - bytes: the bytes that hold the authority.
    ///   - path: the range of path and query in `target`.
    ///   - target: the bytes that hold path and query.
    ///   - isSecure: true if the request came by TLS.
    ///   - key: the buffer to append to.
    /// - Returns: false, with nothing appended, if the request has no key.
    package static func append(
        _ pattern: SitePattern, host: Range<Int>, in bytes: Span<UInt8>,
        path: Range<Int>, of target: Span<UInt8>, isSecure: Bool = false, to key: inout [UInt8]
    ) -> Bool {
        append(
            prefix: pattern.keyPrefix, host: host, in: bytes, path: path, of: target,
            isSecure: isSecure, to: &key)
    }

    /// Appends a key that begins with `prefix` or, if that is empty, with the requested authority.
    private static func append(
        prefix: [UInt8], host: Range<Int>, in bytes: Span<UInt8>,
        path: Range<Int>, of target: Span<UInt8>, isSecure: Bool, to key: inout [UInt8]
    ) -> Bool {
        let isBare = path.isEmpty || target[path.lowerBound] == UInt8(ascii: "?")
        guard isBare || target[path.lowerBound] == UInt8(ascii: "/") else { return false }
        if prefix.isEmpty {
            let start = key.count
            key.append(UInt8(ascii: "/"))
            key.append(UInt8(ascii: "/"))
            guard append(authority: host, in: bytes, isSecure: isSecure, to: &key) else {
                key.removeSubrange(start...)
                return false
            }
        } else {
            key.append(contentsOf: prefix)
        }
        if isBare { key.append(UInt8(ascii: "/")) }
        let target = target.extracting(path)
        key.append(addingCapacity: target.count) { output in
            for index in 0..<target.count { output.append(target[index]) }
        }
        if isSecure { key.append(contentsOf: secureSuffix) }
        return true
    }

    private static let secureSuffix = Array("#https".utf8)

    /// Returns true if `host` holds a name or an address, optionally with a port, or is empty, as
    /// HTTP/1.0 permits.
    package static func isAuthority(_ bytes: Span<UInt8>, at host: Range<Int>) -> Bool {
        SiteAuthority(bytes, at: host, isSecure: false) != nil
    }

    /// Appends the authority in `host` as written in keys: in lower case, without a final dot and
    /// without its scheme's default port.
    ///
    /// Returns false, with nothing appended, if the authority is invalid.
    @discardableResult
    package static func append(
        authority host: Range<Int>, in bytes: Span<UInt8>, isSecure: Bool, to text: inout [UInt8]
    ) -> Bool {
        guard let authority = SiteAuthority(bytes, at: host, isSecure: isSecure) else {
            return false
        }
        for index in authority.host { text.append(ASCII.lowercased(bytes[index])) }
        guard authority.port != (isSecure ? 443 : 80) else { return true }
        text.append(UInt8(ascii: ":"))
        ASCII.append(UInt64(authority.port), to: &text)
        return true
    }
}
