package import Ground
package import NIOCore
import Wire

/// The origin client of one event loop; confined to that loop.
///
/// The client performs the I/O for ``TransactionStateMachine`` and ``OriginConnectionPool``: it
/// resolves, connects, writes, reads and keeps timers. State shared by all loops is in an
/// ``OriginCoordinator``. ``shutDown()`` must be called before the loop ends.
package final class OriginClient {
    /// The loop on which every method and every delegate callback runs.
    package let loop: any EventLoop
    /// The limits in force.
    package private(set) var settings: OriginSettings
    let coordinator: OriginCoordinator
    /// Counts reconfigurations; a connection is not reused in a later generation.
    private(set) var generation = 0
    /// The loop's number at the coordinator.
    private(set) var loopNumber = 0
    /// Reads the boot clock.
    let now: @Sendable () -> Instant
    /// The addresses that connections may be opened to; see
    /// ``reconfigure(settings:addressGuard:patterns:)``.
    package private(set) var addressGuard: AddressGuard
    private var patterns: [OriginPattern]
    let lookups: NameLookups
    private var pool: OriginConnectionPool
    var sharedConnections: SharedConnections
    var tlsCache = OriginTLSCache()
    let tlsBuffers = TLSBufferPool()
    /// Loaded on first use, unless the settings contain a trust store.
    private var systemTrustStore: OriginTrustStore?
    private(set) var connections: [OriginConnectionID: OriginConnection] = [:]
    private(set) var transactions: [UInt64: OriginTransaction] = [:]
    private var connectionsStarted: UInt64 = 0
    private var transactionsStarted: UInt64 = 0
    private var idleTimer: Scheduled<Void>?
    private var isShutDown = false

    /// Creates a client on `loop`.
    ///
    /// - Parameters:
    ///   - loop: the event loop that the client is confined to.
    ///   - resolver: resolves names.
    ///   - addressGuard: checks every address before and after connecting.
    ///   - patterns: the origins that may be fetched from; none if empty.
    ///   - coordinator: the coordinator shared with the clients of other loops.
    ///   - settings: the limits.
    ///   - now: reads the boot clock.
    package init(
        loop: any EventLoop, resolver: any NameResolver, addressGuard: AddressGuard,
        patterns: [OriginPattern], coordinator: OriginCoordinator,
        settings: OriginSettings, now: @escaping @Sendable () -> Instant
    ) {
        self.loop = loop
        self.addressGuard = addressGuard
        self.patterns = patterns
        self.settings = settings
        self.now = now
        self.coordinator = coordinator
        lookups = NameLookups(
            by: resolver, on: loop, coordinator: coordinator, countMax: settings.lookupsMax,
            now: now)
        pool = OriginConnectionPool(settings: settings)
        sharedConnections = SharedConnections(waitingMax: settings.sharedWaitingMax)
        loopNumber = coordinator.register(self, on: loop)
    }

    /// Starts a fetch.
    ///
    /// `delegate` is retained until its last callback; no callback happens before this method
    /// returns.
    package func fetch(
        _ request: OriginFetchRequest, to delegate: any OriginFetchDelegate
    ) -> OriginFetch {
        loop.preconditionInEventLoop()
        let fetch = OriginFetch(to: delegate, request: request, client: self)
        fetch.begin(request)
        return fetch
    }

    /// Returns the failure of a fetch of `key` if its origin's circuit is open; `nil` otherwise,
    /// even if a fetch would fail for another reason.
    ///
    /// Cheaper than a fetch, for storms of misses at an origin that is down.
    package func circuitRefusal(ofKey key: Span<UInt8>) -> OriginFailure? {
        loop.assertInEventLoop()
        guard let origin = OriginAuthority(ofKey: key), allows(origin) else { return nil }
        return circuitRefusal(of: origin)
    }

    /// Returns the failure of a fetch from the site origin `origin` if its circuit is open, like
    /// ``circuitRefusal(ofKey:)``.
    package func circuitRefusal(ofSite origin: OriginAuthority) -> OriginFailure? {
        loop.assertInEventLoop()
        return circuitRefusal(of: origin.operatorConfigured)
    }

    private func circuitRefusal(of origin: OriginAuthority) -> OriginFailure? {
        coordinator.refusal(by: origin, now: now()).map {
            .circuitOpen(origin, retryAfter: $0)
        }
    }

    /// Fails every running fetch, closes every connection, and refuses later fetches.
    package func shutDown() {
        loop.preconditionInEventLoop()
        isShutDown = true
        for number in transactions.keys.sorted() { transactions[number]?.shutDown() }
        closeIdleConnections()
    }

    /// Adopts other rules and limits; transactions in progress keep those they started with.
    ///
    /// Connections opened under the old rules are not reused: idle ones are closed at once, others
    /// after their fetches. Their TLS sessions are not resumed.
    /// ``OriginCoordinator/reconfigure(_:)`` adopts the node-wide limits.
    package func reconfigure(
        settings: OriginSettings, addressGuard: AddressGuard, patterns: [OriginPattern]
    ) {
        loop.preconditionInEventLoop()
        self.settings = settings
        generation += 1
        pool.reconfigure(settings)
        sharedConnections.waitingMax = settings.sharedWaitingMax
        sharedConnections.removeAllConnections()
        tlsCache.removeAll()
        self.addressGuard = addressGuard
        self.patterns = patterns
        closeIdleConnections()
    }

    /// The current number of fetches, connections and look-ups.
    package var usage: OriginUsage {
        OriginUsage(
            fetches: transactions.count, connections: pool.openCount, idle: pool.idleCount,
            lookups: lookups.count, connectionsStarted: connectionsStarted)
    }
}

