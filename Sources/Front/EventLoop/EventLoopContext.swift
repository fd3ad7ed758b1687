import Cluster
import Ground
import HTTPRules
import Logging
package import NIOCore
import NodeConfiguration
import Origin
import Peering
import Platform
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// State shared by the handlers of one event loop: its clock, origin client, fetches and counters.
///
/// All mutable state is accessed only on the loop, which makes the class safe to send. Other loops
/// reach it by ``fetches`` and `loop.execute`.
package final class EventLoopContext: NIOScheduledCallbackHandler, @unchecked Sendable {
    /// Number of this loop, less than `Configuration.loopsMax`.
    let index: Int
    /// The loop.
    package let loop: any EventLoop
    /// Counters of this loop.
    let counters = EventLoopCounters()
    /// Durations and body sizes by cache result, of this loop.
    let outcomes = OutcomeHistograms()
    /// The uses of entries on this loop.
    private(set) var uses: EntryUseRecorder
    /// Choice of the hits that count in ``uses``.
    private var sampler = HitSampler()
    /// Generator of IDs for requests received here, and for peer queries without an ID.
    var requestIDs: RequestIDGenerator
    /// Instants until which background fetches are suspended, by keyed hash of the key.
    var backgroundPauses: [UInt64: Instant] = [:]
    /// True if sites are configured; cached here, because every request reads it.
    private(set) var hasSites: Bool
    /// Number of the site `*`, or `nil`; cached here, because every request to a site reads it.
    private(set) var defaultSite: Int?
    /// True if X-Forwarded-* fields of some proxies are trusted.
    private(set) var hasForwardingProxies: Bool
    /// Counters of the sites, in the order of the site table in ``settings``.
    private(set) var siteCounters: [SiteCounters]
    /// Memory shares of the sites, in the same order; `nil` for a site without a limit.
    private var siteShares: [MemoryShare?]
    /// Memory share of images; `nil` without a limit.
    private(set) var imageShare: MemoryShare?
    /// The node's settings as this loop has adopted them; a copy, so that a hit needs no shared
    /// object.
    private(set) var settings: NodeSettings
    /// The memory store of the node.
    let store: MemoryStore
    /// Coordinator of the node's purges.
    let purges: PurgeCoordinator
    /// State of the node's fence.
    let fence: FenceStatus
    /// True if the access log is enabled; cached here, because every request reads it.
    private(set) var hasAccessLog: Bool
    /// The lines of the access log that were not written yet.
    private var accessLog: AccessLogBuffer
    /// The node; retains this context until ``NodeCore/close()``.
    let node: NodeCore
    /// Buffers for response heads.
    var headBuffers = HeadBuffers()
    /// Buffers shared by the loop's TLS sessions.
    let tlsBuffers = TLSBufferPool()
    /// Number of clients in their TLS handshake.
    var handshakes = 0
    /// Connections to the admin port that wait for a slot.
    var adminQueue = AdminQueue()
    /// Reader of the disk tier that does not block.
    var pageCache: PageCacheReader
    /// The current Date field line.
    private(set) var dateLine = DateLine(SystemClock.wallTime())
    /// Origin client of this loop.
    let origin: OriginClient
    /// The open connections of clients and operators.
    var connections = ConnectionTable()
    /// Exchanges that no stream uses.
    var idleExchanges: [HTTP2Exchange] = []
    /// True after ``stop()``.
    private(set) var isStopped = false
    /// The fetches that run on this loop, and the readers that wait on it.
    let fetches: LoopFetches
    /// Schedule of requests that memory cannot serve.
    let missScheduler: MissScheduler
    private var ticker: NIOScheduledCallback?
    private var lastTick: Instant

    /// Interval between checks of deadlines; a time limit may be exceeded by this much.
    static let tick = Interval.milliseconds(250)

    /// Creates the context of loop `index` from the node's current settings.
    init(index: Int, loop: any EventLoop, node: NodeCore) {
        precondition(index < Configuration.loopsMax, "a loop's number is a bit")
        self.index = index
        self.loop = loop
        fetches = LoopFetches(on: loop)
        missScheduler = MissScheduler(on: loop)
        self.node = node
        requestIDs = RequestIDGenerator(run: node.requestIDPrefix, loop: index)
        settings = node.settings
        hasSites = !settings.sitePolicies.isEmpty
        defaultSite = settings.sites.catchAll
        hasForwardingProxies = !settings.forwardedFrom.isEmpty
        siteCounters = node.siteCounters.counters(of: node.settings.sites.names, loop: index)
        (siteShares, imageShare) = node.siteShares.shares(of: node.settings.sites)
        store = node.store
        purges = node.purges
        fence = node.fence
        accessLog = AccessLogBuffer(format: node.accessLogFormat)
        hasAccessLog = node.accessLogFormat != nil
        pageCache = PageCacheReader(of: node)
        lastTick = SystemClock.now()
        uses = EntryUseRecorder(
            recordsTouches: settings.touchInterval != nil
                && (node.disk != nil || node.isInCluster),
            now: lastTick)
        origin = node.makeOriginClient(on: loop)
    }

    /// Starts the periodic work, the deadlines of fetches and the turns of misses; on the loop.
    func start() {
        // A callback, because a repeated task would allocate on every repetition.
        scheduleTick()
        fetches.start()
        missScheduler.start()
    }

    private func scheduleTick() {
        ticker = try? loop.scheduleCallback(
            in: .nanoseconds(Self.tick.nanoseconds), handler: self)
    }

    /// Does the periodic work and schedules the next call.
    package func handleScheduledCallback(eventLoop: some EventLoop) {
        ticked(SystemClock.now())
        scheduleTick()
    }

    /// Adopts new settings; on the loop.
    func reconfigure(_ new: LoopSettings) {
        let old = settings
        settings = new.node
        hasSites = !settings.sitePolicies.isEmpty
        defaultSite = settings.sites.catchAll
        hasForwardingProxies = !settings.forwardedFrom.isEmpty
        siteCounters = node.siteCounters.counters(of: new.node.sites.names, loop: index)
        (siteShares, imageShare) = node.siteShares.shares(of: new.node.sites)
        accessLog.format = new.accessLog
        hasAccessLog = new.accessLog != nil
        if let origins = new.origins {
            origin.reconfigure(
                settings: origins.settings, addressGuard: origins.addressGuard,
                patterns: origins.patterns)
        }
        for connection in connections.all { connection.settingsChanged(from: old) }
    }

    /// Returns the memory share of responses under `plan`; `nil` if it is unlimited.
    func share(of plan: SitePolicy) -> MemoryShare? {
        plan.imageRules == nil ? siteShares[plan.number] : imageShare
    }

    /// Stops the periodic work and the origin client, aborts client connections, closes admin
    /// connections, and passes on log lines and touches; on the loop.
    package func stop() {
        ticker?.cancel()
        fetches.stop()
        missScheduler.stop()
        abortConnections()
        for connection in connections.all where connection.plane == .admin { connection.close() }
        isStopped = true
        idleExchanges = []
        origin.shutDown()
        accessLog.flush(to: node.accessLog)
        if let touches = uses.takeTouches() { node.enqueueTouches(touches, flushes: true) }
    }

    // MARK: Connections

    /// Stops reading client requests; every client connection closes after the responses in
    /// progress.
    ///
    /// Admin connections stay open.
    package func drain() {
        for connection in connections.all where connection.plane == .data { connection.drain() }
    }

    /// Aborts all client connections, whatever their state.
    package func abortConnections() {
        for connection in connections.all where connection.plane == .data { connection.abort() }
    }

    // MARK: Periodic work

    /// Checks all deadlines and does periodic work, that of the node on loop 0.
    private func ticked(_ now: Instant) {
        dateLine.update(SystemClock.wallTime())
        let elapsed = now - lastTick
        lastTick = now
        connections.renewBudget()
        fetches.ticked(elapsed)
        // In reverse, because a connection that closes is replaced at its index by the last one.
        for index in connections.all.indices.reversed() where index < connections.all.count {
            connections.all[index].ticked(now)
        }
        if index == 0 {
            node.ticketKeys.rotateIfDue(settings, now: now)
            purges.purgeMergedHosts()
            node.reclaimMarks()
            if node.hub != nil { purges.logFenceState(now: now) }
            purges.checkDiskDirectory()
            node.taggingRules.checkDirectory()
            node.prefetcher.ticked(node)
            node.recordTraffic(now: now)
        }
        accessLog.flush(to: node.accessLog)
        sampler.ticked()
        uses.decayIfDue(now)
        if let interval = settings.touchInterval,
            let touches = uses.takeTouches(every: interval, now: now)
        {
            node.enqueueTouches(touches, flushes: true)
        }
        node.disk?.tick(now: now)
    }

    // MARK: Uses of entries

    /// Records a hit on a memory entry, for the most requested entries and as a touch.
    @inline(__always)
    func touch(_ entry: MemoryEntry, now: Instant) {
        touch(entry.name, hash: entry.hash, now: now)
    }

    /// Records a hit on an entry that need not be in memory; without a name, only for the most
    /// requested entries.
    @inline(__always)
    func touch(_ name: EntryName?, hash: UInt64, now: Instant) {
        if let weight = sampler.countHit() { uses.addHits(weight, on: hash) }
        guard uses.recordsTouches, let name else { return }
        recordTouch(name.digest, at: node.clock.second(now))
    }

    /// Records the use of an entry at `second`; if the table was full, passes its touches on
    /// before.
    private func recordTouch(_ digest: EntryDigest, at second: UInt32) {
        guard let full = uses.touch(digest, at: second) else { return }
        node.enqueueTouches(full, flushes: false)
    }

    // MARK: The access log

    /// Appends a line to the access log; on the loop.
    func log(_ line: AccessLine) {
        accessLog.append(line, to: node.accessLog)
    }
}
