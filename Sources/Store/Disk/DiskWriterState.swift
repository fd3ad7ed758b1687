import Glibc
import Ground
import NIOCore
import Tiers

/// The state of the writer thread of a ``DiskStore``: the log, or the fault that prevents one.
struct DiskWriterState: ~Copyable {
    private let settings: DiskStore.Settings
    private let counters: DiskCounters
    private let marks: InvalidationIndex
    private let onEvent: @Sendable (DiskEvent) -> Void
    private(set) var volume: NodeDirectory?
    private var log: DiskLog?
    /// When the next attempt is due; `nil` without a fault.
    private var retryAt: Instant?
    private var retryAfter = Self.retryMin
    /// When the last tick was, from which delays count.
    private var lastTick = Instant.zero
    /// When unmatched marks were last pruned.
    private var prunedAt = Instant.zero
    private var checkpointAt = Instant.zero
    private var isClosed = false
    private var shares = DiskShareLimits()

    /// Delay before the first attempt to end a fault.
    private static let retryMin = Interval.seconds(1)
    /// Maximum delay between two attempts.
    private static let retryMax = Interval.seconds(30)
    /// Maximum number of entries checked against the age limit per tick.
    private static let expiryScanMax = 20_000

    init(
        _ settings: DiskStore.Settings, marks: InvalidationIndex, figures: DiskCounters,
        onEvent: @escaping @Sendable (DiskEvent) -> Void
    ) {
        self.settings = settings
        self.marks = marks
        self.counters = figures
        self.onEvent = onEvent
    }

    var view: DiskView? { log?.view }
    var isAvailable: Bool { log != nil && retryAt == nil }
    var segments: SegmentAllocator.Counts { log?.segmentCounts ?? SegmentAllocator.Counts() }
    /// Bytes of all blocks, as of the last tick.
    private(set) var allocatedBytes: UInt64 = 0
    /// The fault that keeps the tier off; `nil` without one.
    private(set) var fault: DiskFault?

    // MARK: Lifetime of the log

    /// Opens the directory and its log; records a fault if that fails.
    mutating func open(now wall: Int64) {
        do { try openLog(now: wall) } catch { recordFailure(error) }
    }

    /// Claims a directory and opens its log, with the marks and limits of the node.
    private mutating func openLog(now wall: Int64) throws {
        var random = SystemRandomNumberGenerator()
        var plan: DiskPlan?
        let limit = settings.limitBytes - settings.journalSpace.bytes
        let directory = try NodeDirectory(
            below: settings.root,
            newID: { NodeID(named: settings.nodeName, in: $0, using: &random) },
            formerEpoch: marks.version.epoch, wall: wall
        ) { former in
            // The configuration loader has refused a limit that is too small.
            let made = try? DiskPlan(
                limitBytes: limit, otherBytes: settings.journalSpace.bytes,
                objectBytesMax: settings.objectBytesMax, formerSegmentBytes: former)
            guard let made else {
                preconditionFailure("a disk limit of \(limit)")
            }
            plan = made
            return UInt64(made.segmentBytes)
        }
        guard let plan else { return }
        if let damage = directory.identityDamage {
            onEvent(.fileDiscarded(file: "identity", why: "\(damage)"))
        }
        var logSettings = DiskLog.Settings(
            plan: plan, ageLimit: settings.ageLimit,
            keys: (random.next(), random.next()), random: SplitMix64(seed: random.next()))
        logSettings.validation = settings.validation
        logSettings.markRecovery = settings.markRecovery
        log = try DiskLog.open(
            directory, logSettings,
            directory.identity, marks: marks, counters: counters, formerWall: directory.formerWall,
            now: wall,
            onEvent: onEvent)
        log?.setShareLimits(shares)
        volume = directory
        allocatedBytes = directory.allocatedBytes()
    }

    /// Closes the log for good, after reporting lost records.
    mutating func close() {
        isClosed = true
        reportFoldedMarks()
        // Entries removed from the index must not be listed in the footers.
        for lost in log?.takeRemoved() ?? [] { onEvent(lost) }
        do { try log?.close() } catch { onEvent(.storeFailed(why: "\(error)")) }
        log = nil
        volume = nil
    }

