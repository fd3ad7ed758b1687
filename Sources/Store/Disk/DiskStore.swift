package import Ground
package import NIOPosix
import Synchronization
package import Tiers

/// The disk tier of a node: stores responses, finds them again after a restart, and survives disk
/// faults.
///
/// One thread, which no caller waits for, makes all changes to the disk. Responses to be written
/// wait in a bounded queue, where readers can find them; when the queue is full they are dropped.
/// Readers check the page cache from their event loops and leave other reads to the disk threads.
///
/// When the disk fails, the data being written is lost, the operator is notified once, and nothing
/// is written until a later attempt succeeds. If the directory has disappeared, the log is
/// recreated once that is possible.
package final class DiskStore: Sendable {
    /// Settings of a ``DiskStore``.
    package struct Settings: Sendable {
        /// The directory that nodes may share; each node uses its own directory below it.
        package var root: String
        /// The operator's name for the node; `nil` if there is none.
        package var nodeName: String?
        /// Maximum bytes of everything in the node's directory.
        package var limitBytes: UInt64
        /// Maximum size of a stored body in bytes.
        package var objectBytesMax: UInt64
        /// The part of the limit that the invalidation log uses.
        package var journalSpace: JournalSpace
        /// Time after which an entry that was not requested expires.
        package var ageLimit: Interval
        /// Maximum bytes that wait to be written; a single larger response may wait alone.
        package var queueBytesMax: Int
        /// Interval at which access counts are written to the segments' footers.
        package var checkpointInterval: Interval
        /// An additional check of each record that is read for a request.
        package var validation: RecordValidation = { _ in nil }
        /// Reads the invalidations that the directory's journal contains.
        package var markRecovery: MarkRecovery = { _, _, _ in RecoveredMarks(table: MarkTable()) }

        /// Creates settings from their parts, without a record check and without a journal.
        package init(
            root: String, limitBytes: UInt64, objectBytesMax: UInt64,
            journalSpace: JournalSpace = .none, ageLimit: Interval, queueBytesMax: Int,
            checkpointInterval: Interval
        ) {
            self.objectBytesMax = objectBytesMax
            self.journalSpace = journalSpace
            self.root = root
            self.limitBytes = limitBytes
            self.ageLimit = ageLimit
            self.queueBytesMax = queueBytesMax
            self.checkpointInterval = checkpointInterval
        }
    }

    /// The settings of the tier.
    package let settings: Settings
    /// The invalidations of the node, shared by memory and disk.
    package let marks: InvalidationIndex
    /// The counters of the tier.
    package let counters = DiskCounters()
    /// Converts between the boot clock and wall time.
    package let clock: DiskClock
    /// Threads that may block on disk reads, in place of event loops.
    package let readerThreads: NIOThreadPool
    private let writerThread = NIOThreadPool(numberOfThreads: 1)
    private let writerState: Mutex<DiskWriterState>
    /// What the writer shows to other threads.
    private typealias State = (view: DiskView?, volume: (any DiskVolume)?, fault: DiskFault?)
    private let current = Mutex<State>((nil, nil, nil))
    private let queuedBytes = Atomic<Int>(0)
    /// Responses that wait to be written: those that readers can find meanwhile, and handoffs from
    /// other nodes, which they cannot.
    private let pendingWrites = Mutex(
        (kept: [EntryName: MemoryEntry](), offered: [EntryName: [MemoryEntry]]()))
    private let queuedTouches = Atomic<Int>(0)
    private let lastTick = Atomic<Int64>(0)
    private let lastPruning = Atomic<Int64>(0)
    private let isWritable = Atomic<Bool>(false)
    private let allocated = Atomic<UInt64>(0)
    private let segmentCounts = Mutex(SegmentAllocator.Counts())

    /// Maximum number of entries whose accesses wait for a writer that is blocked on its disk.
    package static let touchesMax = 1 << 16
    /// Interval at which the writer checks for faults, idle entries and checkpoints.
    private static let tick = Interval.seconds(1)

    /// Creates a tier that is off until ``start(now:)``, and starts its writer thread.
    ///
    /// - Parameters:
    ///   - settings: the settings of the tier.
    ///   - marks: the invalidations of the node.
    ///   - clock: converts between the boot clock and wall time.
    ///   - readers: threads that may block.
    ///   - onEvent: receives events for the operator, on any thread.
    package init(
        _ settings: Settings, marks: InvalidationIndex, clock: DiskClock, readers: NIOThreadPool,
        onEvent: @escaping @Sendable (DiskEvent) -> Void
    ) {
        self.settings = settings
        self.clock = clock
        self.readerThreads = readers
        self.marks = marks
        writerState = Mutex(
            DiskWriterState(settings, marks: marks, figures: counters, onEvent: onEvent))
        writerThread.start()
    }

    /// Opens the log in the directory, or reports why it cannot; returns when that is done.
    package func start(now: Instant) async {
        let wall = clock.wall(now)
        await run { $0.open(now: wall) }
    }

    /// Writes the queue, closes the log, and stops the writer thread.
    package func close() async {
        await run { $0.close() }
        try? await writerThread.shutdownGracefully()
    }

    /// Runs `job` on the writer thread; returns when readers see its effects.
    private func run(_ job: @escaping @Sendable (inout DiskWriterState) -> Void) async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            submit(job) { done.resume() }
        }
    }

    // MARK: Readers

    /// The log as readers use it; `nil` while there is none.
    package var view: DiskView? { current.withLock { $0.view } }

    /// The volume of the log; `nil` while there is none.
    package var volume: (any DiskVolume)? { current.withLock { $0.volume } }

    // MARK: Writers

    /// Enqueues a response to be written once the journal has the invalidations before it; readers
    /// find it meanwhile.
    ///
    /// It is dropped if there is no log, or if it was purged. If the queue is full, it is dropped
    /// as well, and an older response of the entry is forgotten.
    package func enqueueWrite(_ entry: MemoryEntry, now: Instant) {
        guard let name = entry.name, view != nil else { return }
        // A response that was purged on arrival has replaced nothing.
        guard !isPurged(entry) else { return counters.add(.droppedRecords) }
        // One that has replaced an entry and is dropped must not expose the older response: a purge
        // may have named a tag of the newer one only.
        guard reserveQueueSpace(for: entry) else { return forget(name) }
        pendingWrites.withLock { $0.kept[name] = entry }
        let wall = clock.wall(now)
        let record = entry.record(name, clock: clock, now: wall)
        let lease = marks.pin(of: entry.version)
        marks.whenJournaled(entry.version) { [self] isKept in
            submit { [self] work in
                // Not if it was forgotten, replaced or written meanwhile.
                if pendingWrites.withLock({ $0.kept[name] === entry }) {
                    let isStored =
                        isKept
                        && work.store(record, entry.body.chunks, now: wall) { index in
                            pendingWrites.withLock { waiting in
                                guard waiting.kept[name] === entry else { return false }
                                index()
                                waiting.kept[name] = nil
                                return true
                            }
                        }
                    if !isStored {
                        work.forget(name)
                        pendingWrites.withLock {
                            if $0.kept[name] === entry { $0.kept[name] = nil }
                        }
                    }
                }
                lease.release()
                releaseQueueSpace(of: entry)
            }
        }
    }

    /// Returns the response of this name that waits to be written; until then, readers do not find
    /// it on disk.
    ///
    /// The caller checks it against the marks, as with one read from disk. The pin keeps those
    /// marks until it is released, which must be after the response has reached its destination.
    package func pendingWrite(_ name: EntryName) -> (entry: MemoryEntry, lease: VersionPin)? {
        guard pendingBytes > 0 else { return nil }
        // Under the lock: the writer releases its own pin after it has removed the response.
        return pendingWrites.withLock { waiting in
            waiting.kept[name].map { ($0, marks.pin(of: $0.version)) }
        }
    }

    /// Returns true if a response of this name waits to be written.
    package func hasPendingWrite(_ name: EntryName) -> Bool {
        pendingBytes > 0 && pendingWrites.withLock { $0.kept[name] != nil }
    }

    /// Stores a response that another node has handed off, unless one at least as new is stored
    /// here.
    ///
    /// - Parameters:
    ///   - entry: the response.
    ///   - idle: the time since its last access on the other node.
    ///   - touches: the number of its accesses there.
    ///   - now: the boot clock.
    ///   - done: receives, on any thread, whether this response or a newer one is stored.
    package func enqueueHandoff(
        _ entry: MemoryEntry, idle: Interval, touches: UInt32, now: Instant,
        done: @escaping @Sendable (Bool) -> Void
    ) {
        guard let name = entry.name, view != nil, reserveQueueSpace(for: entry) else {
            return done(false)
        }
        let wall = clock.wall(now)
        var record = entry.record(name, clock: clock, now: wall)
        record.lastAccess -= min(record.lastAccess, UInt32(clamping: idle.seconds))
        record.accessCount = UInt16(clamping: touches)
        let isKept = Mutex(false)
        pendingWrites.withLock { $0.offered[name, default: []].append(entry) }
        let lease = marks.pin(of: entry.version)
        marks.whenJournaled(entry.version) { [self, record] mayBeKept in
            submit { [self, record] work in
                let isThere =
                    mayBeKept
                    && work.storeHandoff(record, entry.body.chunks, now: wall) { index in
                        pendingWrites.withLock { waiting in
                            let isWanted = waiting.offered[name]?.contains { $0 === entry }
                            if isWanted == true { index() }
                            return isWanted == true
                        }
                    }
                pendingWrites.withLock { waiting in
                    let others = waiting.offered[name]?.filter { $0 !== entry }
                    waiting.offered[name] = others?.isEmpty == false ? others : nil
                }
                lease.release()
                isKept.withLock { $0 = isThere }
                releaseQueueSpace(of: entry)
            } then: {
                done(isKept.withLock { $0 })
            }
        }
    }

    /// Returns true if the response is purged, or if marks that may cover it have been removed.
    private func isPurged(_ entry: MemoryEntry) -> Bool {
        marks.effect(
            onResponse: entry.key, tags: entry.tags, version: entry.version) == .purged
    }

    /// Counts a response as queued; false, counted as an overflow, if the queue is full.
    ///
    /// An empty queue accepts any size.
    private func reserveQueueSpace(for entry: MemoryEntry) -> Bool {
        let bytes = entry.overheadBytes + entry.body.capacityBytes
        let (before, after) = queuedBytes.add(bytes, ordering: .relaxed)
        if before == 0 || after <= settings.queueBytesMax { return true }
        queuedBytes.subtract(bytes, ordering: .relaxed)
        counters.add(.queueOverflowRecords)
        return false
    }

    /// Counts a response as no longer queued.
    private func releaseQueueSpace(of entry: MemoryEntry) {
        let bytes = entry.overheadBytes + entry.body.capacityBytes
        queuedBytes.subtract(bytes, ordering: .relaxed)
    }

    /// Removes an entry that must no longer be used, and its waiting writes; not secure deletion,
    /// since a crash or a power failure may bring it back.
    ///
    /// When the call returns, no reader finds it, regardless of the writer's progress. Without
    /// effect while there is no log.
    package func forget(_ name: EntryName) {
        guard let view else { return }
        pendingWrites.withLock { ($0.kept[name], $0.offered[name]) = (nil, nil) }
        view.forget(name.digest)
        // Ordered after pending writes of the same name.
        marks.whenJournaled(.zero) { [self] _ in submit { $0.forget(name) } }
    }

    /// Enqueues accesses for the index: the count, and the second of the last one since 1970.
    ///
    /// Dropped if more than ``touchesMax`` wait, or while there is no log.
    package func touch(_ touches: [(digest: EntryDigest, count: UInt32, second: UInt32)]) {
        guard view != nil, !touches.isEmpty else { return }
        let count = touches.count
        guard queuedTouches.add(count, ordering: .relaxed).newValue <= Self.touchesMax else {
            queuedTouches.subtract(count, ordering: .relaxed)
            return counters.add(.touchesDropped, count)
        }
        submit { [self] work in
            work.touch(touches)
            queuedTouches.subtract(count, ordering: .relaxed)
        }
    }

    /// Starts periodic work on the writer thread at most once a second; call it several times a
    /// second.
    package func tick(now: Instant) {
        let last = lastTick.load(ordering: .relaxed)
        guard now.nanoseconds - last >= Self.tick.nanoseconds,
            lastTick.compareExchange(
                expected: last, desired: now.nanoseconds, ordering: .relaxed
            ).exchanged
        else { return }
        let wall = clock.wall(now)
        submit { $0.tick(now: now, wall: wall) }
    }

    /// Drops marks that match no stored entry, earlier than the next tick would; without effect
    /// within 100 ms of the last call.
    ///
    /// Call it while ``InvalidationIndex/needsPruning`` is true; `now` is read again when the
    /// writer runs.
    package func pruneUnmatchedMarks(now: @escaping @Sendable () -> Instant) {
        let (at, last) = (now().nanoseconds, lastPruning.load(ordering: .relaxed))
        guard at - last >= InvalidationIndex.pruneInterval.nanoseconds,
            lastPruning.compareExchange(expected: last, desired: at, ordering: .relaxed).exchanged
        else { return }
        submit { $0.pruneUnmatchedMarks(now: now()) }
    }

    /// Sets the limits of sites on disk, on the writer thread; see ``DiskLog/setShareLimits(_:)``.
    package func setShareLimits(_ shares: DiskShareLimits) {
        submit { $0.setShareLimits(shares) }
    }

    // MARK: Statistics

    /// Bytes that wait to be written.
    package var pendingBytes: Int { queuedBytes.load(ordering: .relaxed) }

    /// False during a fault, and while there is no log.
    package var isAvailable: Bool { isWritable.load(ordering: .relaxed) }

    /// The fault that keeps the tier off; `nil` without one.
    package var fault: DiskFault? { current.withLock { $0.fault } }

    /// Bytes of all blocks in the node's directory, as of the last tick.
    package var allocatedBytes: UInt64 { allocated.load(ordering: .relaxed) }

    /// Number of segments by state; all 0 while there is no log.
    package var segments: SegmentAllocator.Counts { segmentCounts.withLock { $0 } }

    /// Runs `job` on the writer thread, then `then` once readers see its effects.
    private func submit(
        _ job: @escaping @Sendable (inout DiskWriterState) -> Void,
        then: @escaping @Sendable () -> Void = {}
    ) {
        writerThread.submit { [self] _ in
            let now = writerState.withLock { work -> State in
                job(&work)
                isWritable.store(work.isAvailable, ordering: .relaxed)
                allocated.store(work.allocatedBytes, ordering: .relaxed)
                segmentCounts.withLock { $0 = work.segments }
                return (work.view, work.volume, work.fault)
            }
            current.withLock { $0 = now }
            then()
        }
    }
}
