import Admin
import Cluster
import Ground
import HTTPRules
import Logging
import NIOCore
import NIOPosix
import Origin
import Serving
import Store
import Synchronization
import Telemetry
import Tiers
import Wire

/// What all loops of a node share.
final class NodeCore: Sendable {
    private let settingsBox: Mutex<NodeSettings>
    let store: MemoryStore
    /// What was invalidated.
    var marks: InvalidationIndex { store.marks }
    /// Whether the node is proven to know what was invalidated.
    let fence: FenceStatus
    let fetches: FetchTable
    /// What was asked for in part of late.
    let parts = Mutex(RangeRequestHistory())
    /// What clients have had fetched that nobody reads.
    let unreadAllowance: Mutex<UnreadByteQuota>
    /// Nil without a disk cache.
    let disk: DiskStore?
    /// Boot clock and wall clock, read together at the start.
    let clock: DiskClock
    let counters = NodeCounters()
    let siteLedger = SiteCounterTable()
    let siteShares = SiteMemoryShares()
    let originals: TaggingRulesCoordinator
    /// What was found of the invalidation log when the disk tier started.
    let journalReader: JournalReader
    let ticketKeys = TicketKeyStore()
    let accessLog: AccessLog
    /// What is logged of answers from the start on; nil for nothing.
    let accessLogFormat: AccessLine.Format?
    let origins: OriginClientOptions
    let exchange: OriginCoordinator
    let logger: Logger
    let readiness = ReadinessState()
    let pressure: MemoryPressureMonitor
    /// It is to be a member of a cluster.
    let isInCluster: Bool
    private let hubState = Mutex<PeerHub?>(nil)
    private let purgesState = Mutex<PurgeCoordinator?>(nil)
    /// Invalidations that requests cause.
    let invalidationPace = Mutex(InvalidationThrottle())
    let fenceReport = Mutex(FenceLogLimiter())
    /// Held while an index of variants is looked for and made.
    let indexing = Mutex<Void>(())
    private let onOperatorCommand = Mutex<(@Sendable (OperatorCommand) -> Void)?>(nil)
    private let configurationDocumentState = Mutex(
        ConfigurationDocument(rows: [], sites: [], images: []))
    let adminGate = Mutex(AdminRateLimiter())
    let prefetcher = Prefetcher()
    let startedAt = SystemClock.now()
    /// With what the ids of requests begin that come to this run of the node.
    let requestIDPrefix = UInt64.random(in: .min ... .max)
    /// It was told to stop, and does.
    let isStopping = Atomic<Bool>(false)
    private let connectionsClosedPromise = Mutex<EventLoopPromise<Void>?>(nil)
    private let contextsState = Mutex<[EventLoopContext]>([])
    private let clientConnections = Mutex(ConnectionLimiter())
    private let adminConnections = Mutex(ConnectionLimiter())
    private let waiters = Atomic<Int>(0)
    private let sketch = Mutex(FrequencySketch(words: 1 << 14))
    private let touches = Mutex(TouchQueue(keysMax: 64 * TouchQueue.batchKeys))

    /// What every loop's origin client is made of when it opens.
    struct OriginClientOptions: Sendable {
        var settings: OriginSettings
        var resolver: any NameResolver
        var addressGuard: AddressGuard
        var patterns: [OriginPattern]
    }

    init(
        settings: NodeSettings, store: MemoryStore, disk: DiskStore?, clock: DiskClock,
        journalReader: JournalReader, origins: OriginClientOptions, accessLog: AccessLine.Format?,
        fence: FenceStatus, isInCluster: Bool, logger: Logger
    ) {
        self.journalReader = journalReader
        self.fence = fence
        self.isInCluster = isInCluster
        settingsBox = Mutex(settings)
        self.store = store
        self.disk = disk
        self.clock = clock
        self.origins = origins
        self.logger = logger
        originals = TaggingRulesCoordinator(settings.sites, disk: disk, logger: logger)
        exchange = OriginCoordinator(origins.settings) { $0.log(to: logger) }
        pressure = MemoryPressureMonitor(store: store, counters: counters, logger: logger)
        fetches = FetchTable(settings, marks: store.marks)
        unreadAllowance = Mutex(UnreadByteQuota(bytesMax: settings.clientUnreadBytesMax))
        accessLogFormat = accessLog
        self.accessLog = AccessLog(counters: counters)
        ticketKeys.installKeys(in: settings, now: SystemClock.now())
        siteLedger.adopt(settings.sites.names)
        siteShares.adopt(settings)
        disk?.setShareLimits(DiskShareLimits(settings))
    }

    /// As they are for the node as a whole; a loop has its own copy, ``EventLoopContext/settings``.
    var settings: NodeSettings { settingsBox.withLock { $0 } }

