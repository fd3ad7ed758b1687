package import Ground

/// The address on which a node listens for its peers.
///
/// The host is a canonical name, or an address without brackets.
package struct PeerAddress: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The canonical name or address, without brackets.
    package let host: String
    /// The port; not 0 if it was parsed.
    package let port: UInt16

    /// Maximum bytes of a host, the limit of every domain name (RFC 1035 §2.3.4).
    package static let hostBytesMax = 255

    /// Creates an address from its parts; `host` must be canonical, as in ``HostPort/endpoint``.
    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Creates an address from a configured one; `nil` if the host is neither a name nor an
    /// address, or the port is 0.
    package init?(_ written: HostPort) {
        guard let endpoint = written.endpoint else { return nil }
        (host, port) = endpoint
    }

    /// Creates the address of a socket.
    package init(_ address: IPAddress, port: UInt16) {
        host = address.description
        self.port = port
    }

    /// Orders addresses by port, then by the bytes of the host.
    package static func < (left: PeerAddress, right: PeerAddress) -> Bool {
        guard left.port == right.port else { return left.port < right.port }
        return left.host.utf8.lexicographicallyPrecedes(right.host.utf8)
    }

    /// The address as written in settings, with brackets around an IPv6 address.
    package var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
