package import Ground
package import NIOPosix
import Synchronization
package import Tiers

/// The disk tier of a node: keeps answers, finds them again after a restart, and goes on whatever
/// becomes of the disk.
///
/// Everything that changes the disk is done by one thread, which nobody waits for: what is to be
/// kept stands in a bounded queue, in which readers find it, and is not kept when that is full.
/// Readers look into the page cache from their event loops and leave the rest to the disk threads.
///
/// When the disk fails, what is being written is lost, the operator is told once, and nothing is
/// written until a later attempt succeeds. When the directory is gone, the log is begun anew once
/// there can be one.
package final class DiskStore: Sendable {
    package struct Settings: Sendable {
        /// The directory that nodes share; each has one of its own below it.
        package var root: String
        /// What the operator calls the node; nil if he does not.
        package var nodeName: String?
        /// What everything in the node's directory takes at most.
        package var limitBytes: UInt64
        /// The largest body that may be stored.
        package var objectBytesMax: UInt64
        /// The part of it that the invalidation log has.
        package var journalSpace: JournalSpace
        package var ageLimit: Interval
        /// Bytes that may wait to be written; an answer that is more may wait alone.
        package var queueBytesMax: Int
        /// How often accesses are written beside their records.
        package var checkpointInterval: Interval
        /// What is held against each record that is read for a request.
        package var validation: RecordValidation = { _ in nil }
        /// What the directory's journal has of what was invalidated.
        package var markRecovery: MarkRecovery = { _, _, _ in RecoveredMarks(table: MarkTable()) }

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

    package let settings: Settings
    /// What was invalidated, in memory as on disk.
    package let marks: InvalidationIndex
    package let counters = DiskCounters()
    package let clock: DiskClock
    /// Threads that wait for the disk in place of event loops.
    package let readerThreads: NIOThreadPool
    private let writerThread = NIOThreadPool(numberOfThreads: 1)
    private let writerState: Mutex<DiskWriterState>
    private let current = Mutex<(view: DiskView?, volume: (any DiskVolume)?)>((nil, nil))
    private let queuedBytes = Atomic<Int>(0)
    /// Answers that wait to be written: those that are found until then, and those that other
    /// nodes have kept.
    private let pendingWrites = Mutex(
        (kept: [EntryName: MemoryEntry](), offered: [EntryName: [MemoryEntry]]()))
    private let queuedTouches = Atomic<Int>(0)
    private let lastTick = Atomic<Int64>(0)
    private let lastPruning = Atomic<Int64>(0)
    private let isWritable = Atomic<Bool>(false)
    private let allocated = Atomic<UInt64>(0)
    private let segmentCounts = Mutex(SegmentAllocator.Counts())

    /// Entries whose accesses may wait for a writer that waits for its disk.
    package static let touchesMax = 1 << 16
    /// How often the writer looks after faults, idle entries and checkpoints.
    private static let tick = Interval.seconds(1)

    /// A tier that is off until ``start(now:)``, and that writes the marks of a node.
    ///
    /// `note` is told what an operator should know, from any thread.
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

    /// Takes over what the directory holds, or says why it cannot; returns when that is done.
    package func start(now: Instant) async {
        let wall = clock.wall(now)
        await run { $0.open(now: wall) }
    }

    /// Writes what waits, closes the log, and ends the threads.
    package func close() async {
        await run { $0.close() }
        try? await writerThread.shutdownGracefully()
    }

    /// Returns when readers see what has become of `job`.
    private func run(_ job: @escaping @Sendable (inout DiskWriterState) -> Void) async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            submit(job) { done.resume() }
        }
    }

    // MARK: Readers

    /// The log as readers see it; nil while there is none.
    package var view: DiskView? { current.withLock { $0.view } }

    /// Where the log is; nil while there is none.
    package var volume: (any DiskVolume)? { current.withLock { $0.volume } }

    // MARK: Writers

    /// Keeps an answer, sooner or later, if there is room in the queue.
    package func enqueueWrite(_ entry: MemoryEntry, now: Instant) {
        guard let name = entry.name, view != nil else { return }
        // What comes too late has replaced nothing.
        guard !isPurged(entry) else { return counters.add(.droppedRecords) }
        // What has, and is not kept, must not leave the older answer to be found in its place: a
        // purge may have named what the newer one alone is tagged with.
        guard reserveQueueSpace(for: entry) else { return forget(name) }
        pendingWrites.withLock { $0.kept[name] = entry }
        let wall = clock.wall(now)
        let record = entry.record(name, clock: clock, now: wall)
        let lease = marks.pin(of: entry.version)
        marks.whenJournaled(entry.version) { [self] isKept in
            submit { [self] work in
                // Not what was forgotten or replaced in the meantime, or is written by now.
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

    /// The answer of this name that waits to be written: readers will not find it on disk before.
    ///
    /// It has to be held against the marks, as one that was read has; those are there until the
    /// lease ends, which is to be when the answer is where it is to be.
    package func pendingWrite(_ name: EntryName) -> (entry: MemoryEntry, lease: VersionPin)? {
        guard pendingBytes > 0 else { return nil }
        // Under the lock: the writer's own lease ends after it has taken the answer out.
        return pendingWrites.withLock { waiting in
            waiting.kept[name].map { ($0, marks.pin(of: $0.version)) }
        }
    }

    /// An answer of this name waits to be written.
    package func hasPendingWrite(_ name: EntryName) -> Bool {
        pendingBytes > 0 && pendingWrites.withLock { $0.kept[name] != nil }
    }

    /// Keeps an answer that another node has kept until now, unless one as new is here; `done` is
    /// told, on any thread, whether it or the other one can be found now.
    ///
    /// The other node has last seen it used `idle` ago, and `touches` times.
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

    private func isPurged(_ entry: MemoryEntry) -> Bool {
        marks.effect(
            onResponse: entry.key, tags: entry.tags, version: entry.version) == .purged
    }

    private func reserveQueueSpace(for entry: MemoryEntry) -> Bool {
        let bytes = entry.overheadBytes + entry.body.capacityBytes
        let (before, after) = queuedBytes.add(bytes, ordering: .relaxed)
        if before == 0 || after <= settings.queueBytesMax { return true }
        queuedBytes.subtract(bytes, ordering: .relaxed)
        counters.add(.queueOverflowRecords)
        return false
    }

    private func releaseQueueSpace(of entry: MemoryEntry) {
        let bytes = entry.overheadBytes + entry.body.capacityBytes
        queuedBytes.subtract(bytes, ordering: .relaxed)
    }

    /// Forgets an entry that must not be used any more, though it is no secret: after a kill or a
    /// power failure it may be there again.
    ///
    /// From now on nobody finds it, wherever the writer is.
    package func forget(_ name: EntryName) {
        guard let view else { return }
        pendingWrites.withLock { ($0.kept[name], $0.offered[name]) = (nil, nil) }
        view.forget(name.digest)
        // Behind what was to be kept before.
        marks.whenJournaled(.zero) { [self] _ in submit { $0.forget(name) } }
    }

    /// Takes over accesses: how many, and when last, in seconds since 1970; drops them if too many
    /// wait.
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

    /// To be called several times a second.
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

    /// Lets marks go of what is not stored, sooner than a tick would.
    ///
    /// To be called while they are ``InvalidationIndex/isCrowded``; `now` is asked again when the
    /// writer comes to it.
    package func pruneUnmatchedMarks(now: @escaping @Sendable () -> Instant) {
        let (at, last) = (now().nanoseconds, lastPruning.load(ordering: .relaxed))
        guard at - last >= InvalidationIndex.pruneInterval.nanoseconds,
            lastPruning.compareExchange(expected: last, desired: at, ordering: .relaxed).exchanged
        else { return }
        submit { $0.pruneUnmatchedMarks(now: now()) }
    }

    /// What sites may take of the disk from now on.
    package func setShareLimits(_ shares: DiskShareLimits) {
        submit { $0.setShareLimits(shares) }
    }

    // MARK: Numbers

    /// Bytes that wait to be written.
    package var pendingBytes: Int { queuedBytes.load(ordering: .relaxed) }

    /// False while there is a fault, or no log.
    package var isAvailable: Bool { isWritable.load(ordering: .relaxed) }

    /// Bytes of all blocks below the node's directory, a second ago.
    package var allocatedBytes: UInt64 { allocated.load(ordering: .relaxed) }

    /// Segments by what they are; none while there is no log.
    package var segments: SegmentAllocator.Counts { segmentCounts.withLock { $0 } }

    /// Has the writer do `job`; `then` runs when readers see what has become of it.
    private func submit(
        _ job: @escaping @Sendable (inout DiskWriterState) -> Void,
        then: @escaping @Sendable () -> Void = {}
    ) {
        writerThread.submit { [self] _ in
            let now = writerState.withLock { work -> (DiskView?, (any DiskVolume)?) in
                job(&work)
                isWritable.store(work.isAvailable, ordering: .relaxed)
                allocated.store(work.allocatedBytes, ordering: .relaxed)
                segmentCounts.withLock { $0 = work.segments }
                return (work.view, work.volume)
            }
            current.withLock { $0 = now }
            then()
        }
    }
}
