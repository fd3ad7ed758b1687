package import Ground

/// The name of a site's answer in the cache: `//` host, path and query as they were sent, and
/// `#https` if the request came encrypted, because the scheme is a part of what was asked for (RFC
/// 9111 §2, RFC 9110 §4.2).
///
/// Never the key of an image, which begins with `http`. No two hosts and targets have one key: no
/// host holds a slash, every path begins with one, and no target holds `#`.
package enum SiteKey {
    /// Appends the key of what is asked for at `site`; false, and nothing is appended, if that has
    /// none.
    ///
    /// The host of a named site is its own name, whichever spelling of it was sent. That of `*` is
    /// the authority in `host` of `bytes`, in lower case, without a final dot and without the port
    /// of its scheme. `path` of `target` holds path and query, what is left of an absolute target
    /// behind its authority; it may be empty or begin with `?` (RFC 9110 §4.2.3). It must be a part
    /// of a request target: whoever calls has refused control bytes and `#`. What does not begin
    /// with a slash otherwise (the `*` of OPTIONS, the authority of CONNECT) has no key.
    package static func append(
        _ site: Site, host: Range<Int>, in bytes: Span<UInt8>,
        path: Range<Int>, of target: Span<UInt8>, isSecure: Bool = false, to key: inout [UInt8]
    ) -> Bool {
        append(
            prefix: site.keyPrefix, host: host, in: bytes, path: path, of: target,
            isSecure: isSecure, to: &key)
    }

    /// The same of a site of which only what it answers to is known.
    package static func append(
        _ pattern: SitePattern, host: Range<Int>, in bytes: Span<UInt8>,
        path: Range<Int>, of target: Span<UInt8>, isSecure: Bool = false, to key: inout [UInt8]
    ) -> Bool {
        append(
            prefix: pattern.keyPrefix, host: host, in: bytes, path: path, of: target,
            isSecure: isSecure, to: &key)
    }

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

    /// True if the bytes in `host` are a name or an address, perhaps with a port; or nothing, as
    /// old clients may have it.
    package static func isAuthority(_ bytes: Span<UInt8>, at host: Range<Int>) -> Bool {
        SiteAuthority(bytes, at: host, isSecure: false) != nil
    }

    /// Appends the authority in `host` of `bytes` as keys have it: in lower case, without a final
    /// dot and without the port of its scheme; false, and nothing is appended, if it is none.
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
