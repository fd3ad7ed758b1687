package import Ground
import Synchronization
import Tiers

/// What is held and on its way, and the marks that it leaves nothing to cover.
extension MarkBook {
    /// The stamp of a request that begins now, held until its answer is where it is to be.
    package func lease() -> StampLease {
        state.withLock { state in
            state.leases.begin(state.stamp)
            return StampLease(state.stamp, self)
        }
    }

    /// Holds an answer's stamp while it is on its way from one place to another.
    func lease(of stamp: Stamp) -> StampLease {
        state.withLock { $0.leases.begin(stamp) }
        return StampLease(stamp, self)
    }

    fileprivate func end(_ lease: StampLease) {
        state.withLock { $0.leases.end(lease.stamp) }
    }

    /// Entries that are held against this book are in `memory`, of which it is told once.
    func hold(_ memory: MemoryPlaces) {
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
    package func leastHeld() -> Stamp {
        var sweep = StampSweep(self)
        while true {
            if let least = sweep.next(atMost: MarkSearch.placesMax) { return least }
        }
    }

    /// Looks a little further for marks that can be dropped.
    ///
    /// To be called several times a second by one thread at a time. `heldElsewhere` is asked which
    /// of some names, ascending and of no entry in memory, may be there, and `leastElsewhere`, when
    /// everything here was looked at, what nothing there is stamped before. What has come there
    /// since was leased.
    package func ticked(
        leastElsewhere: () -> Stamp, heldElsewhere: (_ names: [UInt32]) -> Set<UInt32>
    ) {
        review(heldElsewhere)
        search(leastElsewhere: leastElsewhere)
    }

    /// The part of it that looks at everything that is held, piece by piece.
    func search(leastElsewhere: () -> Stamp) {
        let (count, marksMax) = state.withLock { ($0.table.count, $0.marksMax) }
        search.withLock { search in
            guard let least = search.next(self, count: count, marksMax: marksMax) else { return }
            search.ended(count: drop(upTo: min(least, leastElsewhere())))
        }
    }

    /// Young marks beyond that do not wait for the requests that are under way: what comes of those
    /// is kept nowhere.
    static let youngMax = 1 << 17
    /// Marks that are forgotten under one lock.
    private static let forgottenMax = 256

    /// So many marks wait for a review that ``review(_:)`` is not to wait for the next tick.
    package var isCrowded: Bool { crowded.load(ordering: .relaxed) }

    /// Between two reviews, at the least.
    static let reviewInterval = Interval.milliseconds(100)

    /// Lets marks go of URLs that nothing can be held of; see ``YoungMarks``.
    ///
    /// By the thread that ticks, to which `heldElsewhere` is the same. Those since the last review
    /// but one stay, so that what looks an entry up, and takes its lease then, finds what was
    /// invalidated between.
    func review(_ heldElsewhere: ([UInt32]) -> Set<UInt32>) {
        crowded.store(false, ordering: .relaxed)
        let (due, memory) = state.withLock { state in
            let least = min(state.leases.least ?? .last, state.reviews.former)
            state.reviews = (state.reviews.last, state.stamp)
            var due = state.young.take(upTo: least)
            if state.young.count > Self.youngMax {
                due += state.young.takeHalf()
                state.lateBefore = max(state.lateBefore, due.last?.stamp ?? .zero)
            }
            return (due, state.memory)
        }
        let free = due.filter { !memory.names.contains($0.name) }
        guard !free.isEmpty else { return }
        state.withLock { $0.hasDropped = true }
        let held = heldElsewhere(Set(free.map(\.name)).sorted())
        // In parts, for who is served waits for the lock.
        for start in stride(from: 0, to: free.count, by: Self.forgottenMax) {
            state.withLock { state in
                for young in free[start...].prefix(Self.forgottenMax)
                where !held.contains(young.name) {
                    state.table.forget(young.slot, upTo: young.stamp)
                }
            }
        }
    }

    /// Drops marks that nothing which is held can be older than; gives how many there are still.
    private func drop(upTo least: Stamp) -> Int {
        state.withLock { state in
            let before = state.table.count
            state.table.fold(upTo: least)
            // Nothing that is held is covered anew by the mark for those that were dropped.
            if state.table.count < before {
                state.noteFold(least, 0)
                state.hasDropped = true
            }
            return state.table.count
        }
    }

    /// How many marks have become one, because there were too many, since this was last asked.
    package func takeFolded() -> Int {
        state.withLock { state in
            defer { state.folded = 0 }
            return state.folded
        }
    }
}

/// Somebody holds what is stamped so, or will: marks that are later are not dropped meanwhile.
package final class StampLease: Sendable {
    package let stamp: Stamp
    private let book: MarkBook
    private let isOver = Atomic<Bool>(false)

    fileprivate init(_ stamp: Stamp, _ book: MarkBook) {
        self.stamp = stamp
        self.book = book
    }

    deinit { end() }

    /// What was held is in its place, or will never be; the first call counts.
    package func end() {
        guard !isOver.exchange(true, ordering: .relaxed) else { return }
        book.end(self)
    }
}

/// A walk over everything that is in memory, for the least stamp.
struct StampSweep {
    private let memory: MemoryPlaces
    private var least: Stamp
    private var shard = 0
    /// Where in the shard it goes on; nil at its beginning.
    private var place: Int?

    init(_ book: MarkBook) {
        (least, memory) = book.state.withLock {
            (min($0.stamp, $0.leases.least ?? .last), $0.memory)
        }
    }

    /// Looks at up to `count` places; the least stamp when there are no more.
    mutating func next(atMost count: Int) -> Stamp? {
        guard shard < memory.shards.count else { return least }
        let (found, next) = memory.leastStamp(inShard: shard, below: place, atMost: count)
        least = min(least, found)
        place = next
        if next == nil { shard += 1 }
        return nil
    }
}

/// When marks that can be dropped are looked for, and how far.
struct MarkSearch {
    private var sweep: StampSweep?
    /// Fewer marks are not worth it.
    private var leastCount = 0

    /// Places in memory that are looked at under one lock, and how often in one go.
    static let placesMax = 1024
    private static let piecesMax = 8

    /// What nothing that is held is stamped before, if that is known by now and wanted.
    mutating func next(_ book: MarkBook, count: Int, marksMax: Int) -> Stamp? {
        if sweep == nil, count > max(leastCount, marksMax / 2) { sweep = StampSweep(book) }
        for _ in 0..<Self.piecesMax {
            guard let least = sweep?.next(atMost: Self.placesMax) else { continue }
            sweep = nil
            leastCount = count + marksMax / 8
            return least
        }
        return nil
    }

    /// So many marks are left.
    mutating func ended(count: Int) {
        leastCount = min(leastCount, count + count / 4)
    }
}
