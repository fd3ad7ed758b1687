package import Ground
import Synchronization
import Tiers

// Versions in use, and the pruning of marks that cover nothing.
extension InvalidationIndex {
    /// Returns the version of a request that begins now, pinned until its response is stored or
    /// dropped.
    package func pin() -> VersionPin {
        state.withLock { state in
            state.pins.insert(state.version)
            return VersionPin(state.version, self)
        }
    }

    /// Pins the version of a response while it moves from one place to another.
    func pin(of version: InvalidationVersion) -> VersionPin {
        state.withLock { $0.pins.insert(version) }
        return VersionPin(version, self)
    }

    fileprivate func unpin(_ lease: VersionPin) {
        state.withLock { $0.pins.remove(lease.version) }
    }

    /// Attaches the contents of the memory tier whose entries are checked against this index;
    /// called once.
    func attachMemory(_ memory: MemoryContents) {
        state.withLock { $0.memory = memory }
    }

    /// Returns a version that no response in memory, or on its way there or to the disk, precedes.
    ///
    /// Examines every entry, so only one thread at a time may call it. It suffices that the result
    /// holds at one moment: from then on only later versions are assigned, and a response that
    /// moves keeps its own. The scan reads the pins first, then every position in memory. An entry
    /// inserted since the scan of its shard began counts wherever it is. An entry inserted before,
    /// under a pin released meanwhile, is seen; an entry inserted later, under a pin that existed
    /// or a newer one, is not older.
    ///
    /// A response read from disk is checked against the marks at that moment, and enters memory
    /// under the pin and version of its reader.
    package func leastStoredVersion() -> InvalidationVersion {
        var sweep = OldestVersionScan(self)
        while true {
            if let least = sweep.next(atMost: MarkPruning.entriesPerLockMax) { return least }
        }
    }

    /// Advances the search for marks that can be dropped by one step.
    ///
    /// One thread calls it several times a second.
    ///
    /// - Parameters:
    ///   - leastVersionOnDisk: returns a version that nothing on disk precedes; called once memory
    ///     has been examined. Whatever reached the disk since was pinned.
    ///   - fingerprintsOnDisk: returns those of `names`, in ascending order and absent from memory,
    ///     of which the disk may hold an entry.
    package func pruneMarks(
        leastVersionOnDisk: () -> InvalidationVersion,
        fingerprintsOnDisk: (_ names: [UInt32]) -> Set<UInt32>
    ) {
        pruneUnmatchedMarks(fingerprintsOnDisk)
        pruneObsoleteMarks(leastVersionOnDisk: leastVersionOnDisk)
    }

    /// Advances the examination of all stored entries, and folds obsolete marks at its end.
    func pruneObsoleteMarks(leastVersionOnDisk: () -> InvalidationVersion) {
        let (count, marksMax) = state.withLock { ($0.table.count, $0.marksMax) }
        pruning.withLock { search in
            guard let least = search.next(self, count: count, marksMax: marksMax) else { return }
            search.finish(count: foldMarks(upTo: min(least, leastVersionOnDisk())))
        }
    }

    /// Maximum number of unconfirmed marks that wait for requests in progress; beyond it, the
    /// responses to those requests are not stored.
    static let unconfirmedMax = 1 << 17
    /// Maximum number of marks removed under one lock.
    private static let prunedPerLockMax = 256

    /// True if so many unconfirmed marks exist that
    /// ``pruneMarks(leastVersionOnDisk:fingerprintsOnDisk:)`` should not wait for the next tick.
    package var needsPruning: Bool { hasExcessMarks.load(ordering: .relaxed) }

    /// Minimum time between two prunings.
    static let pruneInterval = Interval.milliseconds(100)

    /// Removes marks for URLs that cannot be stored; see ``UnconfirmedMarks``.
    ///
    /// Called by the thread that ticks; `heldElsewhere` is the `fingerprintsOnDisk` of
    /// ``pruneMarks(leastVersionOnDisk:fingerprintsOnDisk:)``. Marks since the last pruning but one
    /// stay, so that a look-up that pins its version afterwards finds what was invalidated in
    /// between.
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
        // In parts, because requests wait for the lock.
        for start in stride(from: 0, to: free.count, by: Self.prunedPerLockMax) {
            state.withLock { state in
                for young in free[start...].prefix(Self.prunedPerLockMax)
                where !held.contains(young.fingerprint) {
                    state.table.forget(young.slot, upTo: young.version)
                }
            }
        }
    }

    /// Folds marks that no stored response precedes; returns the number of remaining marks.
    private func foldMarks(upTo least: InvalidationVersion) -> Int {
        state.withLock { state in
            let before = state.table.count
            state.table.fold(upTo: least)
            // The mark that replaces the dropped ones covers no further stored response.
            if state.table.count < before {
                state.recordFold(least, 0)
                state.hasDroppedMarks = true
            }
            return state.table.count
        }
    }

    /// Returns and resets the number of marks folded because there were too many.
    package func takeFoldedCount() -> Int {
        state.withLock { state in
            defer { state.foldedCount = 0 }
            return state.foldedCount
        }
    }
}

/// A pin on a version: while it exists, marks later than the version are not dropped, because a
/// response of that version is in use or in progress.
package final class VersionPin: Sendable {
    /// The pinned version.
    package let version: InvalidationVersion
    private let index: InvalidationIndex
    private let isReleased = Atomic<Bool>(false)

    fileprivate init(_ version: InvalidationVersion, _ book: InvalidationIndex) {
        self.version = version
        self.index = book
    }

    deinit { release() }

    /// Releases the pin, once the response is stored or dropped; only the first call has an effect.
    package func release() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        index.unpin(self)
    }
}

/// A scan of all entries in memory for the least version.
struct OldestVersionScan {
    private let memory: MemoryContents
    private var least: InvalidationVersion
    private var shard = 0
    /// The next position in the shard; `nil` at its beginning.
    private var position: Int?

    init(_ book: InvalidationIndex) {
        (least, memory) = book.state.withLock {
            (min($0.version, $0.pins.least ?? .last), $0.memory)
        }
    }

    /// Examines up to `count` positions; returns the least version once all are examined.
    mutating func next(atMost count: Int) -> InvalidationVersion? {
        guard shard < memory.shards.count else { return least }
        let (found, next) = memory.leastVersion(inShard: shard, below: position, atMost: count)
        least = min(least, found)
        position = next
        if next == nil { shard += 1 }
        return nil
    }
}

/// The schedule and progress of the search for marks that can be dropped.
struct MarkPruning {
    private var sweep: OldestVersionScan?
    /// With fewer marks than this, no search starts.
    private var leastCount = 0

    /// Maximum number of positions in memory examined under one lock.
    static let entriesPerLockMax = 1024
    /// Maximum number of such steps per call of ``next(_:count:marksMax:)``.
    private static let stepsMax = 8

    /// Advances the search, or starts one if there are many marks; returns a version that nothing
    /// in memory precedes, once it is complete.
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

    /// Records the number of remaining marks after a search.
    mutating func finish(count: Int) {
        leastCount = min(leastCount, count + count / 4)
    }
}
