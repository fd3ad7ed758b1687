import Admin
import Ground
import Logging
import NIOCore
import NIOPosix
import Origin
import Store
import Synchronization
import Telemetry

/// What all loops of a node share.
final class NodeCore: Sendable {
    let settings: NodeSettings
    let store: MemoryStore
    let fills: FillTable
    let counters = NodeCounters()
    let accessLog: AccessLog?
    let origins: Origins
    let logger: Logger
    let readiness = ReadinessBox()
    private let emptyPromise = Mutex<EventLoopPromise<Void>?>(nil)
    private let hallBox = Mutex<[Hall]>([])
    private let connections = Atomic<Int>(0)
    private let adminConnections = Atomic<Int>(0)
    private let waiters = Atomic<Int>(0)

    /// What every loop's origin client is made of.
    struct Origins: Sendable {
        var settings: OriginSettings
        var resolver: any NameResolver
        var addressGuard: AddressGuard
        var patterns: [OriginPattern]
    }

    init(
        settings: NodeSettings, store: MemoryStore, origins: Origins,
        accessLog: AccessLog.Format?, logger: Logger
    ) {
        self.settings = settings
        self.store = store
        self.origins = origins
        self.logger = logger
        fills = FillTable(fillsMax: settings.fillsMax)
        self.accessLog = accessLog.map { [counters] in AccessLog($0, counters: counters) }
    }

    /// One hall per loop, in the order of their numbers; none before ``open(on:)`` and after
    /// ``close()``.
    var halls: [Hall] { hallBox.withLock { $0 } }

    /// Makes a hall for each loop of `group`.
    func open(on group: MultiThreadedEventLoopGroup) async throws {
        let loops = Array(group.makeIterator())
        let halls = loops.enumerated().map { Hall(index: $0, loop: $1, node: self) }
        hallBox.withLock { $0 = halls }
        for hall in halls { try await hall.loop.submit { hall.start() }.get() }
    }

    /// Lets go of the halls, which are stopped by now.
    func close() {
        hallBox.withLock { $0 = [] }
    }

    /// The hall of a loop.
    func hall(of loop: any EventLoop) -> Hall? {
        hallBox.withLock { $0.first { $0.loop === loop } }
    }

    func makeOriginClient(on loop: any EventLoop) -> OriginClient {
        OriginClient(
            loop: loop, resolver: origins.resolver, addressGuard: origins.addressGuard,
            patterns: origins.patterns, settings: origins.settings, now: SystemClock.now)
    }

    // MARK: Limits

    /// False if no further connection may be opened; otherwise it counts until
    /// ``connectionClosed(_:)``.
    ///
    /// Operators have a limit of their own: they look in when the clients' one is reached.
    func openConnection(_ side: Door.Side) -> Bool {
        switch side {
        case .data: Self.count(connections, max: settings.connectionsMax)
        case .admin: Self.count(adminConnections, max: settings.adminConnectionsMax)
        }
    }

    private static func count(_ open: borrowing Atomic<Int>, max: Int) -> Bool {
        guard open.add(1, ordering: .relaxed).newValue <= max else {
            open.subtract(1, ordering: .relaxed)
            return false
        }
        return true
    }

    func connectionClosed(_ side: Door.Side) {
        guard side == .data else {
            adminConnections.subtract(1, ordering: .relaxed)
            return
        }
        let left = connections.subtract(1, ordering: .relaxed).newValue
        if left == 0, readiness.value == .draining { emptied() }
    }

    /// Returns when no client's connection is open, or after `interval`.
    func waitUntilEmpty(within interval: Interval) async {
        guard let loop = halls.first?.loop else { return }
        let promise = loop.makePromise(of: Void.self)
        emptyPromise.withLock { $0 = promise }
        let limit = loop.scheduleTask(in: .nanoseconds(interval.nanoseconds)) { self.emptied() }
        if openConnections == 0 { emptied() }
        try? await promise.futureResult.get()
        limit.cancel()
    }

    private func emptied() {
        emptyPromise.withLock { $0.take() }?.succeed()
    }

    /// Connections of clients.
    var openConnections: Int { connections.load(ordering: .relaxed) }
    var waiterCount: Int { waiters.load(ordering: .relaxed) }

    func waiterJoined() {
        waiters.add(1, ordering: .relaxed)
    }

    func waiterLeft() {
        waiters.subtract(1, ordering: .relaxed)
    }

    // MARK: Numbers

    /// The counters of all loops, with the gauges as they are now.
    func snapshot() -> Snapshot {
        counters.set(.memoryUsedBytes, to: store.account.usedBytes)
        counters.set(.memoryLimitBytes, to: store.account.limitBytes)
        counters.set(.memoryPinnedBytes, to: store.account.pinnedBytes)
        counters.set(.memoryEntries, to: store.count)
        counters.set(.evictions, to: Int(store.evictions))
        counters.set(.fillsInFlight, to: fills.count)
        counters.set(.waiters, to: waiterCount)
        counters.set(.connectionsOpen, to: openConnections)
        return Snapshot(loops: halls.map(\.counters), node: counters)
    }
}

/// Whether the node wants to be sent requests, readable from every thread.
final class ReadinessBox: Sendable {
    private let state = Mutex(Readiness.starting)

    var value: Readiness { state.withLock { $0 } }

    func set(_ readiness: Readiness) {
        state.withLock { $0 = readiness }
    }
}