    /// Has every loop take over new settings, each of them at once; returns when all have.
    func reconfigure(_ new: LoopSettings) async {
        ticketKeys.installKeys(in: new.node, now: SystemClock.now())
        settingsBox.withLock { $0 = new.node }
        siteLedger.adopt(new.node.sites.names)
        siteShares.adopt(new.node)
        disk?.setShareLimits(DiskShareLimits(new.node))
        fetches.adopt(new.node)
        unreadAllowance.withLock { $0.bytesMax = new.node.clientUnreadBytesMax }
        if let origins = new.origins { exchange.reconfigure(origins.settings) }
        for context in contexts {
            context.loop.execute { context.reconfigure(new) }
        }
        // A loop does in turn what it is told.
        for context in contexts { try? await context.loop.submit {}.get() }
    }

    /// One hall per loop, in the order of their numbers; none before ``open(on:)`` and after
    /// ``close()``.
    var contexts: [EventLoopContext] { contextsState.withLock { $0 } }

    /// Makes a hall for each loop of `group`.
    func open(on group: MultiThreadedEventLoopGroup) async throws {
        let loops = Array(group.makeIterator())
        let contexts = loops.enumerated().map { EventLoopContext(index: $0, loop: $1, node: self) }
        contextsState.withLock { $0 = contexts }
        for context in contexts { try await context.loop.submit { context.startFetch() }.get() }
    }

    /// The node's part in its cluster; nil while it is in none.
    var hub: PeerHub? {
        get { hubState.withLock { $0 } }
        set { hubState.withLock { $0 = newValue } }
    }

    /// What the node does about invalidations; set before it has halls, or takes part in anything.
    var purges: PurgeCoordinator {
        get {
            guard let purges = purgesIfOpen else {
                preconditionFailure("there is no desk before the node is opened")
            }
            return purges
        }
        set { purgesState.withLock { $0 = newValue } }
    }

    /// Nil for a node that was told to stop, or failed, before it had one.
    var purgesIfOpen: PurgeCoordinator? { purgesState.withLock { $0 } }

    /// Has `listener` be told what an operator wants of the node.
    func observeOperatorCommands(_ listener: @escaping @Sendable (OperatorCommand) -> Void) {
        self.onOperatorCommand.withLock { $0 = listener }
    }

    /// An operator wants this.
    func handleOperatorCommand(_ wish: OperatorCommand) {
        onOperatorCommand.withLock { $0 }?(wish)
    }

    /// The settings that hold, as operators are shown them.
    var configurationDocument: ConfigurationDocument {
        get { configurationDocumentState.withLock { $0 } }
        set { configurationDocumentState.withLock { $0 = newValue } }
    }

    /// Logs from another level on; says so if either level lets it.
    func setLogLevel(from level: Logger.Level, for cause: RequestCorrelation) {
        var logger = logger
        logger.logLevel = min(logger.logLevel, level)
        logger.notice("log level changed", metadata: cause.metadata(["level": "\(level)"]))
        logger.logLevel = level
    }

    /// Lets go of the halls, which are stopped by now.
    func close() {
        hub = nil
        purgesState.withLock { $0 = nil }
        contextsState.withLock { $0 = [] }
    }

    /// The hall of a loop.
    func context(of loop: any EventLoop) -> EventLoopContext? {
        contextsState.withLock { $0.first { $0.loop === loop } }
    }

    func makeOriginClient(on loop: any EventLoop) -> OriginClient {
        OriginClient(
            loop: loop, resolver: origins.resolver, addressGuard: origins.addressGuard,
            patterns: origins.patterns, exchange: exchange, settings: origins.settings,
            now: SystemClock.now)
    }

    // MARK: Entries

    /// Makes an answer findable in memory, and sooner or later on disk, if this node owns it.
    func insert(_ entry: MemoryEntry) {
        store.insert(entry)
        guard isStoredOnDisk(entry.name) else { return }
        disk?.enqueueWrite(entry, now: SystemClock.now())
    }

    /// True if an answer of this name that is fetched is for this node's disk, too.
    ///
    /// One that owns a URL keeps all its variants: their names have one place on the ring.
    func isStoredOnDisk(_ name: EntryName?) -> Bool {
        guard let name, disk?.view != nil else { return false }
        return hub?.owns(name) ?? true
    }

    /// The hash by which an answer that is fetched is held against the entries that would have to
    /// go for it; nil if it is taken in whatever goes.
    ///
    /// What is for the disk has to be in memory first. What the disk then finds too large stays
    /// there, or it would be fetched for every request.
    func admissionHash(of name: EntryName?, at hash: UInt64) -> UInt64? {
        isStoredOnDisk(name) ? nil : hash
    }

