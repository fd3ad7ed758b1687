package import Admin
import Cluster
import Ground
import HTTPRules
import Logging
import NIOCore
package import NIOPosix
import Origin
package import Peering
import Platform
import Serving
package import Store
package import Synchronization
package import Telemetry
import Tiers
import Wire

/// The state that all event loops of a node share.
package final class NodeCore: Sendable {
    /// The settings as of the last start or reload.
    private let settingsBox: Mutex<NodeSettings>
    /// The entries in both tiers.
    let entries: EntryStore
    /// The memory and the disk tier.
    package var tiers: CacheTiers { entries.tiers }
    /// The memory tier.
    package var store: MemoryStore { tiers.memory }
    /// The disk tier; `nil` without a disk cache.
    package var disk: DiskStore? { tiers.disk }
    /// The index of marks, against which entries are checked.
    var marks: InvalidationIndex { tiers.marks }
    /// The fence: whether the node has recently proven that it knows all invalidations.
    package let fence: FenceStatus
    /// The fetches in progress, by key.
    let fetches: FetchTable
    /// The keys that were recently requested in part.
    let parts = Mutex(RangeRequestHistory())
    /// The quota of bytes that are fetched for clients that do not read them.
    let unreadAllowance: Mutex<UnreadByteQuota>
    /// The boot clock and the wall clock, read together at the start.
    let clock: DiskClock
    /// The counters of the node that belong to no event loop.
    package let counters = NodeCounters()
    /// The counters per site.
    let siteCounters = SiteCounterTable()
    /// The memory of recent traffic and conditions.
    package let monitor = ConditionMonitor()
    /// The shares of memory per site.
    let siteShares = SiteMemoryShares()
    /// The coordinator that invalidates entries which were tagged by former rules.
    package let taggingRules: TaggingRulesCoordinator
    /// The reader of the invalidation journal, which holds its contents from the start of the disk
    /// tier on until the log takes them.
    package let journalReader: JournalReader
    /// The keys of TLS session tickets.
    let ticketKeys = TicketKeyStore()
    /// The writer of the access log.
    package let accessLog: AccessLog
    /// The format of the access log, fixed at the start; `nil` if nothing is logged.
    let accessLogFormat: AccessLine.Format?
    /// The options for the origin clients of the event loops, as of the start.
    let origins: OriginClientOptions
    /// The coordinator of connections to origins and of their circuit breakers, shared by all
    /// loops.
    let originCoordinator: OriginCoordinator
    let logger: Logger
    /// Whether the node can be sent requests.
    package let readiness = ReadinessState()
    /// The monitor that lowers the memory limit under pressure.
    package let pressure: MemoryPressureMonitor
    /// True if the node is configured to be a member of a cluster.
    let isInCluster: Bool
    private let purgesState = Mutex<PurgeCoordinator?>(nil)
    private let onOperatorCommand = Mutex<(@Sendable (OperatorCommand) -> Void)?>(nil)
    private let configurationDocumentState = Mutex(ConfigurationDocument())
    /// The rate limit of the admin port.
    let adminGate = Mutex(AdminRateLimiter())
    /// The prefetches that operators have started.
    package let prefetcher = Prefetcher()
    let startedAt = SystemClock.now()
    /// The random first half of the ids of requests that this process receives.
    let requestIDPrefix = UInt64.random(in: .min ... .max)
    /// True once the node has begun to stop.
    package let isStopping = Atomic<Bool>(false)
    private let contextsState = Mutex<[EventLoopContext]>([])
    /// The slots of open connections.
    package let slots: ConnectionSlots
    /// The number of clients and peers that wait for a fetch.
    private let waiters = Atomic<Int>(0)
    /// Recent use of entries that other nodes own.
    private let sketch = Mutex(FrequencySketch(words: 1 << 14))
    private let touches = Mutex(TouchQueue(keysMax: 64 * TouchQueue.batchKeys))

    /// The options with which each event loop creates its origin client.
    struct OriginClientOptions: Sendable {
        var settings: OriginSettings
        var resolver: any NameResolver
        var addressGuard: AddressGuard
        var patterns: [OriginPattern]
    }

    /// Creates a node from its parts; it has no contexts, purge coordinator or cluster yet.
    init(
        settings: NodeSettings, tiers: CacheTiers, clock: DiskClock,
        journalReader: JournalReader, origins: OriginClientOptions, accessLog: AccessLine.Format?,
        fence: FenceStatus, isInCluster: Bool, logger: Logger
    ) {
        self.journalReader = journalReader
        self.fence = fence
        self.isInCluster = isInCluster
        settingsBox = Mutex(settings)
        entries = EntryStore(tiers, counters: counters, variantsMax: settings.variantsMax)
        slots = ConnectionSlots(settings.connectionLimits)
        self.clock = clock
        self.origins = origins
        self.logger = logger
        taggingRules = TaggingRulesCoordinator(settings.sites, disk: tiers.disk, logger: logger)
        originCoordinator = OriginCoordinator(origins.settings) { $0.log(to: logger) }
        pressure = MemoryPressureMonitor(store: tiers.memory, counters: counters, logger: logger)
        fetches = FetchTable(settings, marks: tiers.marks)
        unreadAllowance = Mutex(UnreadByteQuota(bytesMax: settings.clientUnreadBytesMax))
        accessLogFormat = accessLog
        self.accessLog = AccessLog(counters: counters)
        ticketKeys.installKeys(in: settings, now: SystemClock.now())
        siteCounters.adopt(settings.sites.names)
        siteShares.adopt(settings)
        disk?.setShareLimits(DiskShareLimits(settings))
    }

    /// The settings of the node as a whole; each event loop has its own copy,
    /// ``EventLoopContext/settings``.
    package var settings: NodeSettings { settingsBox.withLock { $0 } }

    /// Applies new settings to the node and to every event loop; returns when all loops have
    /// applied them.
    package func reconfigure(_ new: LoopSettings) async {
        ticketKeys.installKeys(in: new.node, now: SystemClock.now())
        settingsBox.withLock { $0 = new.node }
        siteCounters.adopt(new.node.sites.names)
        siteShares.adopt(new.node)
        disk?.setShareLimits(DiskShareLimits(new.node))
        fetches.adopt(new.node)
        entries.variantsMax = new.node.variantsMax
        slots.adopt(new.node.connectionLimits)
        unreadAllowance.withLock { $0.bytesMax = new.node.clientUnreadBytesMax }
        if let origins = new.origins { originCoordinator.reconfigure(origins.settings) }
        for context in contexts {
            context.loop.execute { context.reconfigure(new) }
        }
        // A loop runs its tasks in order.
        for context in contexts { try? await context.loop.submit {}.get() }
    }

    /// The contexts of the event loops, in the order of their numbers; empty before ``open(on:)``
    /// and after ``close()``.
    package var contexts: [EventLoopContext] { contextsState.withLock { $0 } }

    /// Creates a context for each loop of `group` and starts it.
    package func open(on group: MultiThreadedEventLoopGroup) async throws {
        let loops = Array(group.makeIterator())
        let contexts = loops.enumerated().map { EventLoopContext(index: $0, loop: $1, node: self) }
        contextsState.withLock { $0 = contexts }
        for context in contexts { try await context.loop.submit { context.start() }.get() }
    }

    /// The node's membership in its cluster; `nil` while it is in none.
    package var hub: PeerHub? {
        get { entries.hub }
        set { entries.hub = newValue }
    }

    /// The coordinator of purges and invalidations, which must be set before it is read: before the
    /// contexts exist and before the node joins anything.
    package var purges: PurgeCoordinator {
        get {
            guard let purges = purgesIfOpen else {
                preconditionFailure("the node has no purge coordinator yet")
            }
            return purges
        }
        set { purgesState.withLock { $0 = newValue } }
    }

    /// The coordinator of purges; `nil` if the node stopped or failed before it had one.
    package var purgesIfOpen: PurgeCoordinator? { purgesState.withLock { $0 } }

    /// Registers the handler of operators' commands to the node as a whole, in place of the former
    /// one.
    package func observeOperatorCommands(_ listener: @escaping @Sendable (OperatorCommand) -> Void)
    {
        self.onOperatorCommand.withLock { $0 = listener }
    }

    /// Passes an operator's command to the registered handler.
    func handleOperatorCommand(_ wish: OperatorCommand) {
        onOperatorCommand.withLock { $0 }?(wish)
    }

    /// The current configuration as operators see it.
    package var configurationDocument: ConfigurationDocument {
        get { configurationDocumentState.withLock { $0 } }
        set { configurationDocumentState.withLock { $0 = newValue } }
    }

    /// Changes the log level, and logs the change if either the old or the new level admits a
    /// notice.
    func setLogLevel(from level: Logger.Level, for cause: RequestCorrelation) {
        var logger = logger
        logger.logLevel = min(logger.logLevel, level)
        logger.notice("log level changed", metadata: cause.metadata(["level": "\(level)"]))
        logger.logLevel = level
    }

    /// Releases the contexts, which have stopped before, and the cluster parts.
    package func close() {
        hub = nil
        purgesState.withLock { $0 = nil }
        contextsState.withLock { $0 = [] }
    }

    /// Drops marks that are no longer needed on a node without a disk; called several times a
    /// second by one loop.
    func reclaimMarks() {
        let folded = tiers.reclaimMarks()
        guard folded > 0 else { return }
        let event = DiskEvent.marksFolded(marks: folded)
        logger.warning("\(event.message)", metadata: ["marks": "\(folded)"])
    }

    /// Returns the context of `loop`; `nil` if the node has none for it.
    func context(of loop: any EventLoop) -> EventLoopContext? {
        contextsState.withLock { $0.first { $0.loop === loop } }
    }

    /// Creates an origin client for `loop`.
    func makeOriginClient(on loop: any EventLoop) -> OriginClient {
        OriginClient(
            loop: loop, resolver: origins.resolver, addressGuard: origins.addressGuard,
            patterns: origins.patterns, coordinator: originCoordinator, settings: origins.settings,
            now: SystemClock.now)
    }

    // MARK: Use

    /// Counts a use of an entry that another node owns, and returns the number of recent uses.
    func recordUse(_ hash: UInt64) -> UInt8 { sketch.withLock { $0.increment(hash) } }

    /// Queues the touches of an event loop, and sends full batches to the disk tier and to the
    /// entries' owners; with `flushes`, sends everything.
    func enqueueTouches(_ taken: [Touch], flushes: Bool) {
        var batches: [[Touch]] = []
        touches.withLock { queue in
            queue.add(taken)
            while flushes ? queue.count > 0 : queue.hasBatch { batches.append(queue.takeBatch()) }
        }
        let (hub, second) = (hub, clock.second(SystemClock.now()))
        for batch in batches {
            // Also for entries that others own: the disk may hold them from an earlier ownership.
            touch(batch)
            hub?.sendTouches(batch, second: second)
        }
    }

    /// Passes touches on to the disk tier, if there is one.
    func touch(_ touches: [Touch]) {
        disk?.touch(touches.map { ($0.digest, $0.count, $0.lastAccess) })
    }

    /// The number of touches merged into a queued one, and the number dropped because the queue was
    /// full.
    var touchCounts: (merged: UInt64, dropped: UInt64) {
        touches.withLock { ($0.mergedCount, $0.droppedCount) }
    }

    // MARK: Limits

    /// Counts a connection for the client that a trusted proxy has named; returns false if that
    /// client has too many, or the connection was preempted.
    func transferConnection(of client: Client) -> Bool {
        let new = settings.limiterKey(of: client.address, on: .data)
        guard !client.isPreempted, slots.transfer(client.limiterKey, to: new, .data) else {
            return false
        }
        client.limiterKey = new
        return true
    }

    /// The number of clients and peers that wait for a fetch.
    var waiterCount: Int { waiters.load(ordering: .relaxed) }

    /// Counts a client or peer that begins to wait for a fetch.
    func waiterJoined() {
        waiters.add(1, ordering: .relaxed)
    }

    /// Discounts a client or peer that waits no longer.
    func waiterLeft() {
        waiters.subtract(1, ordering: .relaxed)
    }
}

/// Whether the node can be sent requests; thread-safe.
package final class ReadinessState: Sendable {
    private let state = Mutex(Readiness.starting)

    /// The current readiness.
    package var value: Readiness { state.withLock { $0 } }

    /// Replaces the readiness.
    package func set(_ readiness: Readiness) {
        state.withLock { $0 = readiness }
    }
}
