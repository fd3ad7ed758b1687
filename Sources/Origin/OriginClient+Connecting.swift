import Glibc
import Ground
import NIOCore
import NIOPosix
import Wire

extension OriginClient {
    /// Opens `connection` to `target`, through the proxy if there is one, and notifies its
    /// transaction, if it still has one.
    func connect(_ connection: OriginConnection, to target: ConnectTarget) {
        guard let proxy = settings.proxy else { return connectDirectly(connection, to: target) }
        let host = proxy.authority.host
        if let literal = proxy.authority.literalAddress {
            return connect(connection, to: target, through: [literal], "no address")
        }
        guard let lookup = addresses(of: host) else {
            return attemptFailed(connection, "too many host names are being looked up")
        }
        lookup.assumeIsolated().whenComplete { result in
            switch result {
            case .success(let addresses):
                self.connect(connection, to: target, through: addresses[...], "no address")
            case .failure: self.attemptFailed(connection, "the proxy's name was not found")
            }
        }
    }

    private func connectDirectly(_ connection: OriginConnection, to target: ConnectTarget) {
        guard case .address(let address) = target,
            let socket = Self.socketAddress(address, connection.origin.port)
        else { return attemptFailed(connection, "no usable address") }
        bootstrap(connection, nil).connect(to: socket).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                let remote = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
                self.attemptConnected(connection, channel, to: remote.map { .address($0) })
            case .failure(let error):
                self.attemptFailed(
                    connection, Self.reason(error), isLocal: Self.isLocalResourceError(error))
            }
        }
    }

    /// Tries the proxy's addresses one after the other; `reason` is the failure of the last one.
    private func connect(
        _ connection: OriginConnection, to target: ConnectTarget,
        through addresses: ArraySlice<IPAddress>, _ reason: String
    ) {
        guard let proxy = settings.proxy, connection.transaction != nil,
            let address = addresses.first,
            let socket = Self.socketAddress(address, proxy.authority.port)
        else { return attemptFailed(connection, "the proxy: \(reason)") }
        let opened = loop.makePromise(of: Void.self)
        let tunnel = ProxyConnectHandler(
            to: authority(of: target, connection), settings: settings, opened: opened)
        bootstrap(connection, tunnel).connect(to: socket).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                opened.futureResult.assumeIsolated().whenComplete { result in
                    self.tunnelCompleted(connection, channel, to: target, result)
                }
            case .failure(let error):
                // A connection that was never open has no handler that could complete the promise.
                opened.fail(error)
                self.connect(
                    connection, to: target, through: addresses.dropFirst(), Self.reason(error))
            }
        }
    }

    private func tunnelCompleted(
        _ connection: OriginConnection, _ channel: any Channel, to target: ConnectTarget,
        _ result: Result<Void, any Error>
    ) {
        do {
            try result.get()
            attemptConnected(connection, channel, to: target)
        } catch {
            channel.close(promise: nil)
            attemptFailed(connection, Self.reason(error))
        }
    }

    /// Returns the target of CONNECT (RFC 9110 §9.3.6: host and port, the port always).
    private func authority(of target: ConnectTarget, _ connection: OriginConnection) -> String {
        switch target {
        case .name: connection.origin.description
        case .address(let address):
            OriginAuthority(host: address.description, port: connection.origin.port).description
        }
    }

    private static func socketAddress(_ address: IPAddress, _ port: UInt16) -> SocketAddress? {
        try? SocketAddress(ipAddress: address.description, port: Int(port))
    }

    /// Creates a bootstrap for `connection` whose channels contain `handler` and read only on
    /// request.
    private func bootstrap(
        _ connection: OriginConnection, _ handler: ProxyConnectHandler?
    ) -> ClientBootstrap {
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

    private func attemptConnected(
        _ connection: OriginConnection, _ channel: any Channel, to remote: ConnectTarget?
    ) {
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            self.connectionClosed(connection)
        }
        guard let transaction = connection.transaction else { return connection.close() }
        do {
            // TLS connections are activated after the handshake, which the transaction requests
            // once the address has been checked.
            if !connection.origin.isSecure {
                try connection.activate(.http1(OriginHTTP1Handler(connection, settings: settings)))
            }
            transaction.attemptSucceeded(connection, remote: remote)
        } catch {
            attemptFailed(connection, Self.reason(error))
        }
    }

    /// Starts the TLS handshake on a connection, and notifies its transaction, if it still has one.
    func startTLS(_ connection: OriginConnection) {
        let origin = connection.origin
        do throws(TLSSetupError) {
            let trust = try trustStore(for: origin)
            let session = TLSSession(
                trust.context, to: origin.serverName,
                resuming: tlsCache.resumption(of: origin),
                offering: connection.isForUpgrade ? [.http11] : nil, buffers: tlsBuffers)
            let handler = OriginTLSHandler(
                session, now: now,
                storeResumption: { [weak self] in self?.tlsCache.store($0, of: origin) },
                handshakeCompleted: { [weak self] in self?.tlsCompleted(connection, $0) })
            guard (try? connection.add(handler)) != nil else {
                return tlsCompleted(connection, .failure(TLSFailure(.truncated, as: .client)))
            }
        } catch {
            tlsCompleted(
                connection, .failure(TLSFailure(.internalError(reason: error.message), as: .client))
            )
        }
    }

    private func tlsCompleted(
        _ connection: OriginConnection, _ result: Result<TLSParameters, TLSFailure>
    ) {
        let origin = connection.origin
        switch result {
        case .failure(let failure):
            let transaction = connection.transaction
            connection.close()
            transaction?.attemptTLSCompleted(connection, .failure(failure))
        case .success(let parameters):
            coordinator.tlsSucceeded(origin)
            let isShared = parameters.applicationProtocol == .http2
            if !connection.isForUpgrade {
                tlsCache.recordProtocol(on: parameters.applicationProtocol, with: origin)
            }
            let speaker: OriginConnection.ProtocolHandler =
                isShared
                ? .http2(OriginHTTP2Handler(connection, settings: settings, now: now))
                : .http1(OriginHTTP1Handler(connection, settings: settings))
            guard (try? connection.activate(speaker)) != nil else {
                return tlsCompleted(connection, .failure(TLSFailure(.truncated, as: .client)))
            }
            connection.transaction?.attemptTLSCompleted(connection, .success(()))
        }
    }

    private func attemptFailed(
        _ connection: OriginConnection, _ reason: String, isLocal: Bool = false
    ) {
        connectionClosed(connection)
        connection.transaction?.attemptFailed(connection, reason: reason, isLocal: isLocal)
    }

    /// True if the system refused a descriptor, port or memory, which is not the origin's fault.
    private static func isLocalResourceError(_ error: any Error) -> Bool {
        let own: [CInt] = [EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS, ENOMEM]
        return (error as? IOError).map { own.contains($0.errnoCode) } ?? false
    }

    /// Returns the reason in words; it contains no addresses.
    private static func reason(_ error: any Error) -> String {
        if let refused = error as? ProxyConnectHandler.ConnectRejected { return refused.reason }
        if case .connectTimeout? = error as? ChannelError { return "timed out" }
        guard let error = error as? IOError else { return "failed" }
        return switch error.errnoCode {
        case ECONNREFUSED: "refused"
        case ECONNRESET: "reset"
        case ETIMEDOUT: "timed out"
        case EHOSTUNREACH, ENETUNREACH: "unreachable"
        case EMFILE, ENFILE: "this node has no free descriptor"
        case EADDRNOTAVAIL: "this node has no free port or address for it"
        default: "error \(error.errnoCode)"
        }
    }
}
