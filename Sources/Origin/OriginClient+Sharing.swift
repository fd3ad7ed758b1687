import Ground
import NIOCore
import Wire

extension OriginClient {
    /// The decision how a transaction gets a connection.
    enum SharingDecision {
        case join(OriginConnection)
        /// ``OriginTransaction/findConnection()`` or ``OriginTransaction/connectionOffered(to:)``
        /// follows.
        case wait
        case openOwn
        case refuse
    }

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

    private func isShareable(_ connection: OriginConnection) -> Bool {
        connection.isShared && !connection.isIdle && connection.availableStreams > 0
            && connection.generation == generation
    }

    /// Records that a transaction opens a connection, or waits for a slot to do so.
    func openingStarted(_ transaction: OriginTransaction, hasSlot: Bool) {
        let origin = transaction.request.origin
        guard transaction.request.upgrade.isEmpty else { return }
        if maySupportSharing(origin) {
            sharedConnections.openingStarted(transaction.number, to: origin, hasSlot: hasSlot)
        }
    }

    /// Records that a transaction uses another connection than the one it was to open.
    func openingEnded(_ transaction: OriginTransaction) {
        let origin = transaction.request.origin
        run(sharedConnections.openingEnded(transaction.number, to: origin), at: origin)
    }

    /// Records that the connection a transaction opened is open and in use by it.
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

    /// Records that the capacity of a shared connection has changed.
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
    /// If it was opening the connection that others wait for, they fail with it when the failure is
    /// the origin's; otherwise the next one opens a connection.
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

    private func scheduleConnectionSearch(_ number: UInt64) {
        loop.assumeIsolated().execute { [self] in transactions[number]?.findConnection() }
    }

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
