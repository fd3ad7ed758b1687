import Glibc
import Ground
import NIOCore
import Telemetry
import Wire

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

/// What a node is trusted by in an exchange over TLS.
struct TLSTarget: Sendable {
    /// The trusted issuers.
    let context: TLSClientContext
    /// The name or address that the certificate must have, sent as server name.
    let host: TLSServerName

    /// Loads the trusted issuers.
    ///
    /// - Parameters:
    ///   - host: the name or address that the certificate must have.
    ///   - file: the path of a file with further issuers; `nil` for those of the system alone.
    /// - Throws: the reason why the file cannot be used.
    init(_ host: TLSServerName, issuers file: String?) throws(CommandError) {
        var settings = TLSClientSettings(protocols: [.http11])
        do throws(FileReader.ReadError) {
            settings.issuersPEM = try file.map { path throws(FileReader.ReadError) in
                try FileReader.readRegularFile(path)
            }
        } catch {
            throw Self.unusable(file ?? "", error.reason)
        }
        do throws(TLSSetupError) {
            context = try TLSClientContext(settings)
        } catch {
            throw Self.unusable(file ?? "", error.message)
        }
        self.host = host
    }

    /// Returns the error for a file that cannot be used.
    private static func unusable(_ path: String, _ reason: String) -> CommandError {
        CommandError(
            .misconfigured,
            "--ca: \(path.quoted(limit: 4096)) cannot be used: \(reason); allowed: a file with "
                + "certificates in PEM")
    }
}

extension TLSServerName {
    /// Parses a host name or an address, optionally with a port after it; `nil` for anything else.
    init?(host text: some StringProtocol) {
        guard let parts = HostPort(String(text)) else { return nil }
        if let address = parts.address {
            self = .address(address)
        } else {
            guard let name = DomainName.canonical(parts.host[...]) else { return nil }
            self = .name(name)
        }
    }
}

extension TLSFailure {
    /// The explanation for the operator of a command, with what to do, as a clause.
    var commandText: String {
        var text = message(naming: "the node")
        if text.hasSuffix(".") { text.removeLast() }
        return text + advice
    }

    /// What the operator can do, after the explanation; empty if nothing is known.
    private var advice: String {
        switch cause {
        case .selfSigned, .unknownIssuer: "; --ca names a file with the issuer to trust"
        case .wrongHost: "; --server-name names the host to request"
        case .expired: "; renew it, and send the node SIGHUP"
        case .notYetValid: "; compare the clocks of both machines"
        case .notTLS: "; http:// requests clear text"
        default: ""
        }
    }
}
