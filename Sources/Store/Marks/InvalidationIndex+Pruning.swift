package import Ground
import Synchronization
import Tiers

/// What is held and on its way, and the marks that it leaves nothing to cover.
extension InvalidationIndex {
    /// The stamp of a request that begins now, held until its answer is where it is to be.
    package func pin() -> VersionPin {
        state.withLock { state in
            state.pins.insert(state.version)
            return VersionPin(state.version, self)
        }
    }

    /// Holds an answer's stamp while it is on its way from one place to another.
    func pin(of version: InvalidationVersion) -> VersionPin {
        state.withLock { $0.pins.insert(version) }
        return VersionPin(version, self)
    }

    fileprivate func unpin(_ lease: VersionPin) {
        state.withLock { $0.pins.remove(lease.version) }
    }

    /// Entries that are held against this book are in `memory`, of which it is told once.
    func attachMemory(_ memory: MemoryContents) {
        state.withLock { $0.memory = memory }
    }

    /// Nothing in memory, and nothing on its way there or to the disk, is stamped before this; to
    /// be asked by one thread at a time, for it looks at every entry.
    ///
    /// It is enough that this was so at one moment: from then on only later stamps are given, and
    /// what moves keeps its own. First it is looked who is on the way, then at every place in
    /// memory. What was put in since the look at its shard began is counted wherever it stands.
    /// What was put in before, by somebody who has ended his lease, is seen; what is put in later,
    /// by somebody who had one, or who began later, is not older.
    ///
    /// What is read from disk is held against the marks at that moment, and comes into memory under
    /// the lease of the one who reads it, with that stamp.
    package func leastStoredVersion() -> InvalidationVersion {
        var sweep = OldestVersionScan(self)
        while true {
            if let least = sweep.next(atMost: MarkPruning.entriesPerLockMax) { return least }
        }
    }

    /// Looks a little further for marks that can be dropped.
    ///
    /// To be called several times a second by one thread at a time. `heldElsewhere` is asked which
    /// of some names, ascending and of no entry in memory, may be there, and `leastElsewhere`, when
    /// everything here was looked at, what nothing there is stamped before. What has come there
    /// since was leased.
    package func pruneMarks(
        leastVersionOnDisk: () -> InvalidationVersion,
        fingerprintsOnDisk: (_ names: [UInt32]) -> Set<UInt32>
    ) {
        pruneUnmatchedMarks(fingerprintsOnDisk)
        pruneObsoleteMarks(leastVersionOnDisk: leastVersionOnDisk)
    }

    /// The part of it that looks at everything that is held, piece by piece.
    func pruneObsoleteMarks(leastVersionOnDisk: () -> InvalidationVersion) {
        let (count, marksMax) = state.withLock { ($0.table.count, $0.marksMax) }
        pruning.withLock { search in
            guard let least = search.next(self, count: count, marksMax: marksMax) else { return }
            search.finish(count: foldMarks(upTo: min(least, leastVersionOnDisk())))
        }
    }

    /// Young marks beyond that do not wait for the requests that are under way: what comes of those
    /// is kept nowhere.
    static let unconfirmedMax = 1 << 17
    /// Marks that are forgotten under one lock.
    private static let prunedPerLockMax = 256

    /// So many marks wait for a review that ``review(_:)`` is not to wait for the next tick.
    package var needsPruning: Bool { hasExcessMarks.load(ordering: .relaxed) }

    /// Between two reviews, at the least.
    static let pruneInterval = Interval.milliseconds(100)

