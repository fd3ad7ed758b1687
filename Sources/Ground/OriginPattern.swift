/// Which origins may be fetched from: any host, one, or all below a name; on one port or any.
///
/// `*.example.com` means names below example.com, not example.com itself.
package struct OriginPattern: Hashable, Sendable {
    private enum Host: Hashable, Sendable {
        case any
        case name(String)
        case address(IPAddress)
        /// With its leading dot.
        case subdomains(String)
    }

    private let host: Host
    /// The only port; nil for any.
    private let port: UInt16?

    /// Every origin.
    package static let everything = OriginPattern(host: .any, port: nil)

    private init(host: Host, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// `*`, `host` or `*.suffix`, each perhaps with `:port`; nil for anything else, URLs among it.
    ///
    /// Names are in ASCII (Punycode) and taken without regard to case and to a final dot; an IPv6
    /// address stands in brackets.
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

    /// True if the operator means this origin; `host` is in lower case, an IPv6 address without
    /// brackets.
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
    /// As it can be written, in canonical form.
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

/// Which Host a site answers to: one name or address, perhaps on one port only, or every other.
package struct SitePattern: Hashable, Sendable {
    /// In lower case without a final dot, an IPv6 address in brackets; nil for every Host that no
    /// other site answers to.
    package let host: String?
    /// Nil for any port.
    package let port: UInt16?

    /// Every Host that no other site answers to.
    package static let catchAll = SitePattern(host: nil, port: nil)

    private init(host: String?, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// `*`, `HOST` or `HOST:PORT`; nil for anything else.
    ///
    /// Names are in ASCII (Punycode); an IPv6 address stands in brackets.
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
    /// As it can be written, in canonical form; also the name of the site.
    package var description: String {
        guard let host else { return "*" }
        return port.map { "\(host):\($0)" } ?? host
    }
}
