import Ground
import Synchronization

/// The part of memory that the entries of one site may use, and their eviction order.
///
/// Counted are entries that a look-up can find, heads and bookkeeping included. The limit holds at
/// every instant: an entry is counted before it is inserted, and others of the same site are
/// evicted for it. The order is that of a clock (second chance): the oldest is evicted, unless it
/// was used since its last examination. That is coarser than the policy of the whole tier, which
/// still selects among all entries when the tier is full. Hits do not access it. Thread-safe.
package final class MemoryShare: Sendable {
    /// The position of an entry, which may have been removed since, in the clock.
    struct ClockEntry {
        var hash: UInt64
        var entry: ObjectIdentifier
        /// The frequency at the last examination.
        var frequency: UInt8 = 0
    }

    private struct ClockQueue {
        /// Positions in the clock; the next one to examine is at `first`, and those before it are
        /// done.
        var entries: [ClockEntry] = []
        var first = 0
        /// Number of the site's entries in the tier.
        var live = 0
    }

    /// Percentage of the tier's limit.
    private let percent: Atomic<Int>
    private let used = Atomic<Int>(0)
    private let clock = Mutex(ClockQueue())

    /// Creates a share of `percent` of the tier's limit, from 1 to 100.
    package init(percent: Int) {
        self.percent = Atomic(percent)
    }

    /// Bytes of the site's entries that a look-up can find, and of those about to be inserted.
    package var usedBytes: Int { used.load(ordering: .relaxed) }

    /// Sets the share in percent; a lower one frees nothing until the next entry arrives.
    package func setPercent(_ percent: Int) {
        self.percent.store(percent, ordering: .relaxed)
    }

    /// Returns the limit in bytes for a tier of `tierBytes`.
    func limitBytes(of tierBytes: Int) -> Int {
        Int(Double(tierBytes) * Double(percent.load(ordering: .relaxed)) / 100)
    }

    /// Counts `bytes` if they fit under `limit`; otherwise counts nothing and returns false.
    func reserve(_ bytes: Int, limit: Int) -> Bool {
        used.add(bytes, ifAtMost: limit)
    }

    /// Subtracts bytes that are no longer in use.
    func release(_ bytes: Int) {
        used.subtract(bytes, ordering: .relaxed)
    }

    /// Appends the position of an inserted entry, to be examined last.
    func entryInserted(_ place: ClockEntry) {
        clock.withLock { clock in
            clock.live += 1
            clock.entries.append(place)
        }
    }

    /// Records that an entry was removed from the tier, for any reason.
    func entryRemoved(bytes: Int) {
        release(bytes)
        clock.withLock { $0.live -= 1 }
    }

    /// Removes and returns the next position; the caller removes its entry or requeues the
    /// position.
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

    /// Appends the position of a retained entry, to be examined last.
    func requeue(at place: ClockEntry) {
        clock.withLock { $0.entries.append(place) }
    }

    /// Number of positions in the clock.
    var queuedCount: Int { clock.withLock { $0.entries.count - $0.first } }

    /// True if positions of removed entries outnumber those of entries in the tier and should be
    /// dropped.
    var needsCompaction: Bool {
        clock.withLock { $0.entries.count - $0.first > 2 * $0.live + 64 }
    }
}

// Memory shares of sites.
extension MemoryStore {
    /// Maximum number of used entries retained before one is evicted anyway.
    private static let secondChancesMax = 256

    /// Counts an entry to be inserted against its site's share, evicting others of the site; an
    /// entry without a share always fits.
    ///
    /// - Returns: false, with nothing counted, if there is no space.
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

    /// Completes ``reserveShare(for:)``, depending on whether the entry was inserted.
    func commitShare(of entry: MemoryEntry, isInserted: Bool) {
        guard let share = entry.share else { return }
        guard isInserted else { return share.release(entry.indexedBytes) }
        let own = MemoryShare.ClockEntry(hash: entry.hash, entry: ObjectIdentifier(entry))
        // At least half of the positions belong to removed entries, so each costs one examination
        // at most. A position equal to the entry's own belongs to a removed entry, or to this one
        // before its removal.
        var looks = share.queuedCount
        while looks > 0, share.needsCompaction, let place = share.popOldest() {
            looks -= 1
            guard place.entry != own.entry else { continue }
            let isThere = shard(place.hash).state.withLock { $0.find(place) != nil }
            if isThere { share.requeue(at: place) }
        }
        share.entryInserted(own)
    }

    /// Evicts the oldest entry of a site that was not used since its last examination, or any one
    /// if many were; false if there is none.
    private func evictOne(of share: MemoryShare) -> Bool {
        var kept = 0
        while let place = share.popOldest() {
            let mayRetain = kept < Self.secondChancesMax
            let outcome = shard(place.hash).state.withLock {
                $0.evictUnlessTouched(of: place, mayRetain: mayRetain)
            }
            switch outcome {
            case .absent: continue
            case .retained(let frequency):
                kept += 1
                share.requeue(
                    at: .init(hash: place.hash, entry: place.entry, frequency: frequency))
            case .evicted(let entry):
                recordRemoval([entry])
                evictions.add(.share)
                return true
            }
        }
        return false
    }
}