    /// Lets marks go of URLs that nothing can be held of; see ``UnconfirmedMarks``.
    ///
    /// By the thread that ticks, to which `heldElsewhere` is the same. Those since the last review
    /// but one stay, so that what looks an entry up, and takes its lease then, finds what was
    /// invalidated between.
    func pruneUnmatchedMarks(_ heldElsewhere: ([UInt32]) -> Set<UInt32>) {
        hasExcessMarks.store(false, ordering: .relaxed)
        let (due, memory) = state.withLock { state in
            let least = min(state.pins.least ?? .last, state.prunedVersions.former)
            state.prunedVersions = (state.prunedVersions.last, state.version)
            var due = state.unconfirmed.remove(upTo: least)
            if state.unconfirmed.count > Self.unconfirmedMax {
                due += state.unconfirmed.removeOldestHalf()
                state.forgottenBefore = max(state.forgottenBefore, due.last?.version ?? .zero)
            }
            return (due, state.memory)
        }
        let free = due.filter { !memory.fingerprints.contains($0.fingerprint) }
        guard !free.isEmpty else { return }
        state.withLock { $0.hasDroppedMarks = true }
        let held = heldElsewhere(Set(free.map(\.fingerprint)).sorted())
        // In parts, for who is served waits for the lock.
        for start in stride(from: 0, to: free.count, by: Self.prunedPerLockMax) {
            state.withLock { state in
                for young in free[start...].prefix(Self.prunedPerLockMax)
                where !held.contains(young.fingerprint) {
                    state.table.forget(young.slot, upTo: young.version)
                }
            }
        }
    }

    /// Drops marks that nothing which is held can be older than; gives how many there are still.
    private func foldMarks(upTo least: InvalidationVersion) -> Int {
        state.withLock { state in
            let before = state.table.count
            state.table.fold(upTo: least)
            // Nothing that is held is covered anew by the mark for those that were dropped.
            if state.table.count < before {
                state.recordFold(least, 0)
                state.hasDroppedMarks = true
            }
            return state.table.count
        }
    }

    /// How many marks have become one, because there were too many, since this was last asked.
    package func takeFoldedCount() -> Int {
        state.withLock { state in
            defer { state.foldedCount = 0 }
            return state.foldedCount
        }
    }
}

/// Somebody holds what is stamped so, or will: marks that are later are not dropped meanwhile.
package final class VersionPin: Sendable {
    package let version: InvalidationVersion
    private let index: InvalidationIndex
    private let isReleased = Atomic<Bool>(false)

    fileprivate init(_ version: InvalidationVersion, _ book: InvalidationIndex) {
        self.version = version
        self.index = book
    }

    deinit { release() }

    /// What was held is in its place, or will never be; the first call counts.
    package func release() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        index.unpin(self)
    }
}

/// A walk over everything that is in memory, for the least stamp.
struct OldestVersionScan {
    private let memory: MemoryContents
    private var least: InvalidationVersion
    private var shard = 0
    /// Where in the shard it goes on; nil at its beginning.
    private var position: Int?

    init(_ book: InvalidationIndex) {
        (least, memory) = book.state.withLock {
            (min($0.version, $0.pins.least ?? .last), $0.memory)
        }
    }

    /// Looks at up to `count` places; the least stamp when there are no more.
    mutating func next(atMost count: Int) -> InvalidationVersion? {
        guard shard < memory.shards.count else { return least }
        let (found, next) = memory.leastVersion(inShard: shard, below: position, atMost: count)
        least = min(least, found)
        position = next
        if next == nil { shard += 1 }
        return nil
    }
}

/// When marks that can be dropped are looked for, and how far.
struct MarkPruning {
    private var sweep: OldestVersionScan?
    /// Fewer marks are not worth it.
    private var leastCount = 0

    /// Places in memory that are looked at under one lock, and how often in one go.
    static let entriesPerLockMax = 1024
    private static let stepsMax = 8

    /// What nothing that is held is stamped before, if that is known by now and wanted.
    mutating func next(_ book: InvalidationIndex, count: Int, marksMax: Int) -> InvalidationVersion?
    {
        if sweep == nil, count > max(leastCount, marksMax / 2) { sweep = OldestVersionScan(book) }
        for _ in 0..<Self.stepsMax {
            guard let least = sweep?.next(atMost: Self.entriesPerLockMax) else { continue }
            sweep = nil
            leastCount = count + marksMax / 8
            return least
        }
        return nil
    }

    /// So many marks are left.
    mutating func finish(count: Int) {
        leastCount = min(leastCount, count + count / 4)
    }
}
