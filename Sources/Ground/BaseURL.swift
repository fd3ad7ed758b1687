/// Where a site's answers come from: `http://HOST[:PORT][/PATH]`, or `https://`.
package struct BaseURL: Hashable, Sendable {
    /// Why a text is no base of a site's URLs.
    package enum Problem: Error, Hashable, Sendable {
        case malformed
    }

    /// True for `https`.
    package let isSecure: Bool

    /// The host to resolve or to connect to: a name in lower case, or an address without brackets.
    package let host: String
    package let port: UInt16
    /// What stands before every path that is asked for: empty, or `/…` without a slash at its end.
    package let path: String

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

    /// The value of Host for this origin (RFC 9110 §7.2): the port only if it is not the scheme's.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == Self.defaultPort(isSecure: isSecure) ? name : "\(name):\(port)"
    }

    /// The port of a URL that names none (RFC 9110 §4.2.1, §4.2.2).
    private static func defaultPort(isSecure: Bool) -> UInt16 { isSecure ? 443 : 80 }

    /// What stands for itself in a path (RFC 3986 §3.3), and `%`.
    private static func isPathByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "/-._~!$&'()*+,;=:@%".utf8.contains(byte)
        }
    }
}

extension BaseURL: CustomStringConvertible {
    /// As it can be written.
    package var description: String { "\(isSecure ? "https" : "http")://\(authority)\(path)" }
}
