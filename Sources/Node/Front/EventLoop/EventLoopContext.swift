import Cluster
import Ground
import HTTPRules
import Logging
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// What the doors of one event loop share: its clock, its origin client, its fetches and its
/// counters.
///
/// Everything mutable here is touched on the loop alone, which is what makes it safe to send; other
/// loops reach it by ``tell(_:_:)`` and `loop.execute`.
final class EventLoopContext: NIOScheduledCallbackHandler, @unchecked Sendable {
    /// The number of this loop, less than 64.
    let index: Int
    let loop: any EventLoop
    let counters = EventLoopCounters()
    let outcomes = OutcomeHistograms()
    /// What is asked for most, of a sample of the hits.
    private(set) var hot = SpaceSaving(countersMax: 256)
    /// Each hit whose number has none of these bits is in the sample.
    private var hotMask: UInt64 = 0
    private var hitNumber: UInt64 = 0
    private var hitNumberAtTick: UInt64 = 0
    private var hotAgedAt: Instant
    /// Names the requests that come here, and the questions that come without a name.
    var requestIDs: RequestIDGenerator
    /// Keys, by their hashes, about which the origin is not asked in the background until then.
    var backgroundPauses: [UInt64: Instant] = [:]
    /// There are sites; here, because every request asks.
    private(set) var hasSites: Bool
    /// The number of the site `*`; here, because every request to a site asks.
    private(set) var defaultSite: Int?
    /// Some proxy is believed what it says of its clients.
    private(set) var hasForwardingProxies: Bool
    /// In the order of the table of sites in ``settings``.
    private(set) var siteCounters: [SiteCounters]
    /// The part of memory that each of them has; nil for one that may take all.
    private var siteShares: [MemoryShare?]
    /// That of images.
    private(set) var imageShare: MemoryShare?
    /// Of the node, here too, so that a hit finds them without another object.
    private(set) var settings: NodeSettings
    let store: MemoryStore
    let purges: PurgeCoordinator
    let fence: FenceStatus
    private(set) var hasAccessLog: Bool
    /// Holds this hall until ``NodeCore/close()``.
    let node: NodeCore
    var headBuffers = HeadBuffers()
    let tlsBuffers = TLSBufferPool()
    /// Clients that are in their TLS handshake.
    var handshakes = 0
    /// Connections to the admin port that wait for a place.
    var adminQueue = AdminQueue()
    /// What records are read into; empty without a disk tier.
    var diskReadBuffer: [UInt8] = []
    /// What was read of the disk of late.
    var checkedRecords = VerifiedRecordCache(isEmpty: true)
    private(set) var dateLine = DateLine(SystemClock.wallTime())
    let origin: OriginClient
    private(set) var connections: [any ClientConnection] = []
    /// Those that make room for newcomers, the next one last; see ``IdleConnectionOrder``.
    var preemptionCandidates: (data: [PreemptionCandidate], admin: [PreemptionCandidate]) = ([], [])
    var scanBudget = ScanBudget()
    var idleExchanges: [HTTP2Exchange] = []
    private(set) var isStopped = false
    /// Doors and peers that were told to wait, by the fetch that will wake them.
    private var waitingReaders: [ObjectIdentifier: [any FetchReader]] = [:]
    /// Fetches whose readers are told when what goes on now is done.
    private var wokenFetches: [ActiveFetch] = []
    private var fetches: [ObjectIdentifier: LookupDriver] = [:]
    private var touches: TouchTable?
    private var touchesTakenAt: Instant
    private var ticker: NIOScheduledCallback?
    /// For the deadlines of fetches.
    private let deadlineTimer: DeadlineTimer
    /// Which requests that memory cannot answer go on now, and which wait.
    var missScheduler = MissScheduler()
    /// Begins the next turn, as long as one is wanted.
    let missTimer: DeadlineTimer
    private var lastTick: Instant
    private var logFormat: AccessLine.Format?
    private var logBuffer = ByteBuffer()
    private var logLines = 0

    /// Loops of one node: their numbers are the bits of a word.
    static let countMax = 64
    /// How often deadlines are looked at: a time limit may be passed by so much.
    static let tick = Interval.milliseconds(250)

