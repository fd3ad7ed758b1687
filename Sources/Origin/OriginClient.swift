import Glibc
package import Ground
package import NIOCore
import NIOPosix

/// Fetches from origins on one event loop; everything of it is used on that loop only.
///
/// It is the shell around ``FetchMachine`` and ``OriginPool``: it looks up, connects, writes, reads
/// and keeps time. ``shutDown()`` must be called before the loop ends.
package final class OriginClient {
    /// The loop on which every method is called and every delegate is told.
    package let loop: any EventLoop
    package private(set) var settings: OriginSettings
    /// The boot clock.
    let now: @Sendable () -> Instant
    /// What connections may be opened to; see ``adopt(settings:addressGuard:patterns:)``.
    package private(set) var addressGuard: AddressGuard
    private var patterns: [OriginPattern]
    private let resolver: any NameResolver
    private var pool: OriginPool
    private var connections: [ConnectionID: OriginConnection] = [:]
    private var fetches: [UInt64: OriginFetch] = [:]
    private var lookups: [String: EventLoopFuture<[IPAddress]>] = [:]
    private var connectionsBegun: UInt64 = 0
    private var fetchesBegun: UInt64 = 0
    private var idleTimer: Scheduled<Void>?
    private var isShutDown = false

    /// A client on `loop`.
    ///
    /// - Parameters:
    ///   - loop: where the client lives.
    ///   - resolver: turns names into addresses.
    ///   - addressGuard: judges every address before and after connecting.
    ///   - patterns: the origins that may be fetched from; none if empty.
    ///   - settings: limits.
    ///   - now: reads the boot clock.
    package init(
        loop: any EventLoop, resolver: any NameResolver, addressGuard: AddressGuard,
        patterns: [OriginPattern], settings: OriginSettings = OriginSettings(),
        now: @escaping @Sendable () -> Instant
    ) {
        self.loop = loop
        self.resolver = resolver
        self.addressGuard = addressGuard
        self.patterns = patterns
        self.settings = settings
        self.now = now
        pool = OriginPool(settings: settings)
    }

    /// Begins a fetch; `delegate` is held until its last call and is told nothing before this
    /// returns.
    package func fetch(
        _ request: OriginFetchRequest, to delegate: any OriginFetchDelegate
    ) -> OriginFetch {
        loop.preconditionInEventLoop()
        fetchesBegun += 1
        let fetch = OriginFetch(number: fetchesBegun, request, to: delegate, client: self)
        fetches[fetch.number] = fetch
        loop.assumeIsolated().execute { fetch.start() }
        return fetch
    }

    /// Fails every fetch that runs, closes every connection, and refuses what comes later.
    package func shutDown() {
        loop.preconditionInEventLoop()
        isShutDown = true
        for number in fetches.keys.sorted() { fetches[number]?.shutDown() }
        closeIdle()
    }

    /// From now on other rules apply; idle connections, which were opened under the old ones, are
    /// closed.
    ///
    /// Fetches and connections that have begun keep the limits they began with.
    package func adopt(
        settings: OriginSettings, addressGuard: AddressGuard, patterns: [OriginPattern]
    ) {
        loop.preconditionInEventLoop()
        self.settings = settings
        pool.adopt(settings)
        self.addressGuard = addressGuard
        self.patterns = patterns
        closeIdle()
    }

    /// How many fetches, connections and look-ups there are now.
    package var usage: OriginUsage {
        OriginUsage(
            fetches: fetches.count, connections: pool.openCount, idle: pool.idleCount,
            lookups: lookups.count, connectionsBegun: connectionsBegun)
    }
}

/// What an ``OriginClient`` has in use.
package struct OriginUsage: Hashable, Sendable {
    /// Fetches begun and neither ended, failed nor cancelled.
    package var fetches: Int
    /// Connections open or being opened.
    package var connections: Int
    /// Those of ``connections`` that run no fetch.
    package var idle: Int
    /// Names being looked up.
    package var lookups: Int
    /// Connections ever begun.
    package var connectionsBegun: UInt64
}

// MARK: - For a fetch

extension OriginClient {
    /// Why `request` is not even tried; nil if it is.
    func refusal(of request: OriginFetchRequest) -> OriginFailure? {
        if isShutDown { return .shutDown }
        if request.isSecure { return .schemeNotServed("https") }
        guard
            patterns.contains(where: {
                $0.matches(host: request.origin.host, port: request.origin.port)
            })
        else {
            return .originNotAllowed(request.origin)
        }
        return nil
    }

    func fetchLeft(_ fetch: OriginFetch) {
        fetches[fetch.number] = nil
    }

