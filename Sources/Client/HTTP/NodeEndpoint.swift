import Glibc
import Ground
import NIOCore
import Telemetry

/// The host and port of a node.
package struct NodeEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// The host name or address; IPv6 without brackets.
    package let host: String
    /// The port.
    package let port: UInt16

    /// Creates an endpoint from its parts.
    package init(host: String, port: UInt16) {
        (self.host, self.port) = (host, port)
    }

    /// Creates the endpoint of a listening address.
    init(_ address: ListenAddress) {
        (host, port) = ("\(address.address)", address.port)
    }

    /// Parses `HOST` or `HOST:PORT`, optionally with `http://` before and `/` after it; `nil` for
    /// anything else.
    package init?(_ text: String, defaultPort: UInt16) {
        var text = text[...]
        if text.hasPrefix("http://") { text = text.dropFirst(7) }
        if text.hasSuffix("/") { text = text.dropLast() }
        guard let parts = HostPort(String(text)), parts.port != 0 else { return nil }
        port = parts.port ?? defaultPort
        if let address = parts.address {
            host = "\(address)"
        } else {
            guard let name = DomainName.canonical(parts.host[...]) else { return nil }
            host = name
        }
    }

    /// The endpoint as in URLs and Host.
    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// The socket addresses in the order in which they are tried, or the failure of the look-up.
    var resolved: Result<[SocketAddress], ExchangeError> {
        Result { () throws(ExchangeError) in try addresses() }
    }

    /// Resolves the host.
    private func addresses() throws(ExchangeError) -> [SocketAddress] {
        if let address = try? SocketAddress(ipAddress: host, port: Int(port)) { return [address] }
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var first: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, "\(port)", &hints, &first)
        guard code == 0 else { throw .unresolved(unsafe String(cString: gai_strerror(code))) }
        defer { unsafe freeaddrinfo(first) }
        var addresses: [SocketAddress] = []
        var next = unsafe first
        while let entry = unsafe next {
            if let address = unsafe Self.address(entry.pointee) { addresses.append(address) }
            unsafe next = entry.pointee.ai_next
        }
        return addresses
    }

    /// Returns the socket address of a look-up's result.
    private static func address(_ entry: addrinfo) -> SocketAddress? {
        guard let pointer = unsafe entry.ai_addr else { return nil }
        let raw = UnsafeRawPointer(pointer)
        switch unsafe entry.ai_family {
        case AF_INET: return SocketAddress(unsafe raw.loadUnaligned(as: sockaddr_in.self))
        case AF_INET6: return SocketAddress(unsafe raw.loadUnaligned(as: sockaddr_in6.self))
        default: return nil
        }
    }
}
