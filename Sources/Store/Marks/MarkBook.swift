package import Ground
import Synchronization
package import Tiers

/// What was invalidated, for all of a node: memory, disk and the fetches under way are held against
/// one table, and stamped from one count (DESIGN.md §7 "Stamps and marks").
///
/// A mark counts from the moment it is in the table, whether or not a disk has it yet; those that
/// no disk has are kept for it.
package final class MarkBook: Sendable {
    private struct State {
        var table = MarkTable()
        var stamp = Stamp.zero
        /// In the order in which they were applied.
        var unwritten: [DiskMark] = []
        var softTimes = SoftTimes()
    }

    private let state = Mutex(State())
    /// There is a disk that is to have every mark.
    private let isForDisk: Bool
    private let all = Atomic<UInt64>(0)
    private let broad = Atomic<UInt64>(0)

    /// More than so many that no disk has become one soft mark for everything.
    static let unwrittenMax = 1 << 16

    /// An empty book; `isForDisk`: its marks are written, sooner or later.
    package init(isForDisk: Bool = false) {
        self.isForDisk = isForDisk
    }

    /// What a request that begins now is stamped with.
    package var stamp: Stamp { state.withLock { $0.stamp } }

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
            for target in targets {
                let mark = DiskMark(target, isSoft: isSoft, stamp: stamp)
                state.table.apply(mark)
                if isForDisk { state.unwritten.append(mark) }
            }
            let isTooMuch = state.unwritten.count > Self.unwrittenMax
            if isTooMuch {
                let everything = DiskMark(.everything, isSoft: true, stamp: stamp)
                state.table.apply(everything)
                state.unwritten = [everything]
                state.softTimes.note(stamp, at: nil)
            }
            if isTooMuch || targets.contains(where: \.isBroad) {
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
            return latest.flatMap { state.softTimes.time(of: $0) } ?? Instant(nanoseconds: .min)
        }
    }

    // MARK: The disk

    /// A disk's log was opened, for the first time or anew: stamps are of `epoch` from now on, and
    /// `marks` are what it holds.
    ///
    /// What was invalidated while there was no log covers everything that it holds.
    package func open(epoch: UInt64, marks: [DiskMark]) {
        state.withLock { state in
            precondition(epoch > state.stamp.epoch, "epoch \(epoch) after \(state.stamp.epoch)")
            state.stamp.epoch = epoch
            for mark in marks { state.table.apply(mark) }
            for index in state.unwritten.indices {
                state.unwritten[index].stamp.epoch = epoch
                state.table.apply(state.unwritten[index])
            }
            changed()
        }
    }

    /// A start has found that something is missing, and writes this mark itself.
    func add(_ mark: DiskMark) {
        state.withLock { $0.table.apply(mark) }
        changed()
    }

    /// What the disk has to write before it may say that it has all marks up to now.
    func takeUnwritten() -> [DiskMark] {
        state.withLock { state in
            defer { state.unwritten.removeAll() }
            return state.unwritten
        }
    }

    /// A mark that no disk has is older than a request that began at `stamp`.
    func lacksMarks(before stamp: Stamp) -> Bool {
        state.withLock { state in
            guard let first = state.unwritten.first else { return false }
            return first.stamp <= stamp
        }
    }

    /// The disk was given all marks up to this stamp: what bears it promises no more.
    var writtenStamp: Stamp {
        state.withLock { state in
            guard var stamp = state.unwritten.first?.stamp else { return state.stamp }
            stamp.count -= 1
            return stamp
        }
    }

    /// The disk holds `marks` from now on in the place of all that it was given.
    func replace(with marks: [DiskMark]) {
        state.withLock { state in
            state.table = MarkTable(marks)
            for mark in state.unwritten { state.table.apply(mark) }
            changed()
        }
    }

    private func changed() {
        broad.add(1, ordering: .releasing)
        all.add(1, ordering: .releasing)
    }
}

/// When soft marks were applied, to a second.
private struct SoftTimes {
    private var times: [(stamp: Stamp, at: Instant)] = []

    private static let timesMax = 4096

    /// Nil is before everything.
    mutating func note(_ stamp: Stamp, at now: Instant?) {
        if let now, let last = times.last, last.at != Self.never, now - last.at < .seconds(1) {
            return
        }
        if times.count == Self.timesMax { times.removeFirst(Self.timesMax / 2) }
        times.append((stamp, now ?? Self.never))
    }

    private static let never = Instant(nanoseconds: .min)

    /// The last time that is known before the mark, or that of the mark; nil if it is too long ago.
    func time(of stamp: Stamp) -> Instant? {
        var (low, high) = (0, times.count)
        while low < high {
            let middle = (low + high) / 2
            if times[middle].stamp <= stamp { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? times[low - 1].at : nil
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
