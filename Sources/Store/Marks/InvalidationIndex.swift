package import Ground
import Synchronization
package import Tiers

/// What was invalidated, for all of a node: memory, disk and the fetches under way are held against
/// one table, and stamped from one count (DESIGN.md §7 "Stamps and marks").
///
/// A mark counts from the moment it is in the table, whether or not the journal has it yet. Nothing
/// is written to the disk that is later than what the journal has: a start could not tell that an
/// invalidation was lost.
///
/// Marks for URLs of which nothing can be held go without a trace; see ``UnconfirmedMarks``. Of
/// others those are dropped that nothing which is held can be older than, and where there are still
/// too many the oldest half is folded. In both cases one soft mark for everything takes their
/// place, which is not less than any of them. So what they covered is never served unasked, even if
/// it was overlooked when it was said what is held: that costs a request to the origin in vain, no
/// more. See ``leastHeld()``.
package final class InvalidationIndex: Sendable {
    struct State {
        var table: MarkTable
        var version = InvalidationVersion.zero
        /// The journal has all marks up to here.
        var journaledVersion: InvalidationVersion
        /// Those that wait for it.
        var waiters: [(version: InvalidationVersion, done: @Sendable (Bool) -> Void)] = []
        var softTimes = SoftMarkTimes()
        /// What is stamped before is stale since ever, for nobody knows what covers it.
        var staleBefore = InvalidationVersion.zero
        /// Things that may be covered in the table.
        var marksMax: Int
        /// Those that may turn out to cover nothing.
        var unconfirmed = UnconfirmedMarks()
        /// The stamp of the last review but one, and of the last.
        var prunedVersions = (former: InvalidationVersion.zero, last: InvalidationVersion.zero)
        /// Of what was invalidated up to here nothing is known any more that covers answers which
        /// were asked for before and did not come yet.
        var forgottenBefore = InvalidationVersion.zero
        /// Some were dropped since the start.
        var hasDroppedMarks = false
        /// Marks that have become one since ``InvalidationIndex/takeFolded()``.
        var foldedCount = 0
        /// What fetches and the like hold that are under way.
        var pins = VersionCounts()
        var memory = MemoryContents()
    }

    let state: Mutex<State>
    /// Where the search for marks that can be dropped has come to.
    let pruning = Mutex(MarkPruning())
    private let isJournaled: Bool
    let hasExcessMarks = Atomic<Bool>(false)
    private let generationOfAll = Atomic<UInt64>(0)
    private let generationOfBroad = Atomic<UInt64>(0)

    /// So many things may be covered where there is no journal; the oldest half is then folded.
    ///
    /// They take some 20 MiB.
    package static let marksMax = 1 << 18

    /// An empty book under a key that is drawn.
    ///
    /// `isJournaled`: nothing is kept on disk before a journal has what it is later than.
    package convenience init(isJournaled: Bool = false, marksMax: Int = InvalidationIndex.marksMax)
    {
        var random = SystemRandomNumberGenerator()
        self.init(
            isJournaled: isJournaled, key: MarkHashKey(first: random.next(), second: random.next()),
            marksMax: marksMax)
    }

    /// One that hashes by `key` until a directory with another one is opened.
    package init(isJournaled: Bool = false, key: MarkHashKey, marksMax: Int) {
        self.isJournaled = isJournaled
        let kept = isJournaled ? InvalidationVersion.zero : .last
        state = Mutex(State(table: MarkTable(key: key), journaledVersion: kept, marksMax: marksMax))
    }

    /// By which a directory hashes that has no marks yet.
    package var key: MarkHashKey { state.withLock { $0.table.key } }

    /// What a request that begins now is stamped with.
    package var version: InvalidationVersion { state.withLock { $0.version } }

    /// Things that are covered, *everything* apart.
    package var count: Int { state.withLock { $0.table.count } }

    /// Changes with every mark that may cover an entry which was held against all before: of one
    /// with no name but its key (`isPlain`) not with those for a URL, which are looked up by it.
    @inline(__always)
    package func generation(isKeyOnly: Bool) -> UInt64 {
        isKeyOnly
            ? generationOfBroad.load(ordering: .acquiring)
            : generationOfAll.load(ordering: .acquiring)
    }

    /// Invalidates: what was asked for before this returns is dead or stale from now on.
    ///
    /// Gives the stamp of the marks, which no earlier request has. What soft marks cover is stale
    /// since `now`; nil: for ever, so that it is not used unasked.
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
            // Where nobody reviews them they stay, as others do.
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

    /// What the marks make of an entry whose request began at `stamp`; nil if nothing covers it.
    ///
    /// The key is not looked at where nothing came later.
    package func effect(
        on key: @autoclosure () -> [UInt8], tags: [[UInt8]], version: InvalidationVersion
    ) -> InvalidationMark.Effect? {
        state.withLock { state in
            guard version < state.version else { return nil }
            return state.table.effect(on: key(), tags: tags, version: version)
        }
    }

    /// The same of an answer that was asked for at `stamp` and is in no place yet: `dead`, too, if
    /// what may cover it is not known any more.
    package func effect(onResponse key: [UInt8], tags: [[UInt8]], version: InvalidationVersion)
        -> InvalidationMark.Effect?
    {
        predatesForgottenMarks(version) ? .purged : effect(on: key, tags: tags, version: version)
    }

    /// Of what covers an answer that was asked for at `stamp`, and comes now, something may not be
    /// known any more: it is to be kept nowhere.
    package func predatesForgottenMarks(_ version: InvalidationVersion) -> Bool {
        state.withLock { version < $0.forgottenBefore }
    }

    /// When the latest soft mark that covers an entry was applied, to a second; the least instant
    /// if that is not known.
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

    /// A directory was opened, for the first time or anew: stamps are of `epoch` from now on, and
    /// `found` is what its journal has kept.
    ///
    /// What was invalidated until now, and that journal does not have, covers everything that the
    /// directory holds; so does, softly, what it cannot be told of: marks that were dropped while
    /// there was another directory, and those that are hashed by another key.
    package func open(epoch: UInt64, _ found: RecoveredMarks) {
        state.withLock { state in
            precondition(epoch > state.version.epoch, "epoch \(epoch) after \(state.version.epoch)")
            let (former, last) = (state.table, state.version)
            // Nobody else writes in this epoch.
            let isSame = found.lastVersion.epoch == last.epoch && last.epoch > 0
            let isOtherKey = former.key != found.table.key && former.count > 0
            state.table = found.table
            // Of when its soft marks were applied nothing is known.
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
            // Of the journal's marks those were left that cover nothing in this directory.
            state.hasDroppedMarks = true
            advanceGenerations()
        }
    }

    /// What the journal is to keep of the marks that are later than `after` and no later than
    /// `last`; see ``MarkTable/pieces(where:)``.
    ///
    /// Where something was invalidated again, and the journal does not have that yet, nothing else
    /// would be left of both.
    package func encodedChunks(after: InvalidationVersion, upTo last: InvalidationVersion)
        -> [[UInt8]]
    {
        let (table, kept) = state.withLock { ($0.table, $0.journaledVersion) }
        return table.encodedChunks { $0 > after && ($0 <= last || $0 > kept) }
    }

    /// The journal has all marks up to `stamp`.
    package func journaled(upTo version: InvalidationVersion) {
        state.withLock { state in
            state.journaledVersion = max(state.journaledVersion, version)
            let kept = state.journaledVersion
            let count = state.waiters.firstIndex { $0.version > kept } ?? state.waiters.count
            for waiter in state.waiters.prefix(count) { waiter.done(true) }
            state.waiters.removeFirst(count)
        }
    }

    /// The journal could not be written, or is closed: who waits for it waits in vain.
    package func journalFailed() {
        state.withLock { state in
            for waiter in state.waiters.takeAll() { waiter.done(false) }
        }
    }

    /// The journal has all marks up to this stamp: what bears it promises no more.
    package var journaledVersion: InvalidationVersion {
        state.withLock { min($0.journaledVersion, $0.version) }
    }

    /// `done` is told, on any thread, whether the journal has all marks that a request which began
    /// at `stamp` is later than; in the order of the calls, and under the lock of this book.
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

    func advanceGenerations() {
        generationOfBroad.add(1, ordering: .releasing)
        generationOfAll.add(1, ordering: .releasing)
    }
}

