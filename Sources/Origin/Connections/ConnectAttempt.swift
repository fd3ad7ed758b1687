import Glibc
import Ground
import NIOCore
import NIOPosix

/// The opening of the socket of one connection to an origin, directly or through the forward proxy.
///
/// Confined to the event loop of its connection.
struct ConnectAttempt {
    /// The open channel, with the target that it is connected to, or why there is none; the target
    /// is `nil` if the socket's address is unknown.
    typealias Outcome = Result<(channel: any Channel, target: ConnectTarget?), ConnectFailure>

    let connection: OriginConnection
    let target: ConnectTarget
    let settings: OriginSettings
    let lookups: NameLookups
    let loop: any EventLoop
    /// Receives the result, once.
    let completed: (Outcome) -> Void

    /// Opens the socket.
    func start() {
        guard let proxy = settings.proxy else { return connectDirectly() }
        let host = proxy.authority.host
        if let literal = proxy.authority.literalAddress {
            return connect(through: [literal], "no address")
        }
        guard let lookup = lookups.addresses(of: host) else {
            return fail("too many host names are being looked up")
        }
        lookup.assumeIsolated().whenComplete { result in
            switch result {
            case .success(let addresses): connect(through: addresses[...], "no address")
            case .failure: fail("the proxy's name was not found")
            }
        }
    }

    private func fail(_ reason: String) {
        completed(.failure(ConnectFailure(reason: reason)))
    }

    /// Connects to the target address without a proxy.
    private func connectDirectly() {
        guard case .address(let address) = target,
            let socket = Self.socketAddress(address, connection.origin.port)
        else { return fail("no usable address") }
        bootstrap(nil).connect(to: socket).assumeIsolated().whenComplete { result in
            completed(
                result.map { channel in
                    let remote = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
                    return (channel, remote.map { .address($0) })
                }.mapError { ConnectFailure($0) })
        }
    }

    /// Tries the proxy's addresses one after the other; `reason` is the failure of the last one.
    private func connect(through addresses: ArraySlice<IPAddress>, _ reason: String) {
        guard let proxy = settings.proxy, connection.transaction != nil,
            let address = addresses.first,
            let socket = Self.socketAddress(address, proxy.authority.port)
        else { return fail("the proxy: \(reason)") }
        let opened = loop.makePromise(of: Void.self)
        let tunnel = ProxyConnectHandler(to: authority, settings: settings, opened: opened)
        bootstrap(tunnel).connect(to: socket).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                opened.futureResult.assumeIsolated().whenComplete { tunnelCompleted(channel, $0) }
            case .failure(let error):
                // A connection that was never open has no handler that could complete the promise.
                opened.fail(error)
                connect(through: addresses.dropFirst(), ConnectFailure(error).reason)
            }
        }
    }

    /// Reports the outcome of the request for a tunnel, and closes the channel if there is none.
    private func tunnelCompleted(_ channel: any Channel, _ result: Result<Void, any Error>) {
        switch result {
        case .success: completed(.success((channel, target)))
        case .failure(let error):
            channel.close(promise: nil)
            fail(ConnectFailure(error).reason)
        }
    }

    /// The target of CONNECT (RFC 9110 §9.3.6: host and port, the port always).
    private var authority: String {
        switch target {
        case .name: connection.origin.description
        case .address(let address):
            OriginAuthority(host: address.description, port: connection.origin.port).description
        }
    }

    private static func socketAddress(_ address: IPAddress, _ port: UInt16) -> SocketAddress? {
        try? SocketAddress(ipAddress: address.description, port: Int(port))
    }

    /// Creates a bootstrap whose channels contain `handler` and read only on request.
    private func bootstrap(_ handler: ProxyConnectHandler?) -> ClientBootstrap {
        let bound = NIOLoopBound((connection, handler), eventLoop: loop)
        let window = ChannelOptions.Types.SocketOption.Value(settings.receiveWindowBytes)
        // The transaction's connect limit expires first; this one only overrides NIO's shorter
        // default.
        let limit = settings.connectLimit + .seconds(1)
        return ClientBootstrap(group: loop)
            .channelOption(.autoRead, value: false)
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelOption(
                .recvAllocator,
                value: FixedSizeRecvByteBufferAllocator(capacity: settings.receiveBufferBytes)
            )
            .channelOption(.socketOption(.so_rcvbuf), value: window)
            .connectTimeout(.nanoseconds(limit.nanoseconds))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let (connection, handler) = bound.value
                    if let handler { try channel.pipeline.syncOperations.addHandler(handler) }
                    connection.channelCreated(channel)
                }
            }
    }
}

/// The failure of an attempt to connect to an origin.
struct ConnectFailure: Error {
    /// The reason in words; it contains no addresses.
    let reason: String
    /// True if the system refused a descriptor, port or memory, which is not the origin's fault.
    var isLocal = false
}

extension ConnectFailure {
    /// Creates the failure for an error of a socket, or of the request for a tunnel.
    init(_ error: any Error) {
        if let refused = error as? ProxyConnectHandler.ConnectRejected {
            self.init(reason: refused.reason)
        } else if case .connectTimeout? = error as? ChannelError {
            self.init(reason: "timed out")
        } else if let error = error as? IOError {
            let own: [CInt] = [EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS, ENOMEM]
            self.init(
                reason: Self.reason(ofErrno: error.errnoCode),
                isLocal: own.contains(error.errnoCode))
        } else {
            self.init(reason: "failed")
        }
    }

    private static func reason(ofErrno code: CInt) -> String {
        switch code {
        case ECONNREFUSED: "refused"
        case ECONNRESET: "reset"
        case ETIMEDOUT: "timed out"
        case EHOSTUNREACH, ENETUNREACH: "unreachable"
        case EMFILE, ENFILE: "this node has no free descriptor"
        case EADDRNOTAVAIL: "this node has no free port or address for it"
        default: "error \(code)"
        }
    }
}
