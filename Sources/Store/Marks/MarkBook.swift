package import Ground
import Synchronization
package import Tiers

/// What was invalidated, for all of a node: memory, disk and the fetches under way are held against
/// one table, and stamped from one count (DESIGN.md §7 "Stamps and marks").
///
/// A mark counts from the moment it is in the table, whether or not a disk has it yet; those that
/// no disk has are kept for it.
///
/// Marks that nothing which is held can be older than are dropped, and where there are still too
/// many the oldest half is folded. In both cases one soft mark for everything takes their place,
/// which is not less than any of them. So what they covered is never served unasked, even if it was
/// overlooked when it was said what is held: that costs a request to the origin in vain, no more.
/// See ``leastHeld()``.
package final class MarkBook: Sendable {
    struct State {
        var table: MarkTable
        var stamp = Stamp.zero
        var unwritten = UnwrittenMarks()
        var softTimes = SoftTimes()
        /// What is stamped before is stale since ever, for nobody knows what covers it.
        var unknownBefore = Stamp.zero
        /// Things that may be covered in the table.
        var marksMax: Int
        /// Some of the table's marks were given to a disk, and are not known but by their hashes.
        var wasWritten = false
        /// Marks that have become one since ``MarkBook/takeFolded()``.
        var folded = 0
        /// What fetches and the like hold that are under way.
        var leases = StampCounts()
        weak var memory: MemoryStore?
    }

    let state: Mutex<State>
    /// Where the search for marks that can be dropped has come to.
    let search = Mutex(MarkSearch())
    /// There is a disk that is to have every mark.
    let isForDisk: Bool
    private let all = Atomic<UInt64>(0)
    private let broad = Atomic<UInt64>(0)

    /// So many things may be covered where there is no disk; the oldest half is then folded.
    ///
    /// They take some 20 MiB.
    static let marksMax = 1 << 18

    /// An empty book; `isForDisk`: its marks are written, sooner or later.
    package convenience init(isForDisk: Bool = false) {
        var random = SystemRandomNumberGenerator()
        self.init(
            isForDisk: isForDisk, key: MarkKey(first: random.next(), second: random.next()),
            marksMax: Self.marksMax)
    }

    /// One that hashes by `key` until a disk with another one is opened.
    package init(isForDisk: Bool, key: MarkKey, marksMax: Int) {
        self.isForDisk = isForDisk
        state = Mutex(State(table: MarkTable(key: key), marksMax: marksMax))
    }

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
    package func apply(_ targets: [DiskMark.Target], isSoft: Bool, now: Instant?) -> Stamp {
        state.withLock { state in
            state.stamp.count += 1
            let stamp = state.stamp
            if isSoft { state.softTimes.note(stamp, at: now) }
            if isSoft, now == nil, targets.contains(.everything) { state.unknownBefore = stamp }
            for target in targets {
                let mark = DiskMark(target, isSoft: isSoft, stamp: stamp)
                state.table.apply(mark)
                if isForDisk { state.unwritten.append(mark) }
            }
            let isFolded = state.foldWhatIsTooMuch()
            if isFolded || targets.contains(where: \.isBroad) {
                broad.add(1, ordering: .releasing)
            }
            all.add(1, ordering: .releasing)
            return stamp
        }
    }

    /// What the marks make of an entry whose request began at `stamp`; nil if nothing covers it.
    package func effect(
        on name: EntryName?, key: [UInt8], tags: [[UInt8]], stamp: Stamp
    ) -> DiskMark.Effect? {
        state.withLock { state in
            guard stamp < state.stamp else { return nil }
            return state.table.effect(on: name, key: key, tags: tags, stamp: stamp)
        }
    }

    /// When the latest soft mark that covers an entry was applied, to a second; the least instant
    /// if that is not known.
    package func staleSince(
        _ name: EntryName?, key: [UInt8], tags: [[UInt8]], stamp: Stamp
    ) -> Instant {
        state.withLock { state in
            let latest = state.table.soft(on: name, key: key, tags: tags, stamp: stamp)
            let isKnown = stamp >= state.unknownBefore
            return latest.flatMap { isKnown ? state.softTimes.time(of: $0) : nil }
                ?? Instant(nanoseconds: .min)
        }
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
        if let (last, count) = unwritten.foldWhatIsTooMuch() {
            table.apply(.unknown(before: last))
            noteFold(last, count)
            isFolded = true
        }
        if table.count > marksMax, let median = table.medianStamp {
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

extension DiskMark.Target {
    /// It covers entries whose keys it does not name.
    fileprivate var isBroad: Bool {
        switch self {
        case .everything, .prefix, .host: true
        case .entry, .url, .tag: false
        }
    }
}
