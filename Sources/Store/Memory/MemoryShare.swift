import Ground
import Synchronization

/// The part of memory that the entries of one site may take, and which of them goes first.
///
/// What counts is what a look-up can find, heads and bookkeeping included. The limit holds at every
/// instant: an entry is counted before it gets in, and others of the same site leave for it. In
/// which order is a clock's: the oldest goes, unless it was asked for since it was last looked at.
/// That is coarser than the policy of the whole tier, which goes on choosing among all entries when
/// the tier is full. Hits do not come here.
package final class MemoryShare: Sendable {
    /// An entry that is, or was, in the tier.
    struct ClockEntry {
        var hash: UInt64
        var entry: ObjectIdentifier
        /// How often it had been asked for when it was last looked at.
        var frequency: UInt8 = 0
    }

    private struct ClockQueue {
        /// The next to be looked at is at `first`; what stands before it is gone.
        var entries: [ClockEntry] = []
        var first = 0
        /// Entries of the site that are in the tier.
        var live = 0
    }

    /// Percent of the tier's limit.
    private let percent: Atomic<Int>
    private let used = Atomic<Int>(0)
    private let clock = Mutex(ClockQueue())

    /// - Parameter percent: of the tier's limit, 1 to 100.
    package init(percent: Int) {
        self.percent = Atomic(percent)
    }

    /// Bytes of the site's entries that a look-up can find, and of those about to get in.
    package var usedBytes: Int { used.load(ordering: .relaxed) }

    /// A lower share frees nothing by itself: entries leave when the next one comes.
    package func setPercent(_ percent: Int) {
        self.percent.store(percent, ordering: .relaxed)
    }

    /// What the share is of a tier of so many bytes.
    func limitBytes(of tierBytes: Int) -> Int {
        Int(Double(tierBytes) * Double(percent.load(ordering: .relaxed)) / 100)
    }

    /// Counts `bytes` if they fit under `limit`; otherwise counts nothing and gives false.
    func reserve(_ bytes: Int, limit: Int) -> Bool {
        var current = usedBytes
        while true {
            guard bytes <= limit - current else { return false }
            let (exchanged, original) = used.weakCompareExchange(
                expected: current, desired: current + bytes, ordering: .relaxed)
            if exchanged { return true }
            current = original
        }
    }

    func release(_ bytes: Int) {
        used.subtract(bytes, ordering: .relaxed)
    }

    /// The entry is in the tier now, and the last to be looked at.
    func entryInserted(_ place: ClockEntry) {
        clock.withLock { clock in
            clock.live += 1
            clock.entries.append(place)
        }
    }

    /// An entry left the tier, whoever wanted it to.
    func entryRemoved(bytes: Int) {
        release(bytes)
        clock.withLock { $0.live -= 1 }
    }

    /// The next to be looked at; the caller removes it from the tier or has it looked at again.
    func popOldest() -> ClockEntry? {
        clock.withLock { clock in
            guard clock.first < clock.entries.count else { return nil }
            let place = clock.entries[clock.first]
            clock.first += 1
            if clock.first * 2 > clock.entries.count {
                clock.entries.removeFirst(clock.first)
                clock.first = 0
            }
            return place
        }
    }

    func requeue(at place: ClockEntry) {
        clock.withLock { $0.entries.append(place) }
    }

    var queuedCount: Int { clock.withLock { $0.entries.count - $0.first } }

    /// Places of entries that have left by another way, so many that they are to be dropped: more
    /// than those of entries in the tier.
    var needsCompaction: Bool {
        clock.withLock { $0.entries.count - $0.first > 2 * $0.live + 64 }
    }
}

/// Shares of memory that sites have of their own.
extension MemoryStore {
    /// Entries that are left where they are because they were asked for, before one goes anyway.
    private static let secondChancesMax = 256

    /// Counts an entry that is to get in among those of its site, others of which leave for it;
    /// false, with nothing counted, if there is no room.
    func reserveShare(for entry: MemoryEntry) -> Bool {
        guard let share = entry.share else { return true }
        let bytes = entry.indexedBytes
        let limit = share.limitBytes(of: account.limitBytes)
        guard bytes <= limit else { return false }
        while !share.reserve(bytes, limit: limit) {
            guard evictOne(of: share) else { return false }
        }
        return true
    }

    /// The entry got in, or did not.
    func commitShare(of entry: MemoryEntry, isInserted: Bool) {
        guard let share = entry.share else { return }
        guard isInserted else { return share.release(entry.indexedBytes) }
        let own = MemoryShare.ClockEntry(hash: entry.hash, entry: ObjectIdentifier(entry))
        // Half of the places are of no entry, so each costs one look at most. One that is like the
        // entry's own is of one that has left, or of this one before it did.
        var looks = share.queuedCount
        while looks > 0, share.needsCompaction, let place = share.popOldest() {
            looks -= 1
            if place.entry != own.entry, contains(place) { share.requeue(at: place) }
        }
        share.entryInserted(own)
    }

    /// Removes the entry of a site that it can best do without; false if there is none.
    private func evictOne(of share: MemoryShare) -> Bool {
        var kept = 0
        while let place = share.popOldest() {
            switch evictUnlessTouched(of: place, mayRetain: kept < Self.secondChancesMax) {
            case .absent: continue
            case .retained(let frequency):
                kept += 1
                share.requeue(
                    at: .init(hash: place.hash, entry: place.entry, frequency: frequency))
            case .evicted(let entry):
                recordShareEviction(entry)
                return true
            }
        }
        return false
    }
}
