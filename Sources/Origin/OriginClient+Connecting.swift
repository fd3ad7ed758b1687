import Ground
import NIOCore
import Wire

extension OriginClient {
    /// Opens `connection` to `target`, through the proxy if there is one, and reports the outcome
    /// to its transaction; if that is gone, the opened connection is closed.
    func connect(_ connection: OriginConnection, to target: ConnectTarget) {
        ConnectAttempt(
            connection: connection, target: target, settings: settings, lookups: lookups,
            loop: loop
        ) { result in
            switch result {
            case .success((let channel, let remote)):
                self.attemptConnected(connection, channel, to: remote)
            case .failure(let failure): self.attemptFailed(connection, failure)
            }
        }.start()
    }

    /// Reports an open connection to its transaction, or closes it if it has none; a connection
    /// without TLS starts to speak HTTP/1.1.
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
            attemptFailed(connection, ConnectFailure(error))
        }
    }

    /// Stops counting a connection that could not be opened, and notifies its transaction.
    private func attemptFailed(_ connection: OriginConnection, _ failure: ConnectFailure) {
        connectionClosed(connection)
        connection.transaction?.attemptFailed(
            connection, reason: failure.reason, isLocal: failure.isLocal)
    }

    /// Starts the TLS handshake on a connection; at its end, the connection speaks the negotiated
    /// protocol or is closed, and its transaction, if it still has one, is notified.
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

    /// Makes a connection speak the negotiated protocol, or closes it if its handshake failed, and
    /// notifies its transaction.
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
}
