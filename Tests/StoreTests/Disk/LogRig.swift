import Ground
import NIOCore
import Store
import Tiers

/// A disk log on a simulated volume, with starts and ends of its process.
final class LogRig {
    var volume = SimulatedVolume()
    let figures = DiskCounters()
    var plan: DiskPlan
    var ageLimit: Interval
    /// The validation of each record that is read.
    var fault: RecordValidation = { _ in nil }
    /// Wall time in milliseconds since 1970.
    var now: Int64 = 1_795_000_000_000
    /// The invalidations in a journal that is always synced.
    var journal: [InvalidationMark] = []
    /// The version up to which the journal is complete.
    var journalReached = InvalidationVersion.zero
    /// The maximum number of marks of a process.
    var marksMax = InvalidationIndex.marksMax
    /// The newest wall time of any start, as kept in the identity file.
    private var newestWall: Int64 = 0
    private var epoch: UInt64 = 0
    private var dice: SplitMix64
    private var current: DiskLog?
    /// The events of the last start.
    private(set) var notes: [DiskEvent] = []

    init(
        segments: Int, seed: UInt64, ageLimit: Interval = .seconds(1_000_000)
    ) throws {
        plan = try Self.plan(segments: segments)
        self.ageLimit = ageLimit
        dice = SplitMix64(seed: seed)
        newestWall = now
    }

    /// A rig with a copy of the volume and no running process.
    init(_ other: LogRig) {
        volume = other.volume.copy()
        (plan, ageLimit, now) = (other.plan, other.ageLimit, other.now)
        (newestWall, epoch, dice) = (other.newestWall, other.epoch, other.dice)
        (journal, journalReached) = (other.journal, other.journalReached)
    }

    /// The smallest plan of `segments` segments of 1 MiB.
    static func plan(segments: Int) throws -> DiskPlan {
        let perSegment = UInt64(1 << 20 + 8 << 10)
        let extra = UInt64(segments - SegmentAllocator.Settings.segmentsMin) * perSegment
        return try DiskPlan(
            limitBytes: DiskPlan.limitBytesMin + extra, objectBytesMax: 0,
            formerSegmentBytes: 1 << 20)
    }

    /// The most bytes that the files may use.
    var capBytes: UInt64 { UInt64(plan.segments * plan.segmentBytes) }

    /// The open log; starts a process if none runs.
    func log() throws -> DiskLog {
        if let current { return current }
        return try start()
    }

    /// True if the volume has a file of this name.
    func has(_ name: String) -> Bool { (try? volume.names().contains(name)) ?? false }

    /// True if a process has the log open.
    var isRunning: Bool { current != nil }

    /// Kills the process; what it wrote stays.
    func kill() {
        current = nil
        volume.kill()
    }

    /// Cuts the power.
    func losePower() {
        current = nil
        volume.losePower(using: &dice)
    }

    /// Opens the log as a new process, with a new index of invalidations unless one is given.
    @discardableResult
    func start(_ index: InvalidationIndex? = nil) throws -> DiskLog {
        let index = index ?? InvalidationIndex(key: .publiclyKnown, marksMax: marksMax)
        current = nil
        notes = []
        epoch += 1
        let formerWall = newestWall
        newestWall = max(newestWall, now)
        let identity = NodeIdentity(
            nodeID: NodeID(low: 7, high: 8), bootEpoch: epoch,
            segmentBytes: UInt64(plan.segmentBytes), newestWall: newestWall)
        var settings = DiskLog.Settings(
            plan: plan, ageLimit: ageLimit, keys: (dice.next(), dice.next()),
            random: SplitMix64(seed: dice.next()))
        settings.validation = fault
        let (marks, reached) = (journal, journalReached)
        settings.markRecovery = { _, _, wanted in
            RecoveredMarks(table: MarkTable(wanted(marks)), lastVersion: reached)
        }
        let log = try DiskLog.open(
            volume, settings, identity, marks: index, counters: figures, formerWall: formerWall,
            now: now
        ) { notes.append($0) }
        current = log
        let isUnknown = notes.contains {
            if case .revalidationRequired = $0 { true } else { false }
        }
        if isUnknown {
            // The first file of a journal records the result of the start.
            let version = InvalidationVersion(epoch: epoch, count: 0)
            journal.append(InvalidationMark(.everything, isSoft: true, version: version))
            journalReached = version
        }
        return log
    }

    /// Closes the log and ends its process.
    func stop() throws {
        try log().close()
        kill()
    }

    /// Closes the log and opens it again.
    func restart() throws {
        try stop()
        try start()
    }

    /// Warnings of the last start.
    var warnings: [DiskEvent] { notes.filter(\.isWarning) }

    /// Stores a response whose request began at `version`, by default now.
    @discardableResult
    func store(_ response: Answer, version: InvalidationVersion? = nil) throws
        -> DiskLog.StoreOutcome
    {
        let log = try log()
        return try log.store(
            response.record(version: version ?? log.view.version, now: now), body: response.pieces,
            now: now)
    }

