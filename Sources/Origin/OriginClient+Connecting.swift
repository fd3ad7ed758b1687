import Glibc
import Ground
import NIOCore
import NIOPosix
import Wire

extension OriginClient {
    /// Opens `connection` to `target`, through the proxy if there is one, and tells its hop, if it
    /// still has one.
    func connect(_ connection: OriginConnection, to target: ConnectTarget) {
        guard let proxy = settings.proxy else { return connectDirectly(connection, to: target) }
        let host = proxy.authority.host
        if let literal = proxy.authority.literal {
            return connect(connection, to: target, through: [literal], "no address")
        }
        guard let lookup = addresses(of: host) else {
            return failed(connection, "too many host names are being looked up")
        }
        lookup.assumeIsolated().whenComplete { result in
            switch result {
            case .success(let addresses):
                self.connect(connection, to: target, through: addresses[...], "no address")
            case .failure: self.failed(connection, "the proxy's name was not found")
            }
        }
    }

    private func connectDirectly(_ connection: OriginConnection, to target: ConnectTarget) {
        guard case .address(let address) = target,
            let socket = Self.socket(address, connection.origin.port)
        else { return failed(connection, "no usable address") }
        bootstrap(connection, nil).connect(to: socket).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                let remote = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
                self.connected(connection, channel, to: remote.map { .address($0) })
            case .failure(let error):
                self.failed(connection, Self.reason(error), isOurs: Self.isOurs(error))
            }
        }
    }

    /// Tries the proxy's addresses one after the other; `reason` is why the last one failed.
    private func connect(
        _ connection: OriginConnection, to target: ConnectTarget,
        through addresses: ArraySlice<IPAddress>, _ reason: String
    ) {
        guard let proxy = settings.proxy, connection.hop != nil, let address = addresses.first,
            let socket = Self.socket(address, proxy.authority.port)
        else { return failed(connection, "the proxy: \(reason)") }
        let opened = loop.makePromise(of: Void.self)
        let tunnel = ProxyTunnel(
            to: authority(of: target, connection), settings: settings, opened: opened)
        bootstrap(connection, tunnel).connect(to: socket).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                opened.futureResult.assumeIsolated().whenComplete { result in
                    self.tunnelled(connection, channel, to: target, result)
                }
            case .failure(let error):
                // A connection that never was has no handler that could tell.
                opened.fail(error)
                self.connect(
                    connection, to: target, through: addresses.dropFirst(), Self.reason(error))
            }
        }
    }

    private func tunnelled(
        _ connection: OriginConnection, _ channel: any Channel, to target: ConnectTarget,
        _ result: Result<Void, any Error>
    ) {
        do {
            try result.get()
            connected(connection, channel, to: target)
        } catch {
            channel.close(promise: nil)
            failed(connection, Self.reason(error))
        }
    }

    /// What CONNECT names (RFC 9110 §9.3.6: host and port, the port always).
    private func authority(of target: ConnectTarget, _ connection: OriginConnection) -> String {
        switch target {
        case .name: connection.origin.description
        case .address(let address):
            OriginAuthority(host: address.description, port: connection.origin.port).description
        }
    }

    private static func socket(_ address: IPAddress, _ port: UInt16) -> SocketAddress? {
        try? SocketAddress(ipAddress: address.description, port: Int(port))
    }

    /// A bootstrap for `connection` whose channels have `handler`, and read only when they are told
    /// to.
    private func bootstrap(
        _ connection: OriginConnection, _ handler: ProxyTunnel?
    ) -> ClientBootstrap {
        let bound = NIOLoopBound((connection, handler), eventLoop: loop)
        let window = ChannelOptions.Types.SocketOption.Value(settings.receiveWindowBytes)
        // The machine's limit on connecting comes first; this one only keeps NIO's shorter default
        // away.
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
                    connection.begins(channel)
                }
            }
    }

    private func connected(
        _ connection: OriginConnection, _ channel: any Channel, to remote: ConnectTarget?
    ) {
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            self.connectionClosed(connection)
        }
        guard let hop = connection.hop else { return connection.close() }
        do {
            // The others stand behind TLS, which the hop asks for once the address is judged.
            if !connection.origin.isSecure {
                try connection.speaks(.http1(OriginHTTP1(connection, settings: settings)))
            }
            hop.attemptSucceeded(connection, remote: remote)
        } catch {
            failed(connection, Self.reason(error))
        }
    }

    /// Agrees on TLS over a connection, and tells its hop, if it still has one.
    func secure(_ connection: OriginConnection) {
        let origin = connection.origin
        do throws(TLSSetupError) {
            let trust = try trust(for: origin)
            let session = TLSSession(
                trust.context, to: origin.serverName,
                resuming: secureOrigins.resumption(of: origin),
                offering: connection.isForUpgrade ? [.http11] : nil, buffers: tlsBuffers)
            let handler = OriginTLS(
                session, now: now,
                keep: { [weak self] in self?.secureOrigins.keep($0, of: origin) },
                agreed: { [weak self] in self?.agreed(connection, $0) })
            guard (try? connection.add(handler)) != nil else {
                return agreed(connection, .failure(TLSFailure(.truncated, as: .client)))
            }
        } catch {
            agreed(connection, .failure(TLSFailure(.ours(reason: error.sentence), as: .client)))
        }
    }

    private func agreed(
        _ connection: OriginConnection, _ result: Result<TLSParameters, TLSFailure>
    ) {
        let origin = connection.origin
        switch result {
        case .failure(let failure):
            let hop = connection.hop
            connection.close()
            hop?.attemptSecured(connection, .failure(failure))
        case .success(let parameters):
            exchange.secured(origin)
            let isShared = parameters.applicationProtocol == .http2
            if !connection.isForUpgrade {
                secureOrigins.agreed(on: parameters.applicationProtocol, with: origin)
            }
            let speaker: OriginConnection.Speaker =
                isShared
                ? .http2(OriginHTTP2(connection, settings: settings, now: now))
                : .http1(OriginHTTP1(connection, settings: settings))
            guard (try? connection.speaks(speaker)) != nil else {
                return agreed(connection, .failure(TLSFailure(.truncated, as: .client)))
            }
            connection.hop?.attemptSecured(connection, .success(()))
        }
    }

    private func failed(_ connection: OriginConnection, _ reason: String, isOurs: Bool = false) {
        connectionClosed(connection)
        connection.hop?.attemptFailed(connection, reason: reason, isOurs: isOurs)
    }

    /// True if the system refused a descriptor or port: that says nothing of the origin.
    private static func isOurs(_ error: any Error) -> Bool {
        let own: [CInt] = [EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS, ENOMEM]
        return (error as? IOError).map { own.contains($0.errnoCode) } ?? false
    }

    /// The reason in words; says nothing of addresses.
    private static func reason(_ error: any Error) -> String {
        if let refused = error as? ProxyTunnel.Refused { return refused.reason }
        if case .connectTimeout? = error as? ChannelError { return "timed out" }
        guard let error = error as? IOError else { return "failed" }
        return switch error.errnoCode {
        case ECONNREFUSED: "refused"
        case ECONNRESET: "reset"
        case ETIMEDOUT: "timed out"
        case EHOSTUNREACH, ENETUNREACH: "unreachable"
        case EMFILE, ENFILE: "this node has no descriptor left"
        case EADDRNOTAVAIL: "this node has no port or address left for it"
        default: "error \(error.errnoCode)"
        }
    }
}
