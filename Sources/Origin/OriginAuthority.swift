package import Ground
import HTTPRules
import Wire

/// Whom a connection is opened to, and on what terms: connections are shared only between equal
/// authorities (RFC 9110 §4.3.1), so that one made under one trust carries nothing of another.
package struct OriginAuthority: Hashable, Sendable {
    /// Canonical host: a lower-case name, dotted decimal, or an IPv6 address without brackets.
    package var host: String
    package var port: UInt16
    /// True if the operator names it, as the origin of a site, and not a client's URL: it is
    /// reached whatever the address guard and the patterns say, and its connections carry nothing
    /// else.
    package var isOperatorConfigured: Bool
    /// Over TLS.
    package var isSecure: Bool
    /// Whom to believe there, in place of the node's own trust; nil for that.
    package var trustStore: OriginTrustStore?

    package init(
        host: String, port: UInt16, isNamedByOperator: Bool = false, isSecure: Bool = false,
        trustStore: OriginTrustStore? = nil
    ) {
        self.host = host
        self.port = port
        self.isOperatorConfigured = isNamedByOperator
        self.isSecure = isSecure
        self.trustStore = trustStore
    }

    /// The authority of a canonical key; nil if it is none.
    package init?(ofKey key: Span<UInt8>) {
        guard let url = OriginURL(canonical: key, at: 0..<key.count) else { return nil }
        self.init(key, url)
    }

    /// The authority of a canonical key, taken apart as `url`.
    init(_ key: Span<UInt8>, _ url: OriginURL) {
        host = String(decoding: key.copy(url.host.range), as: UTF8.self)
        port = url.port
        isOperatorConfigured = false
        isSecure = url.isSecure
    }

    /// The same as the origin of a site.
    var operatorConfigured: OriginAuthority {
        var named = self
        named.isOperatorConfigured = true
        return named
    }

    /// The address that ``host`` is written as; nil if it is a name.
    package var literalAddress: IPAddress? { IPAddress(host) }

    /// What the certificate there must name: a final dot is of the name system, not of the name.
    var serverName: TLSServerName {
        if let literalAddress { return .address(literalAddress) }
        return .name(host.hasSuffix(".") ? String(host.dropLast()) : host)
    }
}

extension OriginAuthority: CustomStringConvertible {
    /// Host and port, an IPv6 address in brackets.
    package var description: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
