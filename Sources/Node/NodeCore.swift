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
    var marks: MarkBook { store.marks }
    /// Whether the node is proven to know what was invalidated.
    let fence: FenceGate
    let fills: FillTable
    /// What was asked for in part of late.
    let parts = Mutex(PartTable())
    /// What clients have had fetched that nobody reads.
    let unread: Mutex<ByteAllowance>
    /// Nil without a disk cache.
    let disk: DiskTier?
    /// Boot clock and wall clock, read together at the start.
    let clock: DiskClock
    let counters = NodeCounters()
    let siteLedger = SiteLedger()
    let siteShares = SiteShares()
    let originals: OriginalsKeeper
    /// What was found of the invalidation log when the disk tier started.
    let journalReader: JournalReader
    let tickets = TicketKeeper()
    let accessLog: AccessLog
    /// What is logged of answers from the start on; nil for nothing.
    let accessLogFormat: AccessLine.Format?
    let origins: Origins
    let exchange: OriginExchange
    let logger: Logger
    let readiness = ReadinessBox()
    let pressure: PressureWatcher
    /// It is to be a member of a cluster.
    let isInCluster: Bool
    private let hubBox = Mutex<PeerHub?>(nil)
    private let deskBox = Mutex<InvalidationDesk?>(nil)
    /// Invalidations that requests cause.
    let invalidationPace = Mutex(InvalidationPace())
    let fenceReport = Mutex(FenceReport())
    /// Held while an index of variants is looked for and made.
    let indexing = Mutex<Void>(())
    private let listener = Mutex<(@Sendable (OperatorWish) -> Void)?>(nil)
    private let shown = Mutex(ConfigurationDocument(rows: [], sites: [], images: []))
    let adminGate = Mutex(AdminGate())
    let prefetcher = Prefetcher()
    let startedAt = SystemClock.now()
    /// With what the ids of requests begin that come to this run of the node.
    let run = UInt64.random(in: .min ... .max)
    /// It was told to stop, and does.
    let isStopping = Atomic<Bool>(false)
    private let emptyPromise = Mutex<EventLoopPromise<Void>?>(nil)
    private let hallBox = Mutex<[Hall]>([])
    private let clients = Mutex(ConnectionPlaces())
    private let operators = Mutex(ConnectionPlaces())
    private let waiters = Atomic<Int>(0)
    private let sketch = Mutex(FrequencySketch(words: 1 << 14))
    private let touches = Mutex(TouchQueue(keysMax: 64 * TouchQueue.batchKeys))

    /// What every loop's origin client is made of when it opens.
    struct Origins: Sendable {
        var settings: OriginSettings
        var resolver: any NameResolver
        var addressGuard: AddressGuard
        var patterns: [OriginPattern]
    }

    init(
        settings: NodeSettings, store: MemoryStore, disk: DiskTier?, clock: DiskClock,
        journalReader: JournalReader, origins: Origins, accessLog: AccessLine.Format?,
        fence: FenceGate, isInCluster: Bool, logger: Logger
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
        originals = OriginalsKeeper(settings.sites, disk: disk, logger: logger)
        exchange = OriginExchange(origins.settings) { $0.log(to: logger) }
        pressure = PressureWatcher(store: store, counters: counters, logger: logger)
        fills = FillTable(settings, marks: store.marks)
        unread = Mutex(ByteAllowance(bytesMax: settings.clientUnreadBytesMax))
        accessLogFormat = accessLog
        self.accessLog = AccessLog(counters: counters)
        tickets.seal(for: settings, now: SystemClock.now())
        siteLedger.adopt(settings.sites.names)
        siteShares.adopt(settings)
        disk?.adopt(DiskShares(settings))
    }

    /// As they are for the node as a whole; a loop has its own copy, ``Hall/settings``.
    var settings: NodeSettings { settingsBox.withLock { $0 } }

    /// Has every loop take over new settings, each of them at once; returns when all have.
    func adopt(_ new: LoopSettings) async {
        tickets.seal(for: new.node, now: SystemClock.now())
        settingsBox.withLock { $0 = new.node }
        siteLedger.adopt(new.node.sites.names)
        siteShares.adopt(new.node)
        disk?.adopt(DiskShares(new.node))
        fills.adopt(new.node)
        unread.withLock { $0.bytesMax = new.node.clientUnreadBytesMax }
        if let origins = new.origins { exchange.adopt(origins.settings) }
        for hall in halls {
            hall.loop.execute { hall.adopt(new) }
        }
        // A loop does in turn what it is told.
        for hall in halls { try? await hall.loop.submit {}.get() }
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

    /// The node's part in its cluster; nil while it is in none.
    var hub: PeerHub? {
        get { hubBox.withLock { $0 } }
        set { hubBox.withLock { $0 = newValue } }
    }

    /// What the node does about invalidations; set before it has halls, or takes part in anything.
    var desk: InvalidationDesk {
        get {
            guard let desk = deskIfOpen else {
                preconditionFailure("there is no desk before the node is opened")
            }
            return desk
        }
        set { deskBox.withLock { $0 = newValue } }
    }

    /// Nil for a node that was told to stop, or failed, before it had one.
    var deskIfOpen: InvalidationDesk? { deskBox.withLock { $0 } }

    /// Has `listener` be told what an operator wants of the node.
    func tell(_ listener: @escaping @Sendable (OperatorWish) -> Void) {
        self.listener.withLock { $0 = listener }
    }

    /// An operator wants this.
    func told(to wish: OperatorWish) {
        listener.withLock { $0 }?(wish)
    }

    /// The settings that hold, as operators are shown them.
    var shownConfiguration: ConfigurationDocument {
        get { shown.withLock { $0 } }
        set { shown.withLock { $0 = newValue } }
    }

    /// Logs from another level on; says so if either level lets it.
    func log(from level: Logger.Level, for cause: RequestCause) {
        var logger = logger
        logger.logLevel = min(logger.logLevel, level)
        logger.notice("log level changed", metadata: cause.metadata(["level": "\(level)"]))
        logger.logLevel = level
    }

    /// Lets go of the halls, which are stopped by now.
    func close() {
        hub = nil
        deskBox.withLock { $0 = nil }
        hallBox.withLock { $0 = [] }
    }

    /// The hall of a loop.
    func hall(of loop: any EventLoop) -> Hall? {
        hallBox.withLock { $0.first { $0.loop === loop } }
    }

    func makeOriginClient(on loop: any EventLoop) -> OriginClient {
        OriginClient(
            loop: loop, resolver: origins.resolver, addressGuard: origins.addressGuard,
            patterns: origins.patterns, exchange: exchange, settings: origins.settings,
            now: SystemClock.now)
    }

    // MARK: Entries

    /// Makes an answer findable in memory, and sooner or later on disk, if this node owns it.
    func keep(_ resident: Resident) {
        store.insert(resident)
        guard keepsOnDisk(resident.name) else { return }
        disk?.keep(resident, now: SystemClock.now())
    }

    /// True if an answer of this name that is fetched is for this node's disk, too.
    ///
    /// One that owns a URL keeps all its variants: their names have one place on the ring.
    func keepsOnDisk(_ name: EntryName?) -> Bool {
        guard let name, disk?.view != nil else { return false }
        return hub?.owns(name) ?? true
    }

    /// The hash by which an answer that is fetched is held against the entries that would have to
    /// go for it; nil if it is taken in whatever goes.
    ///
    /// What is for the disk has to be in memory first. What the disk then finds too large stays
    /// there, or it would be fetched for every request.
    func judgedHash(of name: EntryName?, at hash: UInt64) -> UInt64? {
        keepsOnDisk(name) ? nil : hash
    }

    /// Notes that what another node keeps was wanted here; how often it was of late.
    func noteUse(_ hash: UInt64) -> UInt8 { sketch.withLock { $0.use(hash) } }

    /// An answer is not to be used any more.
    func forget(_ resident: Resident) {
        // First where it might be found again.
        if let name = resident.name { disk?.forget(name) }
        store.remove(resident)
    }

    /// Takes over what a loop has noted of uses; whole batches go to the disk tier and to the
    /// entries' owners, and with `flushes` everything.
    func collect(_ taken: [Touch], flushes: Bool) {
        var batches: [[Touch]] = []
        touches.withLock { queue in
            queue.add(taken)
            while flushes ? queue.count > 0 : queue.hasBatch { batches.append(queue.takeBatch()) }
        }
        let (hub, second) = (hub, clock.second(SystemClock.now()))
        for batch in batches {
            // Also of what others own: it may be here from when it did.
            touch(batch)
            hub?.passOn(batch, second: second)
        }
    }

    /// Takes in what a peer has noted.
    func collect(fromPeer touches: [AgedTouch]) {
        let second = clock.second(SystemClock.now())
        counters.add(.touchesReceived, touches.count)
        touch(touches.map { $0.touch(now: second) })
    }

    private func touch(_ touches: [Touch]) {
        disk?.touch(touches.map { ($0.digest, $0.count, $0.lastAccess) })
    }

    /// Touches that were merged into one that waited, and those that were dropped.
    var touchFigures: (merged: UInt64, dropped: UInt64) {
        touches.withLock { ($0.merged, $0.dropped) }
    }

    // MARK: Limits

    /// Whether a connection gets a place, which it has until ``leave(_:_:)``.
    func enter(_ holder: ConnectionPlaces.Holder, _ side: Door.Side) -> ConnectionPlaces.Answer {
        places(of: side) { $0.enter(holder, $1) }
    }

    /// A trusted proxy has said whose connection it passes on; false if that one has too many.
    func movePlace(of client: Client) -> Bool {
        let new = settings.holder(of: client.address, on: .data)
        guard !client.hasYielded, movePlace(client.holder, to: new, .data) else { return false }
        client.holder = new
        return true
    }

    /// Gives the place of `old` to `new`; false if that one may have none.
    func movePlace(
        _ old: ConnectionPlaces.Holder, to new: ConnectionPlaces.Holder, _ side: Door.Side
    ) -> Bool {
        places(of: side) { $0.move(old, to: new, $1) }
    }

    func leave(_ holder: ConnectionPlaces.Holder, _ side: Door.Side) {
        let left = places(of: side) { places, _ in
            places.leave(holder)
            return places.open
        }
        if side == .data, left == 0, readiness.value == .draining { waitNoLonger() }
    }

    private func places<T>(
        of side: Door.Side, _ body: (inout ConnectionPlaces, ConnectionPlaces.Limits) -> T
    ) -> T {
        switch side {
        case .data:
            let limits = settings.places
            return clients.withLock { body(&$0, limits) }
        case .admin: return operators.withLock { body(&$0, NodeSettings.adminPlaces) }
        case .errand: preconditionFailure("an errand has no connection")
        }
    }

    /// Returns when no client's connection is open, or nobody waits for that any longer.
    func waitUntilEmpty(on loop: any EventLoop) async {
        let promise = loop.makePromise(of: Void.self)
        emptyPromise.withLock { $0 = promise }
        if openConnections == 0 { waitNoLonger() }
        try? await promise.futureResult.get()
    }

    func waitNoLonger() {
        emptyPromise.withLock { $0.take() }?.succeed()
    }

    /// Connections of clients.
    var openConnections: Int { clients.withLock { $0.open } }
    var waiterCount: Int { waiters.load(ordering: .relaxed) }

    func waiterJoined() {
        waiters.add(1, ordering: .relaxed)
    }

    func waiterLeft() {
        waiters.subtract(1, ordering: .relaxed)
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
