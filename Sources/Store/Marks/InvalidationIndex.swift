package import Ground
import Synchronization
package import Tiers

/// The invalidations of a node: memory, disk and fetches in progress are checked against one table
/// of marks, with versions from one counter (Design, "Versions and marks").
///
/// A mark is in effect from the moment it is in the table, whether or not the journal has it yet.
/// Nothing later than the journal is written to the disk: otherwise a restart could not detect a
/// lost invalidation.
///
/// Marks for URLs that cannot be stored are removed without a trace; see
/// ``UnconfirmedMarks``. Other marks are dropped once no stored response precedes them; if there
/// are still too many, the oldest half is folded. In both cases, one soft mark for everything
/// replaces them, which covers at least as much. So a response covered by a dropped mark is never
/// served without revalidation, even if the scan of stored responses missed it: the cost is one
/// needless request to the origin. See ``leastStoredVersion()``. Thread-safe.
package final class InvalidationIndex: Sendable {
    struct State {
        var table: MarkTable
        var version = InvalidationVersion.zero
        /// The journal has all marks up to this version.
        var journaledVersion: InvalidationVersion
        /// Writes that wait for the journal.
        var waiters: [(version: InvalidationVersion, done: @Sendable (Bool) -> Void)] = []
        var softTimes = SoftMarkTimes()
        /// Responses with earlier versions count as stale since ever, because the marks that cover
        /// them are not known individually.
        var staleBefore = InvalidationVersion.zero
        /// Maximum number of targets covered in the table.
        var marksMax: Int
        /// Marks that may turn out to cover nothing.
        var unconfirmed = UnconfirmedMarks()
        /// The versions at the last pruning but one, and at the last.
        var prunedVersions = (former: InvalidationVersion.zero, last: InvalidationVersion.zero)
        /// Marks up to this version were removed that may cover responses requested earlier and not
        /// yet received.
        var forgottenBefore = InvalidationVersion.zero
        /// True once marks were dropped since the start.
        var hasDroppedMarks = false
        /// Marks folded since ``InvalidationIndex/takeFoldedCount()``.
        var foldedCount = 0
        /// Versions pinned by fetches and moves in progress.
        var pins = VersionCounts()
        var memory = MemoryContents()
    }

    let state: Mutex<State>
    /// The progress of the search for marks that can be dropped.
    let pruning = Mutex(MarkPruning())
    private let isJournaled: Bool
    let hasExcessMarks = Atomic<Bool>(false)
    /// Changes with every mark; see ``generation(isKeyOnly:)``.
    private let generationOfAll = Atomic<UInt64>(0)
    /// Changes with every mark for a prefix or for everything, and whenever marks are folded.
    private let generationOfBroad = Atomic<UInt64>(0)

    /// Maximum number of covered targets without a journal, about 20 MiB; beyond it, the oldest
    /// half is folded.
    package static let marksMax = 1 << 18

    /// Creates an empty index with a random hash key.
    ///
    /// - Parameters:
    ///   - isJournaled: true if nothing may be written to disk before a journal has the marks it is
    ///     later than.
    ///   - marksMax: the number of covered targets beyond which the oldest half is folded.
    package convenience init(isJournaled: Bool = false, marksMax: Int = InvalidationIndex.marksMax)
    {
        var random = SystemRandomNumberGenerator()
        self.init(
            isJournaled: isJournaled, key: MarkHashKey(first: random.next(), second: random.next()),
            marksMax: marksMax)
    }

    /// Creates an empty index that hashes with `key` until a directory with another key is opened.
    package init(isJournaled: Bool = false, key: MarkHashKey, marksMax: Int) {
        self.isJournaled = isJournaled
        let kept = isJournaled ? InvalidationVersion.zero : .last
        state = Mutex(State(table: MarkTable(key: key), journaledVersion: kept, marksMax: marksMax))
    }

    /// The hash key in use, for a directory that has no marks yet.
    package var key: MarkHashKey { state.withLock { $0.table.key } }

    /// The invalidation version for a request that begins now.
    package var version: InvalidationVersion { state.withLock { $0.version } }

    /// Number of covered targets, apart from *everything*.
    package var count: Int { state.withLock { $0.table.count } }

    /// Returns a number that changes with every mark that may cover an entry checked against all
    /// earlier marks.
    ///
    /// For an entry that marks find by its key alone (`isKeyOnly`), it does not change with marks
    /// for a URL, which are looked up by the key.
    @inline(__always)
    package func generation(isKeyOnly: Bool) -> UInt64 {
        isKeyOnly
            ? generationOfBroad.load(ordering: .acquiring)
            : generationOfAll.load(ordering: .acquiring)
    }

    /// Applies an invalidation: responses requested before this returns are purged or stale from
    /// now on.
    ///
    /// - Parameters:
    ///   - targets: the invalidated targets.
    ///   - isSoft: true to make responses stale instead of removing them.
    ///   - now: the instant since which soft marks make responses stale; `nil` for since ever, so
    ///     that they are not served without revalidation.
    /// - Returns: the version of the marks, which is later than that of every earlier request.
    @discardableResult
    package func apply(_ targets: [PurgeTarget], isSoft: Bool, now: Instant?) -> InvalidationVersion
    {
        state.withLock { state in
            state.version.count += 1
            let version = state.version
            guard !targets.isEmpty else { return version }
            if isSoft { state.softTimes.record(version, at: now) }
            if isSoft, now == nil, targets.contains(.everything) { state.staleBefore = version }
            for target in targets {
                let slot = state.table.apply(
                    InvalidationMark(target, isSoft: isSoft, version: version))
                if case .url(let name) = target, let slot {
                    state.unconfirmed.insert(name, slot, version)
                }
            }
            if state.unconfirmed.count > state.marksMax / 4 {
                hasExcessMarks.store(true, ordering: .relaxed)
            }
            // Without a thread that prunes them, they stay like other marks.
            if state.unconfirmed.count > 2 * Self.unconfirmedMax {
                _ = state.unconfirmed.removeOldestHalf()
            }
            let isFolded = state.foldExcessMarks()
            if isFolded || targets.contains(where: \.isBroad) {
                generationOfBroad.add(1, ordering: .releasing)
            }
            generationOfAll.add(1, ordering: .releasing)
            return version
        }
    }

    /// Returns the effect of the marks on a response with this version; `nil` if none covers it.
    ///
    /// `key` is evaluated only if a mark is later than `version`.
    package func effect(
        on key: @autoclosure () -> [UInt8], tags: [[UInt8]], version: InvalidationVersion
    ) -> InvalidationMark.Effect? {
        state.withLock { state in
            guard version < state.version else { return nil }
            return state.table.effect(on: key(), tags: tags, version: version)
        }
    }

    /// Returns the effect of the marks on a response that is not stored yet.
    ///
    /// Also `.purged` if marks that may cover it have been removed.
    package func effect(onResponse key: [UInt8], tags: [[UInt8]], version: InvalidationVersion)
        -> InvalidationMark.Effect?
    {
        predatesForgottenMarks(version) ? .purged : effect(on: key, tags: tags, version: version)
    }

    /// Returns true if marks that may cover a response with this version have been removed while it
    /// was in progress, so that it must not be stored.
    package func predatesForgottenMarks(_ version: InvalidationVersion) -> Bool {
        state.withLock { version < $0.forgottenBefore }
    }

    /// Returns when the latest soft mark that covers an entry was applied, to a second; the least
    /// instant if that is not known.
    package func staleSince(_ key: [UInt8], tags: [[UInt8]], version: InvalidationVersion)
        -> Instant
    {
        state.withLock { state in
            let latest = state.table.soft(on: key, tags: tags, version: version)
            let isKnown = version >= state.staleBefore
            return latest.flatMap { isKnown ? state.softTimes.time(of: $0) : nil }
                ?? Instant(nanoseconds: .min)
        }
    }

    // MARK: The journal

    /// Adopts a directory that was opened, for the first time or again: versions continue in
    /// `epoch`, with the marks that its journal contains.
    ///
    /// Invalidations so far that this journal does not contain cover everything in the directory. A
    /// soft mark for everything replaces those that cannot be transferred: marks dropped while
    /// another directory was in use, and marks hashed with another key.
    ///
    /// - Precondition: `epoch` is greater than that of ``version``.
    package func open(epoch: UInt64, _ found: RecoveredMarks) {
        state.withLock { state in
            precondition(epoch > state.version.epoch, "epoch \(epoch) after \(state.version.epoch)")
            let (former, last) = (state.table, state.version)
            // Only this node writes in this epoch.
            let isSame = found.lastVersion.epoch == last.epoch && last.epoch > 0
            let isOtherKey = former.key != found.table.key && former.count > 0
            state.table = found.table
            // The times at which its soft marks were applied are not known.
            state.staleBefore = max(state.staleBefore, found.table.softVersionForEverything)
            state.version.epoch = epoch
            if isJournaled { state.journaledVersion = .zero }
            state.unconfirmed = UnconfirmedMarks()
            state.table.merge(former) { version in
                let isKept = isSame && version <= found.lastVersion
                return isKept ? version : InvalidationVersion(epoch: epoch, count: version.count)
            }
            if isOtherKey || (state.hasDroppedMarks && !isSame) {
                let version = InvalidationVersion(epoch: epoch, count: last.count)
                state.table.apply(InvalidationMark(.everything, isSoft: true, version: version))
                state.recordFold(version, former.count)
            }
            _ = state.foldExcessMarks()
            // The journal's marks that cover nothing in this directory were omitted.
            state.hasDroppedMarks = true
            advanceGenerations()
        }
    }

    /// Returns the encoded marks later than `after` and no later than `last`, for the journal; see
    /// ``MarkTable/encodedChunks(where:)``.
    ///
    /// Also includes later marks that the journal does not have yet: a repeated invalidation
    /// replaces the earlier mark, which would otherwise be missing from the journal.
    package func encodedChunks(after: InvalidationVersion, upTo last: InvalidationVersion)
        -> [[UInt8]]
    {
        let (table, kept) = state.withLock { ($0.table, $0.journaledVersion) }
        return table.encodedChunks { $0 > after && ($0 <= last || $0 > kept) }
    }

    /// Records that the journal has all marks up to `version`, and releases the writes that waited
    /// for them.
    package func journaled(upTo version: InvalidationVersion) {
        state.withLock { state in
            state.journaledVersion = max(state.journaledVersion, version)
            let kept = state.journaledVersion
            let count = state.waiters.firstIndex { $0.version > kept } ?? state.waiters.count
            for waiter in state.waiters.prefix(count) { waiter.done(true) }
            state.waiters.removeFirst(count)
        }
    }

    /// Fails all waiting writes, because the journal could not be written or is closed.
    package func journalFailed() {
        state.withLock { state in
            for waiter in state.waiters.takeAll() { waiter.done(false) }
        }
    }

    /// The version up to which the journal has all marks, at most ``version``.
    ///
    /// Data that records it implies no invalidation that the journal lacks.
    package var journaledVersion: InvalidationVersion {
        state.withLock { min($0.journaledVersion, $0.version) }
    }

    /// Calls `done` once the journal has all marks up to `version` (true), or has failed (false).
    ///
    /// Called on any thread, in the order of the calls, and within the lock of this index for those
    /// that waited.
    package func whenJournaled(
        _ version: InvalidationVersion, done: @escaping @Sendable (Bool) -> Void
    ) {
        let isKept = state.withLock { state in
            if state.waiters.isEmpty, version <= state.journaledVersion { return true }
            state.waiters.append((version, done))
            return false
        }
        if isKept { done(true) }
    }

    /// Makes every entry in memory be checked against the marks again.
    func advanceGenerations() {
        generationOfBroad.add(1, ordering: .releasing)
        generationOfAll.add(1, ordering: .releasing)
    }
}