extension InvalidationIndex.State {
    /// True if what was not covered may be now.
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

    /// `count` marks up to `last` have become one.
    mutating func recordFold(_ last: InvalidationVersion, _ count: Int) {
        staleBefore = max(staleBefore, last)
        foldedCount += count
    }
}

extension PurgeTarget {
    /// It covers entries whose keys it does not name.
    fileprivate var isBroad: Bool {
        switch self {
        case .everything, .prefix: true
        case .url, .tag: false
        }
    }
}

/// When soft marks were applied, to a second.
struct SoftMarkTimes {
    private var applications: [(version: InvalidationVersion, at: Instant)] = []

    private static let timesMax = 4096

    /// Nil is before everything.
    mutating func record(_ version: InvalidationVersion, at now: Instant?) {
        if let now, let last = applications.last, last.at != Self.never, now - last.at < .seconds(1)
        {
            return
        }
        if applications.count == Self.timesMax { applications.removeFirst(Self.timesMax / 2) }
        applications.append((version, now ?? Self.never))
    }

    private static let never = Instant(nanoseconds: .min)

    /// The last time that is known before the mark, or that of the mark; nil if it is too long ago.
    func time(of version: InvalidationVersion) -> Instant? {
        let count = applications.partitionPoint { $0.version <= version }
        return count > 0 ? applications[count - 1].at : nil
    }
}

/// What a directory's journal has of what was invalidated.
package struct RecoveredMarks: Sendable {
    package var table: MarkTable
    /// The greatest stamp that the journal bears.
    package var lastVersion: InvalidationVersion
    /// Why something may be missing; nil if nothing is.
    package var incompleteReason: String?

    package init(
        table: MarkTable, lastVersion: InvalidationVersion = .zero, incompleteReason: String? = nil
    ) {
        self.table = table
        self.lastVersion = lastVersion
        self.incompleteReason = incompleteReason
    }
}

/// Reads it, on a thread that may wait for the disk; `wanted` gives those of many marks that may
/// cover something in the directory.
package typealias MarkRecovery =
    @Sendable (
        any DiskVolume, NodeIdentity, _ wanted: ([InvalidationMark]) -> [InvalidationMark]
    ) -> RecoveredMarks
