/// A pattern for origins: any host, one host, or all hosts below a name; on one port or any.
///
/// `*.example.com` matches names below example.com, not example.com itself.
package struct OriginPattern: Hashable, Sendable {
    private enum Host: Hashable, Sendable {
        case any
        case name(String)
        case address(IPAddress)
        /// The suffix with its leading dot.
        case subdomains(String)
    }

    private let host: Host
    /// The only port that matches; `nil` for any.
    private let port: UInt16?

    /// The pattern that matches every origin.
    package static let everything = OriginPattern(host: .any, port: nil)

    private init(host: Host, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// Parses `*`, `host` or `*.suffix`, each with an optional `:port`; `nil` for anything else,
    /// including URLs.
    ///
    /// Names are ASCII (Punycode); case and a final dot are ignored. An IPv6 address is written in
    /// brackets.
    package init?(_ text: String) {
        guard let parts = HostPort(text), parts.port != 0 else { return nil }
        port = parts.port
        if parts.host == "*" {
            host = .any
        } else if let address = parts.address {
            host = .address(address)
        } else if parts.host.hasPrefix("*.") {
            guard let name = DomainName.canonical(parts.host.dropFirst(2)) else { return nil }
            host = .subdomains("." + name)
        } else {
            guard let name = DomainName.canonical(parts.host[...]) else { return nil }
            host = .name(name)
        }
    }

    /// True if the pattern matches an origin.
    ///
    /// - Parameters:
    ///   - host: in lower case, an IPv6 address without brackets.
    ///   - port: the port of the origin.
    /// - Returns: true if host and port match; a pattern without a port matches every port.
    package func matches(host: String, port: UInt16) -> Bool {
        if let only = self.port, only != port { return false }
        let bare = host.hasSuffix(".") ? host.dropLast() : host[...]
        switch self.host {
        case .any: return true
        case .name(let name): return bare == name
        case .address(let address): return IPAddress(host) == address
        case .subdomains(let suffix):
            return bare.utf8.count > suffix.utf8.count && bare.hasSuffix(suffix)
        }
    }
}

extension OriginPattern: CustomStringConvertible {
    /// The pattern in canonical form, which ``init(_:)`` accepts.
    package var description: String {
        let text =
            switch host {
            case .any: "*"
            case .name(let name): name
            case .address(let address):
                address.bitCount == 128 ? "[\(address)]" : "\(address)"
            case .subdomains(let suffix): "*" + suffix
            }
        return port.map { "\(text):\($0)" } ?? text
    }
}

/// A pattern for the Host field of a site: one name or address, on one port or any, or the
/// catch-all.
package struct SitePattern: Hashable, Sendable {
    /// The host in lower case without a final dot, an IPv6 address in brackets; `nil` for the
    /// catch-all.
    package let host: String?
    /// The only port that matches; `nil` for any.
    package let port: UInt16?

    /// The pattern for every Host that no other site matches.
    package static let catchAll = SitePattern(host: nil, port: nil)

    private init(host: String?, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// Parses `*`, `HOST` or `HOST:PORT`; `nil` for anything else.
    ///
    /// Names are ASCII (Punycode); an IPv6 address is written in brackets.
    package init?(_ text: String) {
        if text == "*" {
            self = .catchAll
            return
        }
        guard let parts = HostPort(text), parts.port != 0 else { return nil }
        if let address = parts.address {
            host = address.bitCount == 128 ? "[\(address)]" : "\(address)"
        } else {
            guard let name = DomainName.canonical(parts.host[...]) else { return nil }
            host = name
        }
        port = parts.port
    }
}

extension SitePattern: CustomStringConvertible {
    /// The pattern in canonical form, which is also the name of the site.
    package var description: String {
        guard let host else { return "*" }
        return port.map { "\(host):\($0)" } ?? host
    }
}
