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
