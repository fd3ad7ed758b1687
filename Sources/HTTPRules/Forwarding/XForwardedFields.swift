package import Ground

/// The client and request that a proxy in front reports in X-Forwarded-For, X-Forwarded-Proto and
/// X-Forwarded-Host.
///
/// Read them only if the connection comes from a proxy that sets these fields itself: values from
/// any other client are not trustworthy.
package struct XForwardedFields: Hashable, Sendable {
    /// The client's address as the first trusted proxy saw it; `nil` if no field reports it.
    package let client: IPAddress?
    /// True if X-Forwarded-For is present and not empty, even if it holds no valid address.
    package let hasClientField: Bool
    /// True if the request was made over TLS; `nil` if no field reports it.
    package let isSecure: Bool?
    /// The range of the requested authority in the parsed bytes; `nil` if no field reports it.
    package let host: Range<Int>?

    /// Parses `lines`, whose extents lie in `bytes`.
    ///
    /// The client is the last address in X-Forwarded-For that is not one of `proxies`: each proxy
    /// appends the address it sees. If all of them, or all after the last invalid member, are
    /// proxies, the first of these counts. Of scheme and host the last value counts.
    package init(_ lines: [FieldLine], in bytes: Span<UInt8>, proxies: [Network]) {
        var passed: [Range<Int>] = []
        var scheme: Range<Int>?
        var host: Range<Int>?
        for line in lines where line.id == .other {
            switch ForwardedField(bytes, at: line.name.range) {
            case .xFor: passed += Self.members(bytes, at: line.value.range)
            case .xProto: scheme = Self.members(bytes, at: line.value.range).last ?? scheme
            case .xHost: host = Self.members(bytes, at: line.value.range).last ?? host
            case .standard, nil: break
            }
        }
        self.host = host
        isSecure = scheme.flatMap { scheme in
            if bytes.matchesIgnoringCase("https", at: scheme) { return true }
            return bytes.matchesIgnoringCase("http", at: scheme) ? false : nil
        }
        var client: IPAddress?
        for member in passed.reversed() {
            // Values before a word that is not an address come from untrusted senders.
            guard let address = Self.address(bytes, at: member) else { break }
            client = address
            guard proxies.contains(where: { $0.contains(address) }) else { break }
        }
        self.client = client
        hasClientField = !passed.isEmpty
    }

    /// Returns the members of a list in which every comma separates.
    ///
    /// These fields have no quoted strings, and a client's quote must not hide what a proxy
    /// appended.
    private static func members(_ bytes: Span<UInt8>, at value: Range<Int>) -> [Range<Int>] {
        var members: [Range<Int>] = []
        var cursor = value.lowerBound
        while let member = FieldSyntax.nextElement(
            bytes, at: value, cursor: &cursor, hasQuotedStrings: false)
        {
            members.append(member)
        }
        return members
    }

    /// Parses an address, with or without a port, which some proxies append; an IPv4-mapped one
    /// counts as IPv4.
    private static func address(_ bytes: Span<UInt8>, at range: Range<Int>) -> IPAddress? {
        let text = String(decoding: bytes.copy(range), as: UTF8.self)
        if let address = IPAddress(text) { return address.unmapped }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            return IPAddress(String(text[..<end].dropFirst()))?.unmapped
        }
        guard let colon = text.lastIndex(of: ":") else { return nil }
        return IPAddress(String(text[..<colon]))
    }
}
