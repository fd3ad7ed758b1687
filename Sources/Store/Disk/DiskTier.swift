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
package final class DiskTier: Sendable {
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
        package var journal: JournalRoom
        package var ageLimit: Interval
        /// Bytes that may wait to be written; an answer that is more may wait alone.
        package var queueBytesMax: Int
        /// How often accesses are written beside their records.
        package var checkpointInterval: Interval
        /// What is held against each record that is read for a request.
        package var fault: RecordFault = { _ in nil }
        /// What the directory's journal has of what was invalidated.
        package var marks: MarksReader = { _, _, _ in RecoveredMarks(table: MarkTable()) }

        package init(
            root: String, limitBytes: UInt64, objectBytesMax: UInt64,
            journal: JournalRoom = .none, ageLimit: Interval, queueBytesMax: Int,
            checkpointInterval: Interval
        ) {
            self.objectBytesMax = objectBytesMax
            self.journal = journal
            self.root = root
            self.limitBytes = limitBytes
            self.ageLimit = ageLimit
            self.queueBytesMax = queueBytesMax
            self.checkpointInterval = checkpointInterval
        }
    }

    package let settings: Settings
    /// What was invalidated, in memory as on disk.
    package let marks: MarkBook
    package let figures = DiskFigures()
    package let clock: DiskClock
    /// Threads that wait for the disk in place of event loops.
    package let readers: NIOThreadPool
    private let writer = NIOThreadPool(numberOfThreads: 1)
    private let work: Mutex<DiskWork>
    private let current = Mutex<(view: DiskView?, volume: (any DiskVolume)?)>((nil, nil))
    private let queuedBytes = Atomic<Int>(0)
    /// Answers that wait to be written: those that are found until then, and those that other
    /// nodes have kept.
    private let waiting = Mutex(
        (kept: [EntryName: Resident](), offered: [EntryName: [Resident]]()))
    private let queuedTouches = Atomic<Int>(0)
    private let lastTick = Atomic<Int64>(0)
    private let lastReview = Atomic<Int64>(0)
    private let isWritable = Atomic<Bool>(false)
    private let allocated = Atomic<UInt64>(0)
    private let segmentCounts = Mutex(SegmentLedger.Counts())

    /// Entries whose accesses may wait for a writer that waits for its disk.
    package static let touchesMax = 1 << 16
    /// How often the writer looks after faults, idle entries and checkpoints.
    private static let tick = Interval.seconds(1)

    /// A tier that is off until ``start(now:)``, and that writes the marks of a node.
    ///
    /// `note` is told what an operator should know, from any thread.
    package init(
        _ settings: Settings, marks: MarkBook, clock: DiskClock, readers: NIOThreadPool,
        note: @escaping @Sendable (DiskNote) -> Void
    ) {
        self.settings = settings
        self.clock = clock
        self.readers = readers
        self.marks = marks
        work = Mutex(DiskWork(settings, marks: marks, figures: figures, note: note))
        writer.start()
    }

    /// Takes over what the directory holds, or says why it cannot; returns when that is done.
    package func start(now: Instant) async {
        let wall = clock.wall(now)
        await run { $0.open(now: wall) }
    }

    /// Writes what waits, closes the log, and ends the threads.
    package func close() async {
        await run { $0.close() }
        try? await writer.shutdownGracefully()
    }

    /// Returns when readers see what has become of `job`.
    private func run(_ job: @escaping @Sendable (inout DiskWork) -> Void) async {
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
    package func keep(_ resident: Resident, now: Instant) {
        guard let name = resident.name, view != nil else { return }
        // What comes too late has replaced nothing.
        guard !isDead(resident) else { return figures.add(.droppedRecords) }
        // What has, and is not kept, must not leave the older answer to be found in its place: a
        // purge may have named what the newer one alone is tagged with.
        guard takeRoom(for: resident) else { return forget(name) }
        waiting.withLock { $0.kept[name] = resident }
        let wall = clock.wall(now)
        let record = resident.record(name, clock: clock, now: wall)
        let lease = marks.lease(of: resident.stamp)
        marks.whenKept(resident.stamp) { [self] isKept in
            submit { [self] work in
                // Not what was forgotten or replaced in the meantime, or is written by now.
                if waiting.withLock({ $0.kept[name] === resident }) {
                    let isStored =
                        isKept
                        && work.store(record, resident.body.chunks, now: wall) { index in
                            waiting.withLock { waiting in
                                guard waiting.kept[name] === resident else { return false }
                                index()
                                waiting.kept[name] = nil
                                return true
                            }
                        }
                    if !isStored {
                        work.forget(name)
                        waiting.withLock { if $0.kept[name] === resident { $0.kept[name] = nil } }
                    }
                }
                lease.end()
                giveBackRoom(of: resident)
            }
        }
    }

    /// The answer of this name that waits to be written: readers will not find it on disk before.
    ///
    /// It has to be held against the marks, as one that was read has; those are there until the
    /// lease ends, which is to be when the answer is where it is to be.
    package func waiting(_ name: EntryName) -> (resident: Resident, lease: StampLease)? {
        guard queued > 0 else { return nil }
        // Under the lock: the writer's own lease ends after it has taken the answer out.
        return waiting.withLock { waiting in
            waiting.kept[name].map { ($0, marks.lease(of: $0.stamp)) }
        }
    }

    /// An answer of this name waits to be written.
    package func isWaiting(_ name: EntryName) -> Bool {
        queued > 0 && waiting.withLock { $0.kept[name] != nil }
    }

    /// Keeps an answer that another node has kept until now, unless one as new is here; `done` is
    /// told, on any thread, whether it or the other one can be found now.
    ///
    /// The other node has last seen it used `idle` ago, and `touches` times.
    package func takeOver(
        _ resident: Resident, idle: Interval, touches: UInt32, now: Instant,
        done: @escaping @Sendable (Bool) -> Void
    ) {
        guard let name = resident.name, view != nil, takeRoom(for: resident) else {
            return done(false)
        }
        let wall = clock.wall(now)
        var record = resident.record(name, clock: clock, now: wall)
        record.lastAccess -= min(record.lastAccess, UInt32(clamping: idle.seconds))
        record.accessCount = UInt16(clamping: touches)
        let isKept = Mutex(false)
        waiting.withLock { $0.offered[name, default: []].append(resident) }
        let lease = marks.lease(of: resident.stamp)
        marks.whenKept(resident.stamp) { [self, record] mayBeKept in
            submit { [self, record] work in
                let isThere =
                    mayBeKept
                    && work.takeOver(record, resident.body.chunks, now: wall) { index in
                        waiting.withLock { waiting in
                            let isWanted = waiting.offered[name]?.contains { $0 === resident }
                            if isWanted == true { index() }
                            return isWanted == true
                        }
                    }
                waiting.withLock { waiting in
                    let others = waiting.offered[name]?.filter { $0 !== resident }
                    waiting.offered[name] = others?.isEmpty == false ? others : nil
                }
                lease.end()
                isKept.withLock { $0 = isThere }
                giveBackRoom(of: resident)
            } then: {
                done(isKept.withLock { $0 })
            }
        }
    }

    private func isDead(_ resident: Resident) -> Bool {
        marks.effect(
            onAnswer: resident.key, tags: resident.tags, stamp: resident.stamp) == .dead
    }

    private func takeRoom(for resident: Resident) -> Bool {
        let bytes = resident.overheadBytes + resident.body.capacityBytes
        let (before, after) = queuedBytes.add(bytes, ordering: .relaxed)
        if before == 0 || after <= settings.queueBytesMax { return true }
        queuedBytes.subtract(bytes, ordering: .relaxed)
        figures.add(.crowdedOutRecords)
        return false
    }

    private func giveBackRoom(of resident: Resident) {
        let bytes = resident.overheadBytes + resident.body.capacityBytes
        queuedBytes.subtract(bytes, ordering: .relaxed)
    }

    /// Forgets an entry that must not be used any more, though it is no secret: after a kill or a
    /// power failure it may be there again.
    ///
    /// From now on nobody finds it, wherever the writer is.
    package func forget(_ name: EntryName) {
        guard let view else { return }
        waiting.withLock { ($0.kept[name], $0.offered[name]) = (nil, nil) }
        view.forget(name.digest)
        // Behind what was to be kept before.
        marks.whenKept(.zero) { [self] _ in submit { $0.forget(name) } }
    }

    /// Takes over accesses: how many, and when last, in seconds since 1970; drops them if too many
    /// wait.
    package func touch(_ touches: [(digest: EntryDigest, count: UInt32, second: UInt32)]) {
        guard view != nil, !touches.isEmpty else { return }
        let count = touches.count
        guard queuedTouches.add(count, ordering: .relaxed).newValue <= Self.touchesMax else {
            queuedTouches.subtract(count, ordering: .relaxed)
            return figures.add(.touchesDropped, count)
        }
        submit { [self] work in
            work.touch(touches)
            queuedTouches.subtract(count, ordering: .relaxed)
        }
    }

    /// To be called several times a second.
    package func ticked(now: Instant) {
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
    /// To be called while they are ``MarkBook/isCrowded``; `now` is asked again when the writer
    /// comes to it.
    package func reviewMarks(now: @escaping @Sendable () -> Instant) {
        let (at, last) = (now().nanoseconds, lastReview.load(ordering: .relaxed))
        guard at - last >= MarkBook.reviewInterval.nanoseconds,
            lastReview.compareExchange(expected: last, desired: at, ordering: .relaxed).exchanged
        else { return }
        submit { $0.reviewMarks(now: now()) }
    }

    /// What sites may take of the disk from now on.
    package func adopt(_ shares: DiskShares) {
        submit { $0.adopt(shares) }
    }

    // MARK: Numbers

    /// Bytes that wait to be written.
    package var queued: Int { queuedBytes.load(ordering: .relaxed) }

    /// False while there is a fault, or no log.
    package var isUp: Bool { isWritable.load(ordering: .relaxed) }

    /// Bytes of all blocks below the node's directory, a second ago.
    package var allocatedBytes: UInt64 { allocated.load(ordering: .relaxed) }

    /// Segments by what they are; none while there is no log.
    package var segments: SegmentLedger.Counts { segmentCounts.withLock { $0 } }

    /// Has the writer do `job`; `then` runs when readers see what has become of it.
    private func submit(
        _ job: @escaping @Sendable (inout DiskWork) -> Void,
        then: @escaping @Sendable () -> Void = {}
    ) {
        writer.submit { [self] _ in
            let now = work.withLock { work -> (DiskView?, (any DiskVolume)?) in
                job(&work)
                isWritable.store(work.isUp, ordering: .relaxed)
                allocated.store(work.allocatedBytes, ordering: .relaxed)
                segmentCounts.withLock { $0 = work.segments }
                return (work.view, work.volume)
            }
            current.withLock { $0 = now }
            then()
        }
    }
}
