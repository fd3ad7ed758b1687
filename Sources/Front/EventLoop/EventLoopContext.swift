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
/// reach it by ``withFetch(_:_:)``, ``scheduleWake(_:)`` and `loop.execute`.
package final class EventLoopContext: NIOScheduledCallbackHandler, @unchecked Sendable {
    /// Number of this loop, less than `Configuration.loopsMax`.
    let index: Int
    /// The loop.
    package let loop: any EventLoop
    /// Counters of this loop.
    let counters = EventLoopCounters()
    /// Durations and body sizes by cache result, of this loop.
    let outcomes = OutcomeHistograms()
    /// The most requested entries, from a sample of the hits.
    private(set) var hot = SpaceSaving(countersMax: 256)
    /// A hit is in the sample if its number has none of these bits.
    private var hotMask: UInt64 = 0
    /// Number of hits so far, wrapping.
    private var hitNumber: UInt64 = 0
    private var hitNumberAtTick: UInt64 = 0
    /// When ``hot`` was last decayed.
    private var hotAgedAt: Instant
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
    /// The node's settings as this loop has adopted them; with the objects below, copied here so
    /// that a hit needs no other object.
    private(set) var settings: NodeSettings
    /// The memory store of the node.
    let store: MemoryStore
    let purges: PurgeCoordinator
    /// State of the node's fence.
    let fence: FenceStatus
    /// True if the access log is enabled.
    private(set) var hasAccessLog: Bool
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
    /// Buffer for disk reads on the loop; empty without a disk tier.
    var diskReadBuffer: [UInt8] = []
    /// Disk records whose checksum was verified recently.
    var checkedRecords = VerifiedRecordCache(isEmpty: true)
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
    /// Responses and peer handlers that wait for a fetch, by fetch.
    private var waitingReaders: [ObjectIdentifier: [any FetchReader]] = [:]
    /// Fetches whose readers are woken after the current events.
    private var wokenFetches: [ActiveFetch] = []
    /// Drivers of the fetches that run on this loop, by their ``ActiveFetch``.
    private var fetches: [ObjectIdentifier: LookupDriver] = [:]
    /// Uses of entries, collected for the disk tier and peers; `nil` if not recorded.
    private var touches: TouchTable?
    /// When ``touches`` were last passed on.
    private var touchesTakenAt: Instant
    private var ticker: NIOScheduledCallback?
    /// Timer of the fetches' deadlines.
    private let deadlineTimer: DeadlineTimer
    /// Schedule of requests that memory cannot serve.
    var missScheduler = MissScheduler()
    /// Timer of the next turn of ``missScheduler``, scheduled while one is required.
    let missTimer: DeadlineTimer
    private var lastTick: Instant
    private var logFormat: AccessLine.Format?
    private var logBuffer = ByteBuffer()
    /// Number of lines in `logBuffer`.
    private var logLines = 0

    /// Interval between checks of deadlines; a time limit may be exceeded by this much.
    static let tick = Interval.milliseconds(250)

    /// Creates the context of loop `index` from the node's current settings.
    init(index: Int, loop: any EventLoop, node: NodeCore) {
        precondition(index < Configuration.loopsMax, "a loop's number is a bit")
        self.index = index
        self.loop = loop
        deadlineTimer = DeadlineTimer(on: loop)
        missTimer = DeadlineTimer(on: loop)
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
        logFormat = node.accessLogFormat
        hasAccessLog = logFormat != nil
        lastTick = SystemClock.now()
        hotAgedAt = lastTick
        touchesTakenAt = lastTick
        if node.disk != nil {
            diskReadBuffer = Array(repeating: 0, count: DiskView.bufferBytes)
            checkedRecords = VerifiedRecordCache()
        }
        if node.disk != nil || node.isInCluster, settings.touchInterval != nil {
            touches = TouchTable(keysMax: TouchQueue.batchKeys)
        }
        origin = node.makeOriginClient(on: loop)
    }

    /// Starts the checks of deadlines; on the loop.
    func startFetch() {
        // A callback, because a repeated task would allocate on every repetition.
        scheduleTick()
        deadlineTimer.start { [unowned self] in deadlinesReached($0) }
        missTimer.start { [unowned self] in turnBegan($0) }
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
        logFormat = new.accessLog
        hasAccessLog = logFormat != nil
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

    /// Stops all activity of the loop and aborts connections and fetches that remain; on the loop.
    package func stop() {
        ticker?.cancel()
        deadlineTimer.stop()
        missTimer.stop()
        abortConnections()
        for connection in connections.all where connection.plane == .admin { connection.close() }
        isStopped = true
        idleExchanges = []
        origin.shutDown()
        flushLog()
        flushTouches(flushes: true)
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

    // MARK: Fetches

    /// Starts a fetch for a request on this loop.
    ///
    /// - Parameters:
    ///   - run: the fetch to start.
    ///   - name: name of the response on disk; `nil` if it has none.
    ///   - asksDisk: true if the disk is read before the origin or peers are contacted.
    ///   - requester: the response whose request causes the fetch; `nil` in the background.
    /// - Returns: the driver, which this context retains until the fetch ends.
    @discardableResult
    func startFetch(
        _ run: ActiveFetch, name: EntryName?, asksDisk: Bool, for requester: PendingResponse?
    ) -> LookupDriver {
        let driver = LookupDriver(run, name: name, on: self, for: requester)
        fetches[ObjectIdentifier(run)] = driver
        driver.handle { $0.started(readsDisk: asksDisk, effects: &$1) }
        return driver
    }

    /// Forgets a fetch that has ended.
    func fetchEnded(_ fetch: LookupDriver) {
        fetches[ObjectIdentifier(fetch.fetch)] = nil
    }

    /// Schedules the timer for a new or changed deadline of `fetch`.
    func scheduleDeadline(_ fetch: LookupDriver, now: Instant) {
        guard let deadline = fetch.deadline else { return }
        deadlineTimer.schedule(by: deadline, now: now)
    }

    /// Processes the deadlines reached; returns the next one.
    private func deadlinesReached(_ now: Instant) -> Instant? {
        for fetch in Array(fetches.values) {
            if let deadline = fetch.deadline, deadline <= now { fetch.deadlineReached(now) }
        }
        return fetches.values.lazy.compactMap(\.deadline).min()
    }

    /// Runs `message` on this loop with the driver of `run`, unless the fetch has ended; from any
    /// loop.
    func withFetch(_ run: ActiveFetch, _ message: @escaping @Sendable (LookupDriver) -> Void) {
        loop.execute { [self] in
            guard let fetch = fetches[ObjectIdentifier(run)] else { return }
            message(fetch)
        }
    }

    /// Registers `reader` to be woken once, at the next event of `run`.
    func addReader(_ run: ActiveFetch, for reader: any FetchReader) {
        if let place = waitingReaders.index(forKey: ObjectIdentifier(run)) {
            waitingReaders.values[place].append(reader)
        } else {
            waitingReaders[ObjectIdentifier(run)] = [reader]
        }
    }

    /// Wakes the readers that wait here for `run`, soon; from any loop.
    ///
    /// All fetches woken in one turn of this loop share one task.
    func scheduleWake(_ run: ActiveFetch) {
        guard loop.inEventLoop else { return loop.execute { [self] in wakeReaders(of: run) } }
        wokenFetches.append(run)
        guard wokenFetches.count == 1 else { return }
        loop.assumeIsolated().execute { [self] in
            for run in wokenFetches.takeAll() { wakeReaders(of: run) }
        }
    }

    /// Wakes the readers that wait here for `run`.
    private func wakeReaders(of run: ActiveFetch) {
        guard let readers = waitingReaders.removeValue(forKey: ObjectIdentifier(run)) else {
            return
        }
        for reader in readers { reader.fetchAdvanced(by: run) }
    }

    /// Checks all deadlines and does periodic work, that of the node on loop 0.
    private func ticked(_ now: Instant) {
        dateLine.update(SystemClock.wallTime())
        let elapsed = now - lastTick
        lastTick = now
        connections.renewBudget()
        for fetch in Array(fetches.values) {
            fetch.fetch.ticked(elapsed, isContended: fetch.isContended)
        }
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
        }
        flushLog()
        sampleHot(now)
        if let interval = settings.touchInterval, now - touchesTakenAt >= interval {
            touchesTakenAt = now
            flushTouches(flushes: true)
        }
        node.disk?.tick(now: now)
    }

    // MARK: Hot entries

    /// Adapts the sampling rate to some hundred hits per tick, and decays the counts once a minute.
    private func sampleHot(_ now: Instant) {
        let hits = hitNumber &- hitNumberAtTick
        hitNumberAtTick = hitNumber
        hotMask = hits < 256 ? 0 : (1 << UInt64(64 - (hits / 128).leadingZeroBitCount)) - 1
        guard now - hotAgedAt >= .seconds(60) else { return }
        hotAgedAt = now
        hot.decay()
    }

    // MARK: Touches

    /// Records a hit on a memory entry.
    @inline(__always)
    func touch(_ entry: MemoryEntry, now: Instant) {
        touch(entry.name, hash: entry.hash, now: now)
    }

    /// Records a hit on an entry that need not be in memory.
    @inline(__always)
    func touch(_ name: EntryName?, hash: UInt64, now: Instant) {
        hitNumber &+= 1
        if hitNumber & hotMask == 0 { hot.add(hash, times: hotMask &+ 1) }
        guard touches != nil, let name else { return }
        recordTouch(name.digest, at: node.clock.second(now))
    }

    /// Records the use of an entry at `second`, after passing on a full table.
    private func recordTouch(_ digest: EntryDigest, at second: UInt32) {
        guard touches?.touch(digest, at: second) == false else { return }
        flushTouches(flushes: false)
        _ = touches?.touch(digest, at: second)
    }

    /// Passes the recorded uses on to the node's queue.
    private func flushTouches(flushes: Bool) {
        guard let taken = touches?.take() else { return }
        node.enqueueTouches(taken, flushes: flushes)
    }

    // MARK: The access log

    /// Appends a line to the log buffer; on the loop.
    func log(_ line: AccessLine) {
        guard let logFormat, line.append(to: &logBuffer, logFormat) else { return }
        logLines += 1
        if logBuffer.readableBytes >= AccessLog.bufferBytes { flushLog() }
    }

    /// Passes the buffered log lines on to the writer.
    private func flushLog() {
        guard logLines > 0 else { return }
        node.accessLog.enqueue(logBuffer, lines: logLines)
        logBuffer = ByteBuffer()
        logLines = 0
    }
}