    // MARK: Work

    /// Stores a response; true if it is written and indexed; see
    /// ``DiskLog/store(_:body:now:commit:)``.
    mutating func store(
        _ record: DiskRecord, _ body: [ByteBuffer], now: Int64, commit: DiskLog.Commit
    ) -> Bool {
        guard let log, retryAt == nil else {
            counters.add(.droppedRecords)
            return false
        }
        do throws(DiskFile.Failure) {
            let isWritten = try log.store(record, body: body, now: now, commit: commit) == .written
            if !isWritten { counters.add(.droppedRecords) }
            retryAfter = Self.retryMin
            return isWritten
        } catch {
            counters.add(.droppedRecords)
            recordFailure(error)
            return false
        }
    }

    /// Stores a response unless one at least as new is stored; true if either is stored.
    mutating func storeHandoff(
        _ record: DiskRecord, _ body: [ByteBuffer], now: Int64, commit: DiskLog.Commit
    ) -> Bool {
        let held = view?.read(digest: record.name.digest)
        if let held, held.record.times.date >= record.times.date { return true }
        return store(record, body, now: now, commit: commit)
    }

    /// Sets the limits of sites, also for a log that is opened later.
    mutating func setShareLimits(_ shares: DiskShareLimits) {
        self.shares = shares
        log?.setShareLimits(shares)
    }

    /// Removes an entry from the log, after processing the records that readers have removed.
    mutating func forget(_ name: EntryName) {
        for lost in log?.takeRemoved() ?? [] { onEvent(lost) }
        log?.forget(name)
    }

    mutating func touch(_ touches: [(digest: EntryDigest, count: UInt32, second: UInt32)]) {
        for touch in touches { log?.touch(touch.digest, count: touch.count, at: touch.second) }
    }

    // MARK: Time

    /// Performs periodic work: attempts to end a fault; otherwise checks the directory, expires
    /// idle entries, drops marks that cover nothing, and writes a checkpoint if one is due.
    mutating func tick(now: Instant, wall: Int64) {
        guard !isClosed else { return }
        lastTick = now
        reportFoldedMarks()
        if log == nil || retryAt != nil { return retry(now: now, wall: wall) }
        guard let log, let volume else { return }
        for lost in log.takeRemoved() { onEvent(lost) }
        do throws(DiskFile.Failure) {
            try volume.check()
            allocatedBytes = volume.allocatedBytes()
            log.expireIdleEntries(atMost: Self.expiryScanMax, now: wall)
            pruneUnmatchedMarks(now: now)
            marks.pruneObsoleteMarks(leastVersionOnDisk: { log.leastVersion })
            log.removeLegacyMarkFiles()
            guard now >= checkpointAt else { return }
            checkpointAt = now + settings.checkpointInterval
            try log.checkpoint()
        } catch {
            recordFailure(error)
        }
    }

    /// Drops marks that match no stored entry; without effect during a fault, and within 100 ms of
    /// the last time.
    mutating func pruneUnmatchedMarks(now: Instant) {
        guard let log, !isClosed, retryAt == nil, now - prunedAt >= InvalidationIndex.pruneInterval
        else { return }
        prunedAt = now
        marks.pruneUnmatchedMarks(log.fingerprintsOnDisk)
    }

    /// Reports the marks folded since the last call because there were too many, if any.
    private func reportFoldedMarks() {
        let folded = marks.takeFoldedCount()
        if folded > 0 { onEvent(.marksFolded(marks: folded)) }
    }

    /// Tests, when an attempt is due, whether the fault has ended, or opens the log if there is
    /// none.
    ///
    /// The log is dropped if its directory has disappeared.
    private mutating func retry(now: Instant, wall: Int64) {
        guard now >= retryAt ?? .zero else { return }
        do {
            if let volume, let log {
                do throws(DiskFile.Failure) { try volume.check() } catch {
                    // The directory has disappeared, and the log with it.
                    if error.isMissing { discardLog() }
                    throw error
                }
                try log.probe()
            } else {
                try openLog(now: wall)
            }
            retryAt = nil
            fault = nil
            onEvent(.storeRecovered)
        } catch {
            fault = DiskFault(error)
            counters.add(.failures)
            delayRetry()
        }
    }

