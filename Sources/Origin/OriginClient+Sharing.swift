import Ground
import NIOCore
import Wire

extension OriginClient {
    /// The decision how a transaction gets a connection.
    enum SharingDecision {
        /// Join this shared connection.
        case join(OriginConnection)
        /// Wait for a connection that another transaction opens;
        /// ``OriginTransaction/findConnection()`` or ``OriginTransaction/connectionOffered(to:)``
        /// follows.
        case wait
        /// Open a connection of its own.
        case openOwn
        /// Fail, because too many transactions wait.
        case refuse
    }

    /// Decides whether a transaction joins a connection, waits for one or opens its own, and counts
    /// it accordingly at ``sharedConnections``.
    ///
    /// A transaction with a protocol switch, or to an origin that cannot speak HTTP/2, opens its
    /// own.
    func sharingDecision(for transaction: OriginTransaction) -> SharingDecision {
        let origin = transaction.request.origin
        guard transaction.request.upgrade.isEmpty, maySupportSharing(origin) else {
            return .openOwn
        }
        switch sharedConnections.connectionDecision(by: transaction.number, to: origin) {
        case .join(let id):
            if let connection = connections[id], isShareable(connection) {
                return .join(connection)
            }
            run(sharedConnections.connectionEnded(id, to: origin), at: origin)
            return .openOwn
        case .wait: return .wait
        case .openOwn: return .openOwn
        case .refuse: return .refuse
        }
    }

    /// Returns true if a connection to `origin` may turn out to be shareable.
    private func maySupportSharing(_ origin: OriginAuthority) -> Bool {
        guard origin.isSecure, tlsCache.maySupportHTTP2(origin) else { return false }
        return (try? trustStore(for: origin))?.settings.protocols.contains(.http2) ?? false
    }

    /// Returns true if a further transaction may join the connection now.
    private func isShareable(_ connection: OriginConnection) -> Bool {
        connection.isShared && !connection.isIdle && connection.availableStreams > 0
            && connection.generation == generation
    }

    /// Records that a transaction opens a connection for which others wait from now on; `hasSlot`
    /// is false while it waits for a slot to do so.
    ///
    /// Without effect for a protocol switch, if the origin cannot speak HTTP/2, or if another
    /// transaction is already opening one.
    func openingStarted(_ transaction: OriginTransaction, hasSlot: Bool) {
        let origin = transaction.request.origin
        guard transaction.request.upgrade.isEmpty else { return }
        if maySupportSharing(origin) {
            sharedConnections.openingStarted(transaction.number, to: origin, hasSlot: hasSlot)
        }
    }

    /// Records that a transaction uses another connection than the one it was to open, so that
    /// those that waited for it proceed.
    func openingEnded(_ transaction: OriginTransaction) {
        let origin = transaction.request.origin
        run(sharedConnections.openingEnded(transaction.number, to: origin), at: origin)
    }

    /// Records that a transaction uses the connection it has opened.
    ///
    /// Those that waited for it join it if it speaks HTTP/2, and otherwise open connections of
    /// their own.
    func connectionOpened(_ connection: OriginConnection, by transaction: OriginTransaction) {
        let origin = connection.origin
        guard connection.isShared else {
            // Transactions that waited for it open connections of their own.
            guard origin.isSecure else { return }
            for number in sharedConnections.removeWaiting(from: origin) {
                scheduleConnectionSearch(number)
            }
            return
        }
        connection.openerID = transaction.number
        streamCapacityChanged(connection)
    }

    /// Publishes how many more transactions a shared connection can carry, or that it accepts none,
    /// and lets waiting transactions proceed.
    ///
    /// Without effect for a usable HTTP/1.1 connection.
    func streamCapacityChanged(_ connection: OriginConnection) {
        guard connection.isShared || connection.isUnusable else { return }
        let (id, origin) = (connection.id, connection.origin)
        let isOffered =
            !connection.isIdle && !connection.isUnusable && connection.generation == generation
        run(
            isOffered
                ? sharedConnections.capacityChanged(
                    id, to: origin, availableStreams: connection.availableStreams)
                : sharedConnections.connectionEnded(id, to: origin), at: origin)
        // Until its capacity is known, transactions that wait for it open no other connection.
        guard let opener = connection.openerID, connection.hasSettings || connection.isUnusable
        else {
            return
        }
        connection.openerID = nil
        run(sharedConnections.openingEnded(opener, to: origin), at: origin)
    }

    /// Records that a transaction has ended.
    ///
    /// If it was opening the connection that others wait for, they fail with it when the failure
    /// concerns every connection to the origin (name, address, TCP, TLS); otherwise the next one
    /// opens a connection.
    func endSharing(_ transaction: OriginTransaction, _ failure: OriginFailure?) {
        let origin = transaction.request.origin
        guard sharedConnections.fetchEnded(transaction.number, origin) else { return }
        guard let failure, failure.isConnectionSetupFailure else {
            return run(sharedConnections.openingEnded(transaction.number, to: origin), at: origin)
        }
        for number in sharedConnections.removeWaiting(from: origin) {
            loop.assumeIsolated().execute { [self] in transactions[number]?.openingFailed(failure) }
        }
    }

    /// Schedules the next steps of transactions that waited.
    private func run(_ steps: [SharedConnections.Action], at origin: OriginAuthority) {
        for step in steps {
            switch step {
            case .openOwn(let number): scheduleConnectionSearch(number)
            case .join(let number, let id):
                loop.assumeIsolated().execute { [self] in
                    offerConnection(number, to: id, at: origin)
                }
            }
        }
    }

    /// Lets a waiting transaction look for a connection again, but not within the present call.
    private func scheduleConnectionSearch(_ number: UInt64) {
        loop.assumeIsolated().execute { [self] in transactions[number]?.findConnection() }
    }

    /// Offers a connection to a transaction, or lets it search again if the connection is no longer
    /// shareable; then publishes the capacity, because the transaction may not have used its place.
    private func offerConnection(
        _ number: UInt64, to id: OriginConnectionID, at origin: OriginAuthority
    ) {
        let connection = connections[id]
        if let transaction = transactions[number] {
            if let connection, isShareable(connection) {
                transaction.connectionOffered(to: connection)
            } else {
                transaction.findConnection()
            }
        }
        if let connection { streamCapacityChanged(connection) }
    }
}

extension OriginFailure {
    /// True if the failure applies to every transaction that waits for the same connection.
    fileprivate var isConnectionSetupFailure: Bool {
        switch self {
        case .addressRefused, .nameNotFound, .resolverFailed, .connectFailed, .tls,
            .timedOut(.resolving, limit: _), .timedOut(.connecting, limit: _),
            .timedOut(.handshaking, limit: _):
            true
        default: false
        }
    }
}
