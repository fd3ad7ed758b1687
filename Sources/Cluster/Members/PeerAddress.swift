package import Ground

/// Where a node listens for its peers: a canonical name or an address without brackets, and a port.
package struct PeerAddress: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: UInt16

    /// The most bytes of a host, as of every domain name (RFC 1035 §2.3.4).
    package static let hostBytesMax = 255

    /// `host` must be what ``HostPort/endpoint`` gives.
    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Nil for a host that is neither a name nor an address, and for port 0.
    package init?(_ written: HostPort) {
        guard let endpoint = written.endpoint else { return nil }
        (host, port) = endpoint
    }

    /// The address and port of a socket.
    package init(_ address: IPAddress, port: UInt16) {
        host = address.description
        self.port = port
    }

    /// By port, then by the bytes of the host.
    package static func < (left: PeerAddress, right: PeerAddress) -> Bool {
        guard left.port == right.port else { return left.port < right.port }
        return left.host.utf8.lexicographicallyPrecedes(right.host.utf8)
    }

    /// As it is written in settings.
    package var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
