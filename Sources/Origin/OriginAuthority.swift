package import Ground
import HTTPRules
import Wire

/// The target of a connection and the terms on which it is opened.
///
/// Connections are shared only between equal authorities (RFC 9110 §4.3.1), so a connection made
/// under one trust store carries no request of another.
package struct OriginAuthority: Hashable, Sendable {
    /// The canonical host: a lower-case name, dotted decimal, or an IPv6 address without brackets.
    package var host: String
    /// The TCP port.
    package var port: UInt16
    /// True if the operator configured this authority as the origin of a site, as opposed to a
    /// client's URL.
    ///
    /// The address guard and the origin patterns do not apply to it, and its connections are not
    /// shared with fetches of client URLs.
    package var isOperatorConfigured: Bool
    /// True if the connection uses TLS.
    package var isSecure: Bool
    /// The trust store for connections to this authority; `nil` for ``OriginSettings/trustStore``.
    package var trustStore: OriginTrustStore?

    /// Creates an authority from its parts; `host` must be canonical.
    package init(
        host: String, port: UInt16, isOperatorConfigured: Bool = false, isSecure: Bool = false,
        trustStore: OriginTrustStore? = nil
    ) {
        self.host = host
        self.port = port
        self.isOperatorConfigured = isOperatorConfigured
        self.isSecure = isSecure
        self.trustStore = trustStore
    }

    /// Creates the authority of a canonical key; `nil` if the key contains none.
    package init?(ofKey key: Span<UInt8>) {
        guard let url = OriginURL(canonical: key, at: 0..<key.count) else { return nil }
        self.init(key, url)
    }

    /// Creates the authority of a canonical key that was parsed as `url`.
    init(_ key: Span<UInt8>, _ url: OriginURL) {
        host = String(decoding: key.copy(url.host.range), as: UTF8.self)
        port = url.port
        isOperatorConfigured = false
        isSecure = url.isSecure
    }

    /// A copy of this authority with ``isOperatorConfigured`` set.
    var operatorConfigured: OriginAuthority {
        var named = self
        named.isOperatorConfigured = true
        return named
    }

    /// The address that ``host`` denotes; `nil` if it is a name.
    package var literalAddress: IPAddress? { IPAddress(host) }

    /// The URL without a path, always with the port.
    package var url: String { "\(isSecure ? "https" : "http")://\(self)" }

    /// The name or address that the certificate must contain; a final dot, which belongs to DNS, is
    /// removed.
    var serverName: TLSServerName {
        if let literalAddress { return .address(literalAddress) }
        return .name(host.hasSuffix(".") ? String(host.dropLast()) : host)
    }
}

extension OriginAuthority: CustomStringConvertible {
    /// Host and port, with an IPv6 address in brackets.
    package var description: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
