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
/// Marks for URLs of which nothing can be held go without a trace; see ``YoungMarks``. Of others
/// those are dropped that nothing which is held can be older than, and where there are still too
/// many the oldest half is folded. In both cases one soft mark for everything takes their place,
/// which is not less than any of them. So what they covered is never served unasked, even if it was
/// overlooked when it was said what is held: that costs a request to the origin in vain, no more.
/// See ``leastHeld()``.
package final class MarkBook: Sendable {
    struct State {
        var table: MarkTable
        var stamp = Stamp.zero
        /// The journal has all marks up to here.
        var kept: Stamp
        /// Those that wait for it.
        var waiters: [(stamp: Stamp, done: @Sendable (Bool) -> Void)] = []
        var softTimes = SoftTimes()
        /// What is stamped before is stale since ever, for nobody knows what covers it.
        var unknownBefore = Stamp.zero
        /// Things that may be covered in the table.
        var marksMax: Int
        /// Those that may turn out to cover nothing.
        var young = YoungMarks()
        /// The stamp of the last review but one, and of the last.
        var reviews = (former: Stamp.zero, last: Stamp.zero)
        /// Of what was invalidated up to here nothing is known any more that covers answers which
        /// were asked for before and did not come yet.
        var lateBefore = Stamp.zero
        /// Some were dropped since the start.
        var hasDropped = false
        /// Marks that have become one since ``MarkBook/takeFolded()``.
        var folded = 0
        /// What fetches and the like hold that are under way.
        var leases = StampCounts()
        var memory = MemoryPlaces()
    }

    let state: Mutex<State>
    /// Where the search for marks that can be dropped has come to.
    let search = Mutex(MarkSearch())
    private let isJournaled: Bool
    let crowded = Atomic<Bool>(false)
    private let all = Atomic<UInt64>(0)
    private let broad = Atomic<UInt64>(0)

    /// So many things may be covered where there is no journal; the oldest half is then folded.
    ///
    /// They take some 20 MiB.
    package static let marksMax = 1 << 18

    /// An empty book under a key that is drawn.
    ///
    /// `isJournaled`: nothing is kept on disk before a journal has what it is later than.
    package convenience init(isJournaled: Bool = false, marksMax: Int = MarkBook.marksMax) {
        var random = SystemRandomNumberGenerator()
        self.init(
            isJournaled: isJournaled, key: MarkKey(first: random.next(), second: random.next()),
            marksMax: marksMax)
    }

    /// One that hashes by `key` until a directory with another one is opened.
    package init(isJournaled: Bool = false, key: MarkKey, marksMax: Int) {
        self.isJournaled = isJournaled
        let kept = isJournaled ? Stamp.zero : .last
        state = Mutex(State(table: MarkTable(key: key), kept: kept, marksMax: marksMax))
    }

    /// By which a directory hashes that has no marks yet.
    package var key: MarkKey { state.withLock { $0.table.key } }

    /// What a request that begins now is stamped with.
    package var stamp: Stamp { state.withLock { $0.stamp } }

    /// Things that are covered, *everything* apart.
    package var count: Int { state.withLock { $0.table.count } }

    /// Changes with every mark that may cover an entry which was held against all before: of one
    /// with no name but its key (`isPlain`) not with those for a URL, which are looked up by it.
    @inline(__always)
    package func number(isPlain: Bool) -> UInt64 {
        isPlain ? broad.load(ordering: .acquiring) : all.load(ordering: .acquiring)
    }

    /// Invalidates: what was asked for before this returns is dead or stale from now on.
    ///
    /// Gives the stamp of the marks, which no earlier request has. What soft marks cover is stale
    /// since `now`; nil: for ever, so that it is not used unasked.
    @discardableResult
    package func apply(_ targets: [PurgeTarget], isSoft: Bool, now: Instant?) -> Stamp {
        state.withLock { state in
            state.stamp.count += 1
            let stamp = state.stamp
            guard !targets.isEmpty else { return stamp }
            if isSoft { state.softTimes.note(stamp, at: now) }
            if isSoft, now == nil, targets.contains(.everything) { state.unknownBefore = stamp }
            for target in targets {
                let slot = state.table.apply(Mark(target, isSoft: isSoft, stamp: stamp))
                if case .url(let name) = target, let slot { state.young.add(name, slot, stamp) }
            }
            if state.young.count > state.marksMax / 4 { crowded.store(true, ordering: .relaxed) }
            // Where nobody reviews them they stay, as others do.
            if state.young.count > 2 * Self.youngMax { _ = state.young.takeHalf() }
            let isFolded = state.foldWhatIsTooMuch()
            if isFolded || targets.contains(where: \.isBroad) {
                broad.add(1, ordering: .releasing)
            }
            all.add(1, ordering: .releasing)
            return stamp
        }
    }

    /// What the marks make of an entry whose request began at `stamp`; nil if nothing covers it.
    ///
    /// The key is not looked at where nothing came later.
    package func effect(
        on key: @autoclosure () -> [UInt8], tags: [[UInt8]], stamp: Stamp
    ) -> Mark.Effect? {
        state.withLock { state in
            guard stamp < state.stamp else { return nil }
            return state.table.effect(on: key(), tags: tags, stamp: stamp)
        }
    }

    /// The same of an answer that was asked for at `stamp` and is in no place yet: `dead`, too, if
    /// what may cover it is not known any more.
    package func effect(onAnswer key: [UInt8], tags: [[UInt8]], stamp: Stamp) -> Mark.Effect? {
        isLate(stamp) ? .dead : effect(on: key, tags: tags, stamp: stamp)
    }

    /// Of what covers an answer that was asked for at `stamp`, and comes now, something may not be
    /// known any more: it is to be kept nowhere.
    package func isLate(_ stamp: Stamp) -> Bool { state.withLock { stamp < $0.lateBefore } }

    /// When the latest soft mark that covers an entry was applied, to a second; the least instant
    /// if that is not known.
    package func staleSince(_ key: [UInt8], tags: [[UInt8]], stamp: Stamp) -> Instant {
        state.withLock { state in
            let latest = state.table.soft(on: key, tags: tags, stamp: stamp)
            let isKnown = stamp >= state.unknownBefore
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
            precondition(epoch > state.stamp.epoch, "epoch \(epoch) after \(state.stamp.epoch)")
            let (former, last) = (state.table, state.stamp)
            // Nobody else writes in this epoch.
            let isSame = found.reached.epoch == last.epoch && last.epoch > 0
            let isOtherKey = former.key != found.table.key && former.count > 0
            state.table = found.table
            // Of when its soft marks were applied nothing is known.
            state.unknownBefore = max(state.unknownBefore, found.table.softForAll)
            state.stamp.epoch = epoch
            if isJournaled { state.kept = .zero }
            state.young = YoungMarks()
            state.table.join(former) { stamp in
                let isKept = isSame && stamp <= found.reached
                return isKept ? stamp : Stamp(epoch: epoch, count: stamp.count)
            }
            if isOtherKey || (state.hasDropped && !isSame) {
                let stamp = Stamp(epoch: epoch, count: last.count)
                state.table.apply(Mark(.everything, isSoft: true, stamp: stamp))
                state.noteFold(stamp, former.count)
            }
            _ = state.foldWhatIsTooMuch()
            // Of the journal's marks those were left that cover nothing in this directory.
            state.hasDropped = true
            changed()
        }
    }

    /// What the journal is to keep of the marks that are later than `after` and no later than
    /// `last`; see ``MarkTable/pieces(where:)``.
    ///
    /// Where something was invalidated again, and the journal does not have that yet, nothing else
    /// would be left of both.
    package func pieces(after: Stamp, upTo last: Stamp) -> [[UInt8]] {
        let (table, kept) = state.withLock { ($0.table, $0.kept) }
        return table.pieces { $0 > after && ($0 <= last || $0 > kept) }
    }

    /// The journal has all marks up to `stamp`.
    package func keeps(upTo stamp: Stamp) {
        state.withLock { state in
            state.kept = max(state.kept, stamp)
            let kept = state.kept
            let count = state.waiters.firstIndex { $0.stamp > kept } ?? state.waiters.count
            for waiter in state.waiters.prefix(count) { waiter.done(true) }
            state.waiters.removeFirst(count)
        }
    }

    /// The journal could not be written, or is closed: who waits for it waits in vain.
    package func failedToKeep() {
        state.withLock { state in
            for waiter in state.waiters.takeAll() { waiter.done(false) }
        }
    }

    /// The journal has all marks up to this stamp: what bears it promises no more.
    package var keptStamp: Stamp { state.withLock { min($0.kept, $0.stamp) } }

    /// `done` is told, on any thread, whether the journal has all marks that a request which began
    /// at `stamp` is later than; in the order of the calls, and under the lock of this book.
    package func whenKept(_ stamp: Stamp, done: @escaping @Sendable (Bool) -> Void) {
        let isKept = state.withLock { state in
            if state.waiters.isEmpty, stamp <= state.kept { return true }
            state.waiters.append((stamp, done))
            return false
        }
        if isKept { done(true) }
    }

    func changed() {
        broad.add(1, ordering: .releasing)
        all.add(1, ordering: .releasing)
    }
}

extension MarkBook.State {
    /// True if what was not covered may be now.
    fileprivate mutating func foldWhatIsTooMuch() -> Bool {
        var isFolded = false
        while table.count > marksMax, let median = table.medianStamp {
            let before = table.count
            table.fold(upTo: median)
            noteFold(median, before - table.count)
            isFolded = true
        }
        return isFolded
    }

    /// `count` marks up to `last` have become one.
    mutating func noteFold(_ last: Stamp, _ count: Int) {
        unknownBefore = max(unknownBefore, last)
        folded += count
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