    /// Notes that what another node keeps was wanted here; how often it was of late.
    func recordUse(_ hash: UInt64) -> UInt8 { sketch.withLock { $0.increment(hash) } }

    /// An answer is not to be used any more.
    func remove(_ entry: MemoryEntry) {
        // First where it might be found again.
        if let name = entry.name { disk?.forget(name) }
        store.remove(entry)
    }

    /// Takes over what a loop has noted of uses; whole batches go to the disk tier and to the
    /// entries' owners, and with `flushes` everything.
    func enqueueTouches(_ taken: [Touch], flushes: Bool) {
        var batches: [[Touch]] = []
        touches.withLock { queue in
            queue.add(taken)
            while flushes ? queue.count > 0 : queue.hasBatch { batches.append(queue.takeBatch()) }
        }
        let (hub, second) = (hub, clock.second(SystemClock.now()))
        for batch in batches {
            // Also of what others own: it may be here from when it did.
            touch(batch)
            hub?.sendTouches(batch, second: second)
        }
    }

    /// Takes in what a peer has noted.
    func recordPeerTouches(fromPeer touches: [AgedTouch]) {
        let second = clock.second(SystemClock.now())
        counters.add(.touchesReceived, touches.count)
        touch(touches.map { $0.touch(now: second) })
    }

    private func touch(_ touches: [Touch]) {
        disk?.touch(touches.map { ($0.digest, $0.count, $0.lastAccess) })
    }

    /// Touches that were merged into one that waited, and those that were dropped.
    var touchCounts: (merged: UInt64, dropped: UInt64) {
        touches.withLock { ($0.mergedCount, $0.droppedCount) }
    }

    // MARK: Limits

    /// Whether a connection gets a place, which it has until ``leave(_:_:)``.
    func admitConnection(_ holder: ConnectionLimiter.ClientKey, _ side: RequestHandler.Plane)
        -> ConnectionLimiter.AdmissionDecision
    {
        withLimiter(of: side) { $0.admit(holder, $1) }
    }

    /// A trusted proxy has said whose connection it passes on; false if that one has too many.
    func transferConnection(of client: Client) -> Bool {
        let new = settings.limiterKey(of: client.address, on: .data)
        guard !client.isPreempted, transferConnection(client.limiterKey, to: new, .data) else {
            return false
        }
        client.limiterKey = new
        return true
    }

    /// Gives the place of `old` to `new`; false if that one may have none.
    func transferConnection(
        _ old: ConnectionLimiter.ClientKey, to new: ConnectionLimiter.ClientKey,
        _ side: RequestHandler.Plane
    ) -> Bool {
        withLimiter(of: side) { $0.transfer(old, to: new, $1) }
    }

    func releaseConnection(_ holder: ConnectionLimiter.ClientKey, _ side: RequestHandler.Plane) {
        let left = withLimiter(of: side) { places, _ in
            places.remove(holder)
            return places.openCount
        }
        if side == .data, left == 0, readiness.value == .draining { stopWaitingForConnections() }
    }

    private func withLimiter<T>(
        of side: RequestHandler.Plane,
        _ body: (inout ConnectionLimiter, ConnectionLimiter.Limits) -> T
    ) -> T {
        switch side {
        case .data:
            let limits = settings.connectionLimits
            return clientConnections.withLock { body(&$0, limits) }
        case .admin:
            return adminConnections.withLock { body(&$0, NodeSettings.adminConnectionLimits) }
        case .internalRequest: preconditionFailure("an errand has no connection")
        }
    }

    /// Returns when no client's connection is open, or nobody waits for that any longer.
    func waitUntilConnectionsClosed(on loop: any EventLoop) async {
        let promise = loop.makePromise(of: Void.self)
        connectionsClosedPromise.withLock { $0 = promise }
        if openConnections == 0 { stopWaitingForConnections() }
        try? await promise.futureResult.get()
    }

    func stopWaitingForConnections() {
        connectionsClosedPromise.withLock { $0.take() }?.succeed()
    }

    /// Connections of clients.
    var openConnections: Int { clientConnections.withLock { $0.openCount } }
    var waiterCount: Int { waiters.load(ordering: .relaxed) }

    func waiterJoined() {
        waiters.add(1, ordering: .relaxed)
    }

    func waiterLeft() {
        waiters.subtract(1, ordering: .relaxed)
    }
}

/// Whether the node wants to be sent requests, readable from every thread.
final class ReadinessState: Sendable {
    private let state = Mutex(Readiness.starting)

    var value: Readiness { state.withLock { $0 } }

    func set(_ readiness: Readiness) {
        state.withLock { $0 = readiness }
    }
}