extension InvalidationIndex.State {
    /// Folds marks beyond the limit; true if entries that were not covered may be now.
    fileprivate mutating func foldExcessMarks() -> Bool {
        var isFolded = false
        while table.count > marksMax, let median = table.medianVersion {
            let before = table.count
            table.fold(upTo: median)
            recordFold(median, before - table.count)
            isFolded = true
        }
        return isFolded
    }

    /// Records that `count` marks up to `last` were folded into one.
    mutating func recordFold(_ last: InvalidationVersion, _ count: Int) {
        staleBefore = max(staleBefore, last)
        foldedCount += count
    }
}

extension PurgeTarget {
    /// True if the target covers entries whose keys it does not contain.
    fileprivate var isBroad: Bool {
        switch self {
        case .everything, .prefix: true
        case .url, .tag: false
        }
    }
}

/// The times at which soft marks were applied, to a second.
struct SoftMarkTimes {
    private var applications: [(version: InvalidationVersion, at: Instant)] = []

    private static let timesMax = 4096

    /// Records the time of a soft mark, unless another one is recorded within the second before;
    /// `nil` for one that makes responses stale since ever.
    mutating func record(_ version: InvalidationVersion, at now: Instant?) {
        if let now, let last = applications.last, last.at != Self.never, now - last.at < .seconds(1)
        {
            return
        }
        if applications.count == Self.timesMax { applications.removeFirst(Self.timesMax / 2) }
        applications.append((version, now ?? Self.never))
    }

    private static let never = Instant(nanoseconds: .min)

    /// Returns the last recorded time at or before the mark; `nil` if it is no longer recorded.
    func time(of version: InvalidationVersion) -> Instant? {
        let count = applications.partitionPoint { $0.version <= version }
        return count > 0 ? applications[count - 1].at : nil
    }
}

/// The invalidations that a directory's journal contains.
package struct RecoveredMarks: Sendable {
    /// The recovered marks.
    package var table: MarkTable
    /// The greatest version in the journal.
    package var lastVersion: InvalidationVersion
    /// Why some invalidations may be missing; `nil` if the journal is complete.
    package var incompleteReason: String?

    /// Creates the result from its parts.
    package init(
        table: MarkTable, lastVersion: InvalidationVersion = .zero, incompleteReason: String? = nil
    ) {
        self.table = table
        self.lastVersion = lastVersion
        self.incompleteReason = incompleteReason
    }
}

/// A function that reads the journal of a directory, on a thread that may block.
///
/// Its last argument returns those of many marks that may cover something in the directory.
package typealias MarkRecovery =
    @Sendable (
        any DiskVolume, NodeIdentity, _ wanted: ([InvalidationMark]) -> [InvalidationMark]
    ) -> RecoveredMarks
