/// The base URL from which a site's responses are fetched: `http://HOST[:PORT][/PATH]`, or
/// `https://`.
package struct BaseURL: Hashable, Sendable {
    /// The reason why a text is not a valid base URL.
    package enum Problem: Error, Hashable, Sendable {
        /// The text is not of the form that ``BaseURL/init(_:)`` accepts.
        case malformed
    }

    /// True for `https`.
    package let isSecure: Bool

    /// The host to resolve or connect to: a lower-case name, or an address without brackets.
    package let host: String
    /// The TCP port, never 0.
    ///
    /// It is the default of the scheme if the URL names none.
    package let port: UInt16
    /// The path prefix of every request target: empty, or `/…` without a trailing slash.
    package let path: String

    /// Parses a base URL.
    ///
    /// - Throws: ``Problem/malformed`` for another scheme, an invalid host or port, or a path with
    ///   bytes that RFC 3986 §3.3 does not allow.
    package init(_ text: String) throws(Problem) {
        let scheme = text.prefix(while: { $0 != ":" }).lowercased()
        guard scheme == "http" || scheme == "https",
            text.dropFirst(scheme.count).hasPrefix("://")
        else { throw .malformed }
        let rest = text.dropFirst(scheme.count + 3)
        let authority = rest.prefix { $0 != "/" }
        let path = rest.dropFirst(authority.count)
        guard let parts = HostPort(String(authority)), path.utf8.allSatisfy(Self.isPathByte)
        else { throw .malformed }
        isSecure = scheme == "https"
        let endpoint =
            parts.port == nil
            ? HostPort("\(parts.host):\(Self.defaultPort(isSecure: isSecure))")?.endpoint
            : parts.endpoint
        guard let endpoint else { throw .malformed }
        (host, port) = endpoint
        self.path = path.hasSuffix("/") ? String(path.dropLast()) : String(path)
    }

    /// The Host field value for this origin (RFC 9110 §7.2); includes the port only if it is not
    /// the scheme's default.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == Self.defaultPort(isSecure: isSecure) ? name : "\(name):\(port)"
    }

    /// The default port of the scheme (RFC 9110 §4.2.1, §4.2.2).
    private static func defaultPort(isSecure: Bool) -> UInt16 { isSecure ? 443 : 80 }

    /// True for the bytes that a path may contain literally (RFC 3986 §3.3), and for `%`.
    private static func isPathByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "/-._~!$&'()*+,;=:@%".utf8.contains(byte)
        }
    }
}

extension BaseURL: CustomStringConvertible {
    /// The URL in canonical form, which ``init(_:)`` accepts.
    package var description: String { "\(isSecure ? "https" : "http")://\(authority)\(path)" }
}
