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
final class Hall: NIOScheduledCallbackHandler, @unchecked Sendable {
    /// The number of this loop, less than 64.
    let index: Int
    let loop: any EventLoop
    let counters = LoopCounters()
    let outcomes = LoopOutcomes()
    /// What is asked for most, of a sample of the hits.
    private(set) var hot = SpaceSaving(countersMax: 256)
    /// Each hit whose number has none of these bits is in the sample.
    private var hotMask: UInt64 = 0
    private var hitNumber: UInt64 = 0
    private var hitNumberAtTick: UInt64 = 0
    private var hotAgedAt: Instant
    /// Names the requests that come here, and the questions that come without a name.
    var requestNames: RequestNames
    /// Keys, by their hashes, about which the origin is not asked in the background until then.
    var backgroundPauses: [UInt64: Instant] = [:]
    /// There are sites; here, because every request asks.
    private(set) var hasSites: Bool
    /// The number of the site `*`; here, because every request to a site asks.
    private(set) var otherSite: Int?
    /// Some proxy is believed what it says of its clients.
    private(set) var hasForwarders: Bool
    /// In the order of the table of sites in ``settings``.
    private(set) var siteCounters: [SiteCounters]
    /// The part of memory that each of them has; nil for one that may take all.
    private var siteShares: [MemoryShare?]
    /// That of images.
    private(set) var imageShare: MemoryShare?
    /// Of the node, here too, so that a hit finds them without another object.
    private(set) var settings: NodeSettings
    let store: MemoryStore
    let desk: InvalidationDesk
    let fence: FenceGate
    private(set) var hasAccessLog: Bool
    /// Holds this hall until ``NodeCore/close()``.
    let node: NodeCore
    var heads = HeadBuffers()
    let tlsBuffers = TLSBuffers()
    /// Clients that are in their TLS handshake.
    var handshakes = 0
    /// Connections to the admin port that wait for a place.
    var waitingOperators = WaitingRoom()
    /// What records are read into; empty without a disk tier.
    var diskRoom: [UInt8] = []
    /// What was read of the disk of late.
    var checkedRecords = CheckedRecords(isEmpty: true)
    private(set) var dateLine = DateLine(SystemClock.wallTime())
    let origin: OriginClient
    private(set) var connections: [any ClientConnection] = []
    /// Those that make room for newcomers, the next one last; see ``IdleOrder``.
    var yielding: (data: [Yielding], admin: [Yielding]) = ([], [])
    var looks = Looks()
    var exchanges: [HTTP2Exchange] = []
    private(set) var isStopped = false
    /// Doors and peers that were told to wait, by the fetch that will wake them.
    private var waiting: [ObjectIdentifier: [any FillReader]] = [:]
    /// Fetches whose readers are told when what goes on now is done.
    private var woken: [FillRun] = []
    private var fetches: [ObjectIdentifier: LookupDriver] = [:]
    private var touches: TouchTable?
    private var touchesTakenAt: Instant
    private var ticker: NIOScheduledCallback?
    /// For the deadlines of fetches.
    private let alarm: Alarm
    /// Which requests that memory cannot answer go on now, and which wait.
    var turns = TurnBudget()
    /// Begins the next turn, as long as one is wanted.
    let turnAlarm: Alarm
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
        alarm = Alarm(on: loop)
        turnAlarm = Alarm(on: loop)
        self.node = node
        requestNames = RequestNames(run: node.run, loop: index)
        settings = node.settings
        hasSites = !settings.sitePlans.isEmpty
        otherSite = settings.sites.other
        hasForwarders = !settings.forwardedFrom.isEmpty
        siteCounters = node.siteLedger.counters(of: node.settings.sites.names, loop: index)
        (siteShares, imageShare) = node.siteShares.shares(of: node.settings.sites)
        store = node.store
        desk = node.desk
        fence = node.fence
        logFormat = node.accessLogFormat
        hasAccessLog = logFormat != nil
        lastTick = SystemClock.now()
        hotAgedAt = lastTick
        touchesTakenAt = lastTick
        if node.disk != nil {
            diskRoom = Array(repeating: 0, count: DiskView.roomBytes)
            checkedRecords = CheckedRecords()
        }
        if node.disk != nil || node.isInCluster, settings.touchInterval != nil {
            touches = TouchTable(keysMax: TouchQueue.batchKeys)
        }
        origin = node.makeOriginClient(on: loop)
    }

    /// Begins to look at deadlines, on the loop.
    func start() {
        // A callback and not a repeated task: that one would allocate at every turn.
        scheduleTick()
        alarm.start { [unowned self] in deadlinesReached($0) }
        turnAlarm.start { [unowned self] in turnBegan($0) }
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
    func adopt(_ new: LoopSettings) {
        let old = settings
        settings = new.node
        hasSites = !settings.sitePlans.isEmpty
        otherSite = settings.sites.other
        hasForwarders = !settings.forwardedFrom.isEmpty
        siteCounters = node.siteLedger.counters(of: new.node.sites.names, loop: index)
        (siteShares, imageShare) = node.siteShares.shares(of: new.node.sites)
        logFormat = new.accessLog
        hasAccessLog = logFormat != nil
        if let origins = new.origins {
            origin.adopt(
                settings: origins.settings, addressGuard: origins.addressGuard,
                patterns: origins.patterns)
        }
        for connection in connections { connection.adopt(after: old) }
    }

    /// The part of memory that answers by `plan` have; nil if they may take all of it.
    func share(of plan: SitePlan) -> MemoryShare? {
        plan.images == nil ? siteShares[plan.number] : imageShare
    }

    /// Ends what the loop still does, on the loop; connections and fetches that are not
    /// gone by now are broken off.
    func stop() {
        ticker?.cancel()
        alarm.stop()
        turnAlarm.stop()
        breakOff()
        for connection in connections where connection.side == .admin { connection.close() }
        isStopped = true
        exchanges = []
        origin.shutDown()
        handOverLog()
        handOverTouches(flushes: true)
    }

    // MARK: Connections

    func opened(_ connection: any ClientConnection) {
        connection.place = connections.count
        connections.append(connection)
    }

    func closed(_ connection: any ClientConnection) {
        let last = connections.removeLast()
        guard last !== connection else { return }
        connections[connection.place] = last
        last.place = connection.place
    }

    /// No further request of a client is read; every connection closes after the answers that it is
    /// giving.
    ///
    /// Operators go on looking.
    func drain() {
        for connection in connections where connection.side == .data { connection.drain() }
    }

    /// Ends the connections of clients, whatever they wait for.
    func breakOff() {
        for connection in connections where connection.side == .data { connection.breakOff() }
    }

    // MARK: Fetches

    /// Starts the fetch of `run`, which was begun by a request on this loop, and whose answer is
    /// called `name` on disk; `door` is the one that asks.
    @discardableResult
    func start(_ run: FillRun, name: EntryName?, asksDisk: Bool, for door: Door?) -> LookupDriver {
        let driver = LookupDriver(run, name: name, on: self, for: door)
        fetches[ObjectIdentifier(run)] = driver
        driver.tell { $0.began(asksDisk: asksDisk, effects: &$1) }
        return driver
    }

    /// A fetch will not speak again.
    func ended(_ fetch: LookupDriver) {
        fetches[ObjectIdentifier(fetch.run)] = nil
    }

    /// `fetch` has a deadline, or another one.
    func watch(_ fetch: LookupDriver, now: Instant) {
        guard let deadline = fetch.deadline else { return }
        alarm.set(by: deadline, now: now)
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
    func tell(_ run: FillRun, _ message: @escaping @Sendable (LookupDriver) -> Void) {
        loop.execute { [self] in
            guard let fetch = fetches[ObjectIdentifier(run)] else { return }
            message(fetch)
        }
    }

    /// `reader` is to be told when `run` has something for it.
    func await(_ run: FillRun, for reader: any FillReader) {
        if let place = waiting.index(forKey: ObjectIdentifier(run)) {
            waiting.values[place].append(reader)
        } else {
            waiting[ObjectIdentifier(run)] = [reader]
        }
    }

    /// Tells those who wait here for `run`, soon; from any loop.
    ///
    /// Of what one turn of this loop brings, all are told in one task.
    func wakeSoon(_ run: FillRun) {
        guard loop.inEventLoop else { return loop.execute { [self] in wakeReaders(of: run) } }
        woken.append(run)
        guard woken.count == 1 else { return }
        loop.assumeIsolated().execute { [self] in
            for run in woken.takeAll() { wakeReaders(of: run) }
        }
    }

    private func wakeReaders(of run: FillRun) {
        guard let readers = waiting.removeValue(forKey: ObjectIdentifier(run)) else { return }
        for reader in readers { reader.woken(by: run) }
    }

    private func ticked(_ now: Instant) {
        dateLine.update(SystemClock.wallTime())
        let elapsed = now - lastTick
        lastTick = now
        looks = Looks()
        for fetch in Array(fetches.values) {
            fetch.run.ticked(elapsed, isContended: fetch.isContended)
        }
        // Backwards, because a connection that closes gives its place to the last one.
        for index in connections.indices.reversed() where index < connections.count {
            connections[index].ticked(now)
        }
        if index == 0 {
            node.tickets.ticked(settings, now: now)
            node.purgeMergedHosts()
            node.dropMarks()
            node.reportFence(now: now)
            desk.followDisk()
            node.originals.followDisk()
            node.prefetcher.ticked(node)
        }
        handOverLog()
        sampleHot(now)
        if let interval = settings.touchInterval, now - touchesTakenAt >= interval {
            touchesTakenAt = now
            handOverTouches(flushes: true)
        }
        node.disk?.ticked(now: now)
    }

    // MARK: What is hot

    /// Some hundred hits of a tick are looked at, however many there are.
    private func sampleHot(_ now: Instant) {
        let hits = hitNumber &- hitNumberAtTick
        hitNumberAtTick = hitNumber
        hotMask = hits < 256 ? 0 : (1 << UInt64(64 - (hits / 128).leadingZeroBitCount)) - 1
        guard now - hotAgedAt >= .seconds(60) else { return }
        hotAgedAt = now
        hot.age()
    }

    // MARK: Touches

    /// Notes that an entry was used.
    @inline(__always)
    func touch(_ resident: Resident, now: Instant) {
        touch(resident.name, hash: resident.hash, now: now)
    }

    /// The same of one that need not be in memory.
    @inline(__always)
    func touch(_ name: EntryName?, hash: UInt64, now: Instant) {
        hitNumber &+= 1
        if hitNumber & hotMask == 0 { hot.add(hash, times: hotMask &+ 1) }
        guard touches != nil, let name else { return }
        note(name.digest, at: node.clock.second(now))
    }

    private func note(_ digest: EntryDigest, at second: UInt32) {
        guard touches?.touch(digest, at: second) == false else { return }
        handOverTouches(flushes: false)
        _ = touches?.touch(digest, at: second)
    }

    private func handOverTouches(flushes: Bool) {
        guard let taken = touches?.take() else { return }
        node.collect(taken, flushes: flushes)
    }

    // MARK: The access log

    /// Adds a line; on the loop.
    func log(_ line: AccessLine) {
        guard let logFormat, line.append(to: &logBuffer, logFormat) else { return }
        logLines += 1
        if logBuffer.readableBytes >= AccessLog.bufferBytes { handOverLog() }
    }

    private func handOverLog() {
        guard logLines > 0 else { return }
        node.accessLog.hand(over: logBuffer, lines: logLines)
        logBuffer = ByteBuffer()
        logLines = 0
    }
}