    func delete(_ names: [Int]) throws {
        _ = try invalidate(names.map(Answer.target))
    }

    /// Applies invalidations and returns their marks.
    func invalidate(_ targets: [PurgeTarget], isSoft: Bool = false) throws -> [InvalidationMark] {
        let version = try log().marks.apply(targets, isSoft: isSoft, now: .zero)
        let marks = targets.map { InvalidationMark($0, isSoft: isSoft, version: version) }
        journal += marks
        journalReached = version
        return marks
    }

    /// Prunes unused marks, as a few ticks of a node do.
    func tickMarks() throws {
        let log = try log()
        for _ in 0..<4 {
            log.marks.pruneMarks(
                leastVersionOnDisk: { log.leastVersion }, fingerprintsOnDisk: log.fingerprintsOnDisk
            )
        }
    }

    func touch(_ name: Int, count: UInt32 = 1) throws {
        try log().touch(
            Answer.name(name).digest, count: count, at: UInt32(clamping: now / 1000))
    }

    /// The result of a look-up.
    struct Found: Hashable {
        var body: [UInt8]
        var head: [UInt8]
        var isStale: Bool
    }

    /// The entry found by a disk thread.
    func find(_ name: Int) throws -> Found? {
        let view = try log().view
        guard var reading = view.read(Answer.name(name), key: Answer.key(name)),
            let body = view.readBody(&reading)
        else { return nil }
        return Found(
            body: body.flatMap { Array($0.readableBytesView) }, head: reading.record.head,
            isStale: reading.isStale)
    }

    /// The entry found on an event loop, or by a disk thread if the event loop would block.
    func findAtOnce(_ name: Int) throws -> Found? {
        var room = [UInt8](repeating: 0xEE, count: DiskView.bufferBytes)
        let found = try log().view.readNonblocking(
            Answer.name(name), key: Answer.key(name), buffer: &room)
        if case .wouldBlock = found { return try find(name) }
        guard case .complete(let reading, let body) = found else { return nil }
        return Found(
            body: body.flatMap { Array($0.readableBytesView) }, head: reading.record.head,
            isStale: reading.isStale)
    }
}

/// A response of an origin, identified by its name and its version.
struct Answer: Hashable {
    let number: Int
    let version: Int
    let body: [UInt8]
    /// True if the chunks of the body are as in memory; otherwise they have random sizes.
    let isLaidOut: Bool

    init(_ number: Int, version: Int, bytes: Int, isLaidOut: Bool = true) {
        self.number = number
        self.version = version
        self.isLaidOut = isLaidOut
        var dice = SplitMix64(seed: UInt64(number) << 32 | UInt64(version))
        let start = Int.random(in: 0..<Self.noise.count - bytes, using: &dice)
        body = Array(Self.noise[start..<start + bytes])
    }

    /// The bytes from which bodies are cut.
    private static let noise: [UInt8] = {
        var dice = SplitMix64(seed: 1)
        return (0..<1 << 19).flatMap { _ in
            let word = dice.next()
            return (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
        }
    }()

    static func key(_ number: Int) -> [UInt8] { Array("http://origin/\(number)".utf8) }

    static func target(_ number: Int) -> PurgeTarget { .url(Array("origin/\(number)".utf8)) }

    static func name(_ number: Int) -> EntryName {
        var dice = SplitMix64(seed: UInt64(number))
        var bytes: [UInt8] = []
        while bytes.count < EntryName.bytesCount { bytes.appendLittle(dice.next()) }
        return EntryName(bytes.span)
    }

    /// The head, which identifies the response.
    var head: [UInt8] { Array("etag: \"\(number)-\(version)\"\r\n".utf8) }

    func record(version: InvalidationVersion, now: Int64) -> DiskRecord {
        DiskRecord(
            name: Self.name(number), invalidationVersion: version,
            times: DiskTimes(
                validated: now, generated: now, freshUntil: now + 60_000,
                lastModified: DiskFormat.noTime, date: now),
            lastAccess: UInt32(clamping: now / 1000), accessCount: 0, flags: [],
            layout: DiskHeadLayout(
                partialStart: 0, multipartStart: 0, notModifiedStart: 0, contentType: .empty,
                entityTag: .empty),
            key: Self.key(number), head: head, tags: [], bodyBytes: UInt64(body.count),
            chunkSums: [])
    }

    /// The body in the chunks in which it is stored.
    var pieces: [ByteBuffer] {
        var sizes: [Int] = []
        var left = body.count
        if isLaidOut {
            sizes = Array(repeating: BodyLayout.chunkBytes, count: left / BodyLayout.chunkBytes)
            sizes += BodyLayout.tail(left % BodyLayout.chunkBytes)
        } else {
            var dice = SplitMix64(seed: UInt64(version))
            while left > 0 {
                let size = Int.random(in: 0...min(left, 150_000), using: &dice)
                sizes.append(size)
                left -= size
            }
        }
        var start = 0
        return sizes.map { size in
            let end = min(body.count, start + size)
            defer { start = end }
            return ByteBuffer(bytes: body[start..<end])
        }
    }
}
