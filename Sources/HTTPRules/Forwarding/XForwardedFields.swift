package import Ground

/// What a proxy in front of the node says of a request in X-Forwarded-For, X-Forwarded-Proto and
/// X-Forwarded-Host.
///
/// To be read only where the connection comes from a proxy that writes these fields itself: what
/// any other client says in them is not known to be true.
package struct XForwardedFields: Hashable, Sendable {
    /// Who asked the first of the proxies that are believed; nil if no field says it.
    package let client: IPAddress?
    /// There is a field that is to say it, whether or not it does.
    package let hasClientField: Bool
    /// It was asked over TLS, or not; nil if no field says it.
    package let isSecure: Bool?
    /// The authority that it was asked for, in the bytes that were read; nil if no field says it.
    package let host: Range<Int>?

    /// Reads `lines`, whose extents lie in `bytes`.
    ///
    /// Of the addresses in X-Forwarded-For the last counts that is not one of `proxies`: each proxy
    /// puts the address that it sees behind those that it was told. Of scheme and host the last
    /// counts that is said.
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
            // What stands before a word that is no address was said by nobody who is believed.
            guard let address = Self.address(bytes, at: member) else { break }
            client = address
            guard proxies.contains(where: { $0.contains(address) }) else { break }
        }
        self.client = client
        hasClientField = !passed.isEmpty
    }

    /// The members of a list in which every comma separates: these fields know no quoted strings,
    /// and a quote that a client sent must not hide what a proxy put behind it.
    private static func members(_ bytes: Span<UInt8>, at value: Range<Int>) -> [Range<Int>] {
        var members: [Range<Int>] = []
        var start = value.lowerBound
        while start <= value.upperBound {
            let end =
                (start..<value.upperBound).first { bytes[$0] == UInt8(ascii: ",") }
                ?? value.upperBound
            let member = FieldSyntax.trimmed(bytes, at: start..<end)
            if !member.isEmpty { members.append(member) }
            start = end + 1
        }
        return members
    }

    /// An address, perhaps with a port behind it, as some proxies write it.
    private static func address(_ bytes: Span<UInt8>, at range: Range<Int>) -> IPAddress? {
        let text = String(decoding: bytes.copy(range), as: UTF8.self)
        if let address = IPAddress(text) { return address.unmapped }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            return IPAddress(String(text[text.index(after: text.startIndex)..<end]))
        }
        guard let colon = text.lastIndex(of: ":") else { return nil }
        return IPAddress(String(text[..<colon]))
    }
}