    /// Looks up the fetch's host; all fetches that wait for one name share the look-up.
    func resolve(for fetch: OriginFetch) {
        let origin = fetch.request.origin
        if let literal = origin.literal { return fetch.resolved(.success([literal])) }
        guard let lookup = lookup(origin.host) else { return fetch.lookupsExhausted() }
        lookup.assumeIsolated().whenComplete { result in
            fetch.resolved(
                result.mapError { $0 as? ResolveFailure ?? .failed(String(describing: $0)) })
        }
    }

    private func lookup(_ host: String) -> EventLoopFuture<[IPAddress]>? {
        if let running = lookups[host] { return running }
        guard lookups.count < settings.lookupsMax else { return nil }
        let lookup = resolver.addresses(of: host, on: loop).hop(to: loop)
        lookups[host] = lookup
        lookup.assumeIsolated().whenComplete { _ in self.lookups[host] = nil }
        return lookup
    }

    /// The idle connection to `origin` that was used last.
    func takeIdle(to origin: OriginAuthority) -> OriginConnection? {
        while let id = pool.connectionWanted(to: origin) {
            guard let connection = connections[id], !connection.isOver else { continue }
            return connection
        }
        return nil
    }

    /// Keeps a connection whose answer ended for the next fetch.
    func release(_ connection: OriginConnection) {
        guard !isShutDown, !connection.isOver else { return connection.close() }
        let closing = pool.connectionReleased(connection.id, to: connection.origin, now: now())
        for id in closing { connections[id]?.close() }
        connection.becomeIdle()
        armIdleTimer()
    }

    /// Runs `task` on the loop at `deadline` or shortly after; the caller cancels what it does not
    /// want.
    func schedule(at deadline: Instant, _ task: @escaping () -> Void) -> Scheduled<Void> {
        // A clock that runs behind the loop's must not make a timer that comes early spin.
        let left = max(1_000_000, (deadline - now()).nanoseconds)
        return loop.assumeIsolated().scheduleTask(in: .nanoseconds(left), task)
    }
}

// MARK: - Connections

extension OriginClient {
    /// Counts a connection to be opened; nil if as many as are allowed are busy.
    func beginConnecting(for origin: OriginAuthority) -> OriginConnection? {
        switch pool.openingWanted() {
        case .open: break
        case .replace(let id): connections[id]?.close()
        case .refuse: return nil
        }
        connectionsBegun += 1
        let id = ConnectionID(connectionsBegun)
        let connection = OriginConnection(id: id, origin: origin, settings: settings)
        connections[id] = connection
        return connection
    }

    /// Opens `connection` to `address` and tells its fetch, if it still has one.
    func connect(_ connection: OriginConnection, to address: IPAddress) {
        let target: SocketAddress
        do {
            target = try SocketAddress(
                ipAddress: address.description, port: Int(connection.origin.port))
        } catch {
            connectionClosed(connection)
            connection.fetch?.attemptFailed(connection, reason: "no usable address")
            return
        }
        bootstrap(for: connection).connect(to: target).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel): self.connected(connection, channel)
            case .failure(let error):
                self.connectionClosed(connection)
                connection.fetch?.attemptFailed(connection, reason: Self.reason(error))
            }
        }
    }

    private func bootstrap(for connection: OriginConnection) -> ClientBootstrap {
        let bound = NIOLoopBound(connection, eventLoop: loop)
        let window = ChannelOptions.Types.SocketOption.Value(settings.receiveWindowBytes)
        // The machine's limit on an attempt comes first; this one only keeps NIO's shorter default
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
                    try channel.pipeline.syncOperations.addHandler(bound.value)
                }
            }
    }

    private func connected(_ connection: OriginConnection, _ channel: any Channel) {
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            self.connectionClosed(connection)
        }
        guard let fetch = connection.fetch else { return connection.close() }
        fetch.attemptSucceeded(
            connection, remote: channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) })
    }

    private func connectionClosed(_ connection: OriginConnection) {
        guard connections.removeValue(forKey: connection.id) != nil else { return }
        pool.connectionClosed(connection.id)
    }

    private func closeIdle() {
        for id in pool.drained() { connections[id]?.close() }
        idleTimer?.cancel()
        idleTimer = nil
    }

    private func armIdleTimer() {
        guard idleTimer == nil, let deadline = pool.deadline else { return }
        idleTimer = schedule(at: deadline) { [weak self] in
            guard let self else { return }
            idleTimer = nil
            for id in pool.ticked(now: now()) { connections[id]?.close() }
            armIdleTimer()
        }
    }

    /// The reason in words; says nothing of addresses.
    private static func reason(_ error: any Error) -> String {
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