/// The resources that an ``OriginClient`` uses.
package struct OriginUsage: Hashable, Sendable {
    /// Fetches that are in progress.
    package var fetches: Int
    /// Connections open or being opened.
    package var connections: Int
    /// Idle ones among ``connections``.
    package var idle: Int
    /// Names being looked up.
    package var lookups: Int
    /// Connection attempts since the start.
    package var connectionsStarted: UInt64
}

// MARK: - Operations for transactions

extension OriginClient {
    /// Returns why `request` is not tried at all; `nil` if it is.
    func refusal(of request: OriginFetchRequest) -> OriginFailure? {
        if isShutDown { return .shuttingDown }
        return allows(request.origin) ? nil : .originNotAllowed(request.origin)
    }

    /// Returns true if the configuration allows fetching from `origin`.
    private func allows(_ origin: OriginAuthority) -> Bool {
        origin.isOperatorConfigured
            || patterns.contains { $0.matches(host: origin.host, port: origin.port) }
    }

    /// Returns the trust store for `origin`: its own, the configured one, or the system's trust
    /// anchors, which are loaded on first use.
    func trustStore(for origin: OriginAuthority) throws(TLSSetupError) -> OriginTrustStore {
        if let trust = origin.trustStore ?? settings.trustStore ?? systemTrustStore { return trust }
        let made = try OriginTrustStore(TLSClientSettings())
        systemTrustStore = made
        return made
    }

    /// Returns the address guard for `origin`, which refuses nothing if the operator configured the
    /// origin.
    func addressGuard(for origin: OriginAuthority) -> AddressGuard {
        origin.isOperatorConfigured ? .unrestricted : addressGuard
    }

    /// Creates a transaction of `fetch` and lists it until it ends; the caller starts it.
    func makeTransaction(
        _ request: OriginFetchRequest, of fetch: OriginFetch, totalDeadline: Instant
    ) -> OriginTransaction {
        transactionsStarted += 1
        let transaction = OriginTransaction(
            number: transactionsStarted, request, of: fetch, client: self,
            totalDeadline: totalDeadline)
        transactions[transaction.number] = transaction
        return transaction
    }

    /// Removes an ended transaction from the list; those that waited for its connection proceed or
    /// fail with it.
    func transactionEnded(_ transaction: OriginTransaction, _ failure: OriginFailure?) {
        transactions[transaction.number] = nil
        endSharing(transaction, failure)
    }

    /// Resolves the transaction's host, unless a proxy does, and reports the outcome to the
    /// transaction, at once or later.
    ///
    /// All transactions that wait for one name share the look-up.
    func resolve(for transaction: OriginTransaction) {
        let origin = transaction.request.origin
        if let literal = origin.literalAddress { return transaction.resolved(.success([literal])) }
        if settings.proxy?.resolvesNames == true { return transaction.resolutionDelegatedToProxy() }
        guard let lookup = lookups.addresses(of: origin.host) else {
            return transaction.lookupsExhausted()
        }
        lookup.assumeIsolated().whenComplete { result in
            transaction.resolved(
                result.mapError { $0 as? ResolveFailure ?? .failed(String(describing: $0)) })
        }
    }

    /// Makes the next fetch resolve the origin's name again, because none of its addresses accepted
    /// a connection.
    func expireAddresses(_ origin: OriginAuthority) {
        if origin.literalAddress == nil { coordinator.expireAddresses(origin.host, now: now()) }
    }