    init(index: Int, loop: any EventLoop, node: NodeCore) {
        precondition(index < Self.countMax, "a loop's number is a bit")
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
        siteCounters = node.siteLedger.counters(of: node.settings.sites.names, loop: index)
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

    /// Begins to look at deadlines, on the loop.
    func startFetch() {
        // A callback and not a repeated task: that one would allocate at every turn.
        scheduleTick()
        deadlineTimer.start { [unowned self] in deadlinesReached($0) }
        missTimer.start { [unowned self] in turnBegan($0) }
    }

    private func scheduleTick() {
        ticker = try? loop.scheduleCallback(
            in: .nanoseconds(Self.tick.nanoseconds), handler: self)
    }

    func handleScheduledCallback(eventLoop: some EventLoop) {
        ticked(SystemClock.now())
        scheduleTick()
    }

    /// Takes over new settings, on the loop.
    func reconfigure(_ new: LoopSettings) {
        let old = settings
        settings = new.node
        hasSites = !settings.sitePolicies.isEmpty
        defaultSite = settings.sites.catchAll
        hasForwardingProxies = !settings.forwardedFrom.isEmpty
        siteCounters = node.siteLedger.counters(of: new.node.sites.names, loop: index)
        (siteShares, imageShare) = node.siteShares.shares(of: new.node.sites)
        logFormat = new.accessLog
        hasAccessLog = logFormat != nil
        if let origins = new.origins {
            origin.reconfigure(
                settings: origins.settings, addressGuard: origins.addressGuard,
                patterns: origins.patterns)
        }
        for connection in connections { connection.settingsChanged(from: old) }
    }

    /// The part of memory that answers by `plan` have; nil if they may take all of it.
    func share(of plan: SitePolicy) -> MemoryShare? {
        plan.imageRules == nil ? siteShares[plan.number] : imageShare
    }

    /// Ends what the loop still does, on the loop; connections and fetches that are not
    /// gone by now are broken off.
    func stop() {
        ticker?.cancel()
        deadlineTimer.stop()
        missTimer.stop()
        abortConnections()
        for connection in connections where connection.plane == .admin { connection.close() }
        isStopped = true
        idleExchanges = []
        origin.shutDown()
        flushLog()
        flushTouches(flushes: true)
    }

    // MARK: Connections

    func connectionOpened(_ connection: any ClientConnection) {
        connection.index = connections.count
        connections.append(connection)
    }

    func connectionClosed(_ connection: any ClientConnection) {
        let last = connections.removeLast()
        guard last !== connection else { return }
        connections[connection.index] = last
        last.index = connection.index
    }

    /// No further request of a client is read; every connection closes after the answers that it is
    /// giving.
    ///
    /// Operators go on looking.
    func drain() {
        for connection in connections where connection.plane == .data { connection.drain() }
    }

    /// Ends the connections of clients, whatever they wait for.
    func abortConnections() {
        for connection in connections where connection.plane == .data { connection.abort() }
    }

    // MARK: Fetches

    /// Starts the fetch of `run`, which was begun by a request on this loop, and whose answer is
    /// called `name` on disk; `door` is the one that asks.
    @discardableResult
    func startFetch(
        _ run: ActiveFetch, name: EntryName?, asksDisk: Bool, for handler: RequestHandler?
    ) -> LookupDriver {
        let driver = LookupDriver(run, name: name, on: self, for: handler)
        fetches[ObjectIdentifier(run)] = driver
        driver.handle { $0.started(readsDisk: asksDisk, effects: &$1) }
        return driver
    }

    /// A fetch will not speak again.
    func fetchEnded(_ fetch: LookupDriver) {
        fetches[ObjectIdentifier(fetch.fetch)] = nil
    }

    /// `fetch` has a deadline, or another one.
    func scheduleDeadline(_ fetch: LookupDriver, now: Instant) {
        guard let deadline = fetch.deadline else { return }
        deadlineTimer.schedule(by: deadline, now: now)
    }

    /// Tells the fetches whose deadline it is; gives the next one.
    private func deadlinesReached(_ now: Instant) -> Instant? {
        for fetch in Array(fetches.values) {
            if let deadline = fetch.deadline, deadline <= now { fetch.deadlineReached(now) }
        }
        return fetches.values.lazy.compactMap(\.deadline).min()
    }

    /// Does something with the fetch of `run`, which runs on this loop, if it is not over; from any
    /// loop.
    func withFetch(_ run: ActiveFetch, _ message: @escaping @Sendable (LookupDriver) -> Void) {
        loop.execute { [self] in
            guard let fetch = fetches[ObjectIdentifier(run)] else { return }
            message(fetch)
        }
    }

    /// `reader` is to be told when `run` has something for it.
    func addReader(_ run: ActiveFetch, for reader: any FetchReader) {
        if let place = waitingReaders.index(forKey: ObjectIdentifier(run)) {
            waitingReaders.values[place].append(reader)
        } else {
            waitingReaders[ObjectIdentifier(run)] = [reader]
        }
    }

    /// Tells those who wait here for `run`, soon; from any loop.
    ///
    /// Of what one turn of this loop brings, all are told in one task.
    func scheduleWake(_ run: ActiveFetch) {
        guard loop.inEventLoop else { return loop.execute { [self] in wakeReaders(of: run) } }
        wokenFetches.append(run)
        guard wokenFetches.count == 1 else { return }
        loop.assumeIsolated().execute { [self] in
            for run in wokenFetches.takeAll() { wakeReaders(of: run) }
        }
    }

    private func wakeReaders(of run: ActiveFetch) {
        guard let readers = waitingReaders.removeValue(forKey: ObjectIdentifier(run)) else {
            return
        }
        for reader in readers { reader.fetchAdvanced(by: run) }
    }

    private func ticked(_ now: Instant) {
        dateLine.update(SystemClock.wallTime())
        let elapsed = now - lastTick
        lastTick = now
        scanBudget = ScanBudget()
        for fetch in Array(fetches.values) {
            fetch.fetch.ticked(elapsed, isContended: fetch.isContended)
        }
        // Backwards, because a connection that closes gives its place to the last one.
        for index in connections.indices.reversed() where index < connections.count {
            connections[index].ticked(now)
        }
        if index == 0 {
            node.ticketKeys.rotateIfDue(settings, now: now)
            node.purgeMergedHosts()
            node.reclaimMarks()
            node.logFenceState(now: now)
            purges.checkDiskDirectory()
            node.originals.checkDirectory()
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

    // MARK: What is hot

    /// Some hundred hits of a tick are looked at, however many there are.
    private func sampleHot(_ now: Instant) {
        let hits = hitNumber &- hitNumberAtTick
        hitNumberAtTick = hitNumber
        hotMask = hits < 256 ? 0 : (1 << UInt64(64 - (hits / 128).leadingZeroBitCount)) - 1
        guard now - hotAgedAt >= .seconds(60) else { return }
        hotAgedAt = now
        hot.decay()
    }

    // MARK: Touches

    /// Notes that an entry was used.
    @inline(__always)
    func touch(_ entry: MemoryEntry, now: Instant) {
        touch(entry.name, hash: entry.hash, now: now)
    }

    /// The same of one that need not be in memory.
    @inline(__always)
    func touch(_ name: EntryName?, hash: UInt64, now: Instant) {
        hitNumber &+= 1
        if hitNumber & hotMask == 0 { hot.add(hash, times: hotMask &+ 1) }
        guard touches != nil, let name else { return }
        recordTouch(name.digest, at: node.clock.second(now))
    }

    private func recordTouch(_ digest: EntryDigest, at second: UInt32) {
        guard touches?.touch(digest, at: second) == false else { return }
        flushTouches(flushes: false)
        _ = touches?.touch(digest, at: second)
    }

    private func flushTouches(flushes: Bool) {
        guard let taken = touches?.take() else { return }
        node.enqueueTouches(taken, flushes: flushes)
    }

    // MARK: The access log

    /// Adds a line; on the loop.
    func log(_ line: AccessLine) {
        guard let logFormat, line.append(to: &logBuffer, logFormat) else { return }
        logLines += 1
        if logBuffer.readableBytes >= AccessLog.bufferBytes { flushLog() }
    }

    private func flushLog() {
        guard logLines > 0 else { return }
        node.accessLog.enqueue(logBuffer, lines: logLines)
        logBuffer = ByteBuffer()
        logLines = 0
    }
}
