package import Ground

/// Whom a connection is opened to: connections are shared only between equal authorities (RFC 9110
/// §4.3.1).
package struct OriginAuthority: Hashable, Sendable {
    /// Canonical host: a lower-case name, dotted decimal, or an IPv6 address without brackets.
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// The address that ``host`` is written as; nil if it is a name.
    package var literal: IPAddress? { IPAddress(host) }
}

extension OriginAuthority: CustomStringConvertible {
    /// Host and port, an IPv6 address in brackets.
    package var description: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