    /// Returns the usable idle connection to `origin` that was used last; `nil` if there is none.
    ///
    /// Admission control must have subtracted one idle connection; further ones that turn out to be
    /// unusable are reported to it here.
    func takeIdle(to origin: OriginAuthority) -> OriginConnection? {
        // Connections that have ended without admission control knowing yet.
        var over = 0
        defer {
            for _ in 0..<max(0, over) { coordinator.idleConnectionClosed(origin, on: loopNumber) }
        }
        while let id = pool.takeIdleConnection(to: origin) {
            guard let connection = connections[id] else { continue }
            connection.isIdle = false
            if !connection.isUnusable { return connection }
            over += 1
        }
        // One of them is the one that admission control has counted.
        over -= 1
        return nil
    }

    /// Keeps a connection that completed a response for a later request, assigns it to a waiting
    /// transaction, or closes it.
    ///
    /// It is closed if it must not be reused, or if a transaction on another loop waits for its
    /// slot.
    func release(_ connection: OriginConnection) {
        guard !isShutDown, !connection.isUnusable, connection.generation == generation else {
            return connection.close()
        }
        switch coordinator.connectionReleased(connection.origin, on: loopNumber) {
        case .close: connection.close()
        case .assign(let id):
            guard let transaction = transactions[id.transaction] else { return connection.close() }
            transaction.connectionAssigned(connection)
        case .keep:
            connection.isIdle = true
            let closing = pool.connectionReleased(connection.id, to: connection.origin, now: now())
            for id in closing { retire(id) }
            guard connection.isIdle else { return }
            connection.markIdle()
            armIdleTimer()
        }
    }
}

// MARK: - Connections

extension OriginClient {
    /// Creates a connection to be opened, and counts it, closing the oldest idle one if the maximum
    /// is reached; `nil` if all are busy.
    func beginConnecting(for origin: OriginAuthority) -> OriginConnection? {
        switch pool.reserveConnection() {
        case .open: break
        case .replace(let id): retire(id)
        case .refuse: return nil
        }
        connectionsStarted += 1
        let id = OriginConnectionID(connectionsStarted)
        let connection = OriginConnection(
            id: id, origin: origin, generation: generation, client: self)
        connections[id] = connection
        return connection
    }

    /// Stops counting a connection that is closed, and returns its slot; without effect if
    /// repeated.
    func connectionClosed(_ connection: OriginConnection) {
        guard connections.removeValue(forKey: connection.id) != nil else { return }
        connection.channelClosed()
        streamCapacityChanged(connection)
        pool.connectionClosed(connection.id)
        markBusy(connection)
        coordinator.connectionClosed(connection.origin, wasRequested: connection.isCloseRequested)
    }

    /// Closes a connection that the pool has removed.
    private func retire(_ id: OriginConnectionID) {
        guard let connection = connections[id] else { return }
        markBusy(connection)
        connection.close()
    }

    /// Stops counting a connection as idle at admission control.
    private func markBusy(_ connection: OriginConnection) {
        guard connection.isIdle else { return }
        connection.isIdle = false
        coordinator.idleConnectionClosed(connection.origin, on: loopNumber)
    }

    private func closeIdleConnections() {
        for id in pool.removeAllIdle() { retire(id) }
        idleTimer?.cancel()
        idleTimer = nil
    }

    /// Schedules the closing of idle connections whose time limit expires, unless it is scheduled.
    private func armIdleTimer() {
        guard idleTimer == nil, let deadline = pool.deadline else { return }
        idleTimer = loop.schedule(at: deadline, now: now()) { [weak self] in
            guard let self else { return }
            idleTimer = nil
            for id in pool.removeExpired(now: now()) { retire(id) }
            armIdleTimer()
        }
    }
}

// MARK: - Notifications of the coordinator

extension OriginClient {
    /// Notifies a waiting transaction that it has a slot for a connection to `origin`; returns the
    /// slot if the transaction has ended.
    func slotGranted(_ number: UInt64, at origin: OriginAuthority) {
        guard let transaction = transactions[number] else {
            return coordinator.connectionClosed(origin)
        }
        transaction.slotGranted()
    }

    /// Fails a waiting transaction because the circuit of its origin has opened.
    func circuitOpened(_ number: UInt64, retryAfter: Interval) {
        transactions[number]?.circuitOpened(retryAfter: retryAfter)
    }

    /// Closes an idle connection, because a transaction on another loop waits for its slot;
    /// notifies the coordinator if there is none.
    func closeIdleConnection(to origin: OriginAuthority) {
        guard let connection = takeIdle(to: origin) else {
            return coordinator.noIdleConnectionClosed(origin)
        }
        connection.isCloseRequested = true
        connection.close()
    }
}