    /// Drops the log without writing to it, because its directory has disappeared.
    private mutating func discardLog() {
        log = nil
        volume = nil
        allocatedBytes = 0
    }

    /// Records a fault; nothing is written until an attempt succeeds.
    private mutating func recordFailure(_ error: any Error) {
        fault = DiskFault(error)
        counters.add(.failures)
        if retryAt == nil { onEvent(.storeFailed(why: "\(error)")) }
        delayRetry()
    }

    /// Schedules the next attempt; the delay doubles up to a maximum, and is reset only by a
    /// successful write.
    private mutating func delayRetry() {
        retryAt = lastTick + retryAfter
        retryAfter = min(Self.retryMax, retryAfter + retryAfter)
    }
}

/// The fault that keeps the disk tier off.
package struct DiskFault: Hashable, Sendable {
    /// The failed call and its reason.
    package let why: String
    /// True if the file system has no space left for this process, or is read-only.
    package let refusesWrites: Bool

    /// Creates the fault that `error` shows.
    init(_ error: any Error) {
        why = "\(error)"
        refusesWrites = (error as? DiskFile.Failure)?.refusesWrites ?? false
    }
}

/// An event of the disk tier for the operator; each is one log line.
package enum DiskEvent: Hashable, Sendable {
    /// A log was opened; `scanned` of its segments had no valid footer.
    case logOpened(path: String, entries: Int, segments: Int, scanned: Int)
    /// A file is unusable and will be overwritten.
    case fileDiscarded(file: String, why: String)
    /// Records at these offsets of the file failed their checks; the others are kept.
    case recordsCorrupt(file: String, offsets: [UInt64])
    /// A record that was requested is lost.
    case recordLost(file: String, offset: Int, why: String)
    /// Every entry is revalidated once.
    case revalidationRequired(why: String)
    /// This many invalidations exceeded the limit and were folded into one, which covers everything
    /// older than the latest of them.
    case marksFolded(marks: Int)
    /// The tier is off until it can be used again.
    case storeFailed(why: String)
    /// The tier can be used again.
    case storeRecovered

    /// The constant message of the log line.
    package var message: String {
        switch self {
        case .logOpened: "disk log opened"
        case .fileDiscarded: "a file of the disk log is ignored"
        case .recordsCorrupt: "records on disk are lost: checksum mismatch"
        case .recordLost: "a record on disk is lost"
        case .revalidationRequired: "every entry on disk is revalidated once"
        case .marksFolded:
            "too many invalidations: entries older than half of them are revalidated once"
        case .storeFailed: "the disk tier is off until the fault clears"
        case .storeRecovered: "the disk tier is back"
        }
    }

    /// The text fields of the log line.
    package var fields: [String: String] {
        switch self {
        case .logOpened(let path, _, _, _): ["path": path]
        case .fileDiscarded(let file, let why): ["file": file, "why": why]
        case .recordsCorrupt(let file, let offsets):
            ["file": file, "offsets": offsets.prefix(16).map(String.init).joined(separator: ",")]
        case .recordLost(let file, _, let why): ["file": file, "why": why]
        case .revalidationRequired(let why), .storeFailed(let why): ["why": why]
        case .marksFolded, .storeRecovered: [:]
        }
    }

    /// The numeric fields of the log line.
    package var numericFields: [String: Int] {
        switch self {
        case .logOpened(_, let entries, let segments, let scanned):
            ["entries": entries, "segments": segments, "scanned": scanned]
        case .recordsCorrupt(_, let offsets): ["records": offsets.count]
        case .recordLost(_, let offset, _): ["offset": offset]
        case .marksFolded(let marks): ["marks": marks]
        case .fileDiscarded, .revalidationRequired, .storeFailed, .storeRecovered: [:]
        }
    }

    /// True if an operator may have to act.
    package var isWarning: Bool {
        switch self {
        case .logOpened, .storeRecovered: false
        case .fileDiscarded, .recordsCorrupt, .recordLost, .revalidationRequired, .marksFolded,
            .storeFailed:
            true
        }
    }
}
