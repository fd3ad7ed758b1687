import Glibc
import Ground
import NIOCore
import Tiers

/// What the writer's thread of a ``DiskTier`` works on: the log, or what keeps there from being
/// one.
struct DiskWork: ~Copyable {
    private let settings: DiskTier.Settings
    private let figures: DiskFigures
    private let marks: MarkBook
    private let note: @Sendable (DiskNote) -> Void
    private(set) var volume: NodeDirectory?
    private var log: DiskLog?
    /// When the next attempt is made; nil without a fault.
    private var retryAt: Instant?
    private var retryAfter = Self.retryMin
    private var lastTick = Instant.zero
    /// When marks were reviewed last.
    private var reviewedAt = Instant.zero
    private var checkpointAt = Instant.zero
    private var isClosed = false
    private var shares = DiskShares()

    private static let retryMin = Interval.seconds(1)
    private static let retryMax = Interval.seconds(30)
    /// Entries that are held against the age limit at one tick.
    private static let sweptMax = 20_000

    init(
        _ settings: DiskTier.Settings, marks: MarkBook, figures: DiskFigures,
        note: @escaping @Sendable (DiskNote) -> Void
    ) {
        self.settings = settings
        self.marks = marks
        self.figures = figures
        self.note = note
    }

    var view: DiskView? { log?.view }
    var isUp: Bool { log != nil && retryAt == nil }
    var segments: SegmentLedger.Counts { log?.ledger.counts ?? SegmentLedger.Counts() }
    /// Bytes of all blocks, at the last tick.
    private(set) var allocatedBytes: UInt64 = 0

    // MARK: The log's life

    /// Takes a directory and what is in it; a fault is noted.
    mutating func open(now wall: Int64) {
        do { try begin(now: wall) } catch { failed("\(error)") }
    }

    private mutating func begin(now wall: Int64) throws {
        var random = SystemRandomNumberGenerator()
        var plan: DiskPlan?
        let limit = settings.limitBytes - settings.journal.bytes
        let directory = try NodeDirectory(
            below: settings.root,
            newID: { NodeID(named: settings.nodeName, in: $0, using: &random) },
            formerEpoch: marks.stamp.epoch, wall: wall
        ) { former in
            // A limit that is too small was refused when the configuration was read.
            let made = try? DiskPlan(
                limitBytes: limit, otherBytes: settings.journal.bytes,
                objectBytesMax: settings.objectBytesMax, formerSegmentBytes: former)
            guard let made else {
                preconditionFailure("a disk limit of \(limit)")
            }
            plan = made
            return UInt64(made.segmentBytes)
        }
        guard let plan else { return }
        if let damage = directory.identityDamage {
            note(.discarded(file: "identity", why: "\(damage)"))
        }
        var logSettings = DiskLog.Settings(
            plan: plan, ageLimit: settings.ageLimit,
            keys: (random.next(), random.next()), dice: Dice(seed: random.next()))
        logSettings.fault = settings.fault
        logSettings.marks = settings.marks
        log = try DiskLog.open(
            directory, logSettings,
            directory.identity, book: marks, figures: figures, formerWall: directory.formerWall,
            now: wall,
            note: note)
        log?.adopt(shares)
        volume = directory
        allocatedBytes = directory.allocatedBytes()
    }

    mutating func close() {
        isClosed = true
        noteFolded()
        // What was taken out of the index is not to stand in the footers.
        for lost in log?.takeLost() ?? [] { note(lost) }
        do { try log?.close() } catch { note(.failed(why: "\(error)")) }
        log = nil
        volume = nil
    }

    // MARK: Work

    /// True if it was written, and can be found; see ``DiskLog/store(_:body:now:commit:)``.
    mutating func store(
        _ record: DiskRecord, _ body: [ByteBuffer], now: Int64, commit: (() -> Void) -> Bool
    ) -> Bool {
        guard let log, retryAt == nil else {
            figures.add(.droppedRecords)
            return false
        }
        do throws(DiskFile.Failure) {
            let isWritten = try log.store(record, body: body, now: now, commit: commit) == .written
            if !isWritten { figures.add(.droppedRecords) }
            retryAfter = Self.retryMin
            return isWritten
        } catch {
            figures.add(.droppedRecords)
            failed("\(error)")
            return false
        }
    }

    /// The same, unless an answer as new is there already; true if either is there.
    mutating func takeOver(
        _ record: DiskRecord, _ body: [ByteBuffer], now: Int64, commit: (() -> Void) -> Bool
    ) -> Bool {
        let held = view?.read(offered: record.name.digest)
        if let held, held.record.times.date >= record.times.date { return true }
        return store(record, body, now: now, commit: commit)
    }

    mutating func adopt(_ shares: DiskShares) {
        self.shares = shares
        log?.adopt(shares)
    }

    mutating func forget(_ name: EntryName) {
        for lost in log?.takeLost() ?? [] { note(lost) }
        log?.forget(name)
    }

    mutating func touch(_ touches: [(digest: EntryDigest, count: UInt32, second: UInt32)]) {
        for touch in touches { log?.touch(touch.digest, count: touch.count, at: touch.second) }
    }

    // MARK: Time

    mutating func tick(now: Instant, wall: Int64) {
        guard !isClosed else { return }
        lastTick = now
        noteFolded()
        if log == nil || retryAt != nil { return retry(now: now, wall: wall) }
        guard let log, let volume else { return }
        for lost in log.takeLost() { note(lost) }
        do throws(DiskFile.Failure) {
            try volume.check()
            allocatedBytes = volume.allocatedBytes()
            log.sweep(atMost: Self.sweptMax, now: wall)
            reviewMarks(now: now)
            marks.search(leastElsewhere: { log.leastStamp })
            try log.removeFormerMarks()
            guard now >= checkpointAt else { return }
            checkpointAt = now + settings.checkpointInterval
            try log.checkpoint()
        } catch {
            failed("\(error)")
        }
    }

    mutating func reviewMarks(now: Instant) {
        guard let log, !isClosed, retryAt == nil, now - reviewedAt >= MarkBook.reviewInterval
        else { return }
        reviewedAt = now
        marks.review(log.held)
    }

    private func noteFolded() {
        let folded = marks.takeFolded()
        if folded > 0 { note(.folded(marks: folded)) }
    }

    /// Looks whether the fault is gone.
    private mutating func retry(now: Instant, wall: Int64) {
        guard now >= retryAt ?? .zero else { return }
        do {
            if let volume, let log {
                do throws(DiskFile.Failure) { try volume.check() } catch {
                    // The directory is gone, and the log with it.
                    if error.isMissing { drop() }
                    throw error
                }
                try log.probe()
            } else {
                try begin(now: wall)
            }
            retryAt = nil
            note(.returned)
        } catch {
            figures.add(.failures)
            delayRetry()
        }
    }

    private mutating func drop() {
        log = nil
        volume = nil
        allocatedBytes = 0
    }

    /// From now on nothing is written until an attempt succeeds.
    private mutating func failed(_ why: String) {
        figures.add(.failures)
        if retryAt == nil { note(.failed(why: why)) }
        delayRetry()
    }

    /// An attempt that succeeded and was followed by another failure counts as none.
    private mutating func delayRetry() {
        retryAt = lastTick + retryAfter
        retryAfter = min(Self.retryMax, retryAfter + retryAfter)
    }
}
