package import Ground
import Synchronization
import Tiers

/// Settings of a ``MemoryStore``.
package struct MemoryStoreSettings: Sendable {
    /// The limit in bytes, everything included.
    package var limitBytes: Int
    /// Maximum number of entries; 0 for no limit.
    package var entriesMax: Int
    /// Number of shards, a power of two.
    package var shardCount: Int

    /// Creates settings from their parts.
    package init(limitBytes: Int, entriesMax: Int = 0, shardCount: Int = 16) {
        precondition(shardCount > 0 && shardCount & (shardCount - 1) == 0, "no power of two")
        self.limitBytes = limitBytes
        self.entriesMax = entriesMax
        self.shardCount = shardCount
    }
}

/// The memory tier of a node: entries by normalised URL, in shards, under one limit; thread-safe.
///
/// A look-up takes one shard's lock and nothing else. The limits on bytes and entries are strict:
/// space is reserved before anything is held, and if that fails, the response is not stored.
package final class MemoryStore: Sendable {
    /// The account of the tier's bytes.
    package let account: MemoryAccount
    /// The invalidations of the node.
    package let marks: InvalidationIndex
    private let hashing: KeyedHash
    /// Maximum number of entries; 0 for no limit.
    ///
    /// Changed only by `lowerEntries(to:)`.
    let entriesMax: Atomic<Int>
    /// The limit in bytes under memory pressure, `nil` without pressure; locked while limits
    /// change, never on an event loop.
    let pressureLimit = Mutex<Int?>(nil)
    let configuredLimit: Atomic<Int>
    let shards: [LockedMemoryShard]
    private let entryCount = Atomic<Int>(0)
    /// Counters of removed entries.
    package let evictions = EvictionCounters()
    /// Fingerprints of the names of all entries.
    let fingerprints = FingerprintCounts()

    /// Creates an empty store; `hashing` is keyed with secrets of this process.
    package init(
        _ settings: MemoryStoreSettings, hashing: KeyedHash,
        marks: InvalidationIndex = InvalidationIndex()
    ) {
        self.marks = marks
        account = MemoryAccount(limit: settings.limitBytes)
        entriesMax = Atomic(settings.entriesMax)
        configuredLimit = Atomic(settings.limitBytes)
        self.hashing = hashing
        shards = (0..<settings.shardCount).map { _ in
            LockedMemoryShard(MemoryShard(policy: MemoryEvictionPolicy(expectedEntries: 1024)))
        }
        marks.attachMemory(contents)
    }

    /// The shards and names, for an index of invalidations that the store references.
    package var contents: MemoryContents {
        MemoryContents(shards: shards, fingerprints: fingerprints)
    }

    /// Number of entries that a look-up can find, and of reserved slots.
    package var count: Int { entryCount.load(ordering: .relaxed) }

    /// Returns the keyed hash of the key in `range` of `bytes`.
    @inline(__always)
    package func hash(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64 {
        hashing(bytes, range)
    }

    /// Returns the entry for the key in `range` of `bytes`, and records the use.
    ///
    /// `hash` is the result of ``hash(_:_:)`` for this key. An invalidated entry is never returned
    /// unchanged: every access to an entry in memory applies the marks, here or with
    /// ``entryAfterMarks(to:)``.
    package func find(
        _ bytes: Span<UInt8>, _ range: Range<Int>, hash: UInt64
    ) -> MemoryEntry? {
        while true {
            let found = shard(hash).state.withLock {
                $0.find(bytes, range, hash: hash)
            }
            guard let found else { return nil }
            if isUpToDate(found) { return found }
            if let settled = applyMarks(found) { return settled }
        }
    }

    /// Inserts an entry in place of the one with its key; its bytes are already reserved.
    ///
    /// An entry that an invalidation made stale is inserted as stale.
    ///
    /// - Parameters:
    ///   - entry: the entry.
    ///   - requestVersion: the invalidation version when the request that brought the entry here
    ///     began; `nil` for the entry's own version, which is right unless the entry comes from
    ///     disk.
    /// - Returns: false if the limit on entries or the share of its site leaves no space, or if it
    ///   was purged.
    @discardableResult
    package func insert(_ entry: MemoryEntry, requestVersion: InvalidationVersion? = nil) -> Bool {
        insert(entry, requestVersion: requestVersion ?? entry.version) { _ in true }
    }

    /// Inserts an entry whose version is not pinned, if `isThere` still confirms, at that moment,
    /// that its source stores it; returns false if it is not inserted.
    @discardableResult
    package func insert(_ entry: MemoryEntry, ifStillStored isThere: () -> Bool) -> Bool {
        insert(entry, requestVersion: .last) { _ in isThere() }
    }

    /// Inserts an entry in place of `former`, if that very entry is still there.
    func insert(_ entry: MemoryEntry, replacing former: MemoryEntry) -> Bool {
        insert(entry, requestVersion: .last) { $0.contains(former) }
    }

    /// Applies the marks to an entry and inserts it, if `isFit` at that moment; repeated if a mark
    /// is applied meanwhile.
    private func insert(
        _ entry: MemoryEntry, requestVersion: InvalidationVersion,
        where isFit: (borrowing MemoryShard) -> Bool
    ) -> Bool {
        var entry = entry
        while true {
            let number = marks.generation(isKeyOnly: false)
            // Marks forgotten after that check were there for it, or have changed the number.
            guard let form = entryAfterMarks(to: entry),
                !marks.predatesForgottenMarks(requestVersion)
            else { return false }
            entry = form
            guard reserveShare(for: entry) else { return false }
            let outcome = position(entry, number, isFit)
            commitShare(of: entry, isInserted: outcome == .inserted)
            if outcome != .generationChanged { return outcome == .inserted }
        }
    }

    /// Inserts an entry if `number` and `isFit` hold at that moment.
    ///
    /// With `number` unchanged, nothing was invalidated since the entry was checked: an
    /// invalidation looks for covered entries only after it has changed the number, so one of the
    /// two sees the other.
    private func position(
        _ entry: MemoryEntry, _ number: UInt64, _ isFit: (borrowing MemoryShard) -> Bool
    ) -> InsertionOutcome {
        // An entry that replaces another needs no slot, so nothing is evicted for it.
        if entriesMax.load(ordering: .relaxed) > 0 {
            let outcome = publish(entry, number, isFit, hasSlot: false)
            if outcome != .rejected { return outcome }
        }
        return reserveSlot() ? publish(entry, number, isFit, hasSlot: true) : .rejected
    }

    /// The outcome of an attempt to insert an entry; after `generationChanged`, it has to be
    /// checked against the marks again.
    private enum InsertionOutcome {
        case inserted, rejected, generationChanged
    }

    /// Returns an entry whose key has this keyed hash; `nil` if there is none.
    package func entry(withHash hash: UInt64) -> MemoryEntry? {
        shard(hash).state.withLock { $0.entry(withHash: hash) }
    }

    /// Removes this very entry; false if it was no longer there.
    @discardableResult
    package func remove(_ entry: MemoryEntry) -> Bool {
        var removed: [MemoryEntry] = []
        shard(entry.hash).state.withLock { $0.remove(entry, into: &removed) }
        recordRemoval(removed)
        return !removed.isEmpty
    }

    /// Returns the entry for `key` and its recent frequency, without recording a use.
    package func peek(_ key: [UInt8]) -> (entry: MemoryEntry, frequency: UInt8)? {
        let hash = hash(key.span, 0..<key.count)
        return shard(hash).state.withLock { $0.peek(key.span, hash: hash) }
    }

    /// Number of shards.
    package var shardCount: Int { shards.count }

    /// Returns the entries at up to `count` positions of one shard, with their recent frequencies.
    ///
    /// - Parameters:
    ///   - number: the shard, from 0 to below ``shardCount``.
    ///   - place: where to continue, downwards; `nil` to begin at the end.
    ///   - count: maximum number of positions to examine.
    /// - Returns: the entries, and the next position, `nil` after the last.
    package func entries(
        inShard number: Int, below place: Int?, atMost count: Int
    ) -> (found: [(entry: MemoryEntry, frequency: UInt8)], next: Int?) {
        let (found, next) = shards[number].state.withLock {
            $0.entries(below: place, atMost: count)
        }
        return (found, next == 0 ? nil : next)
    }

    /// Reserves a slot for an entry, evicting others; false, with nothing reserved, if that fails.
    private func reserveSlot() -> Bool {
        while true {
            let most = entriesMax.load(ordering: .relaxed)
            if entryCount.add(1, ifAtMost: most == 0 ? .max : most) { return true }
            let eviction = evictOne(for: .entryLimit, skipsEntriesInUse: false)
            guard eviction.isEvicted else { return false }
        }
    }

    /// Inserts an entry that has a slot, or replaces another and takes over its slot.
    ///
    /// On failure nothing is changed, and a slot is released.
    private func publish(
        _ entry: MemoryEntry, _ number: UInt64, _ isFit: (borrowing MemoryShard) -> Bool,
        hasSlot: Bool
    ) -> InsertionOutcome {
        var replaced: [MemoryEntry] = []
        let shard = shard(entry.hash)
        count(bytesOf: entry, sign: 1)
        let outcome = shard.state.withLock { state -> InsertionOutcome in
            guard marks.generation(isKeyOnly: false) == number else { return .generationChanged }
            guard isFit(state) else { return .rejected }
            return state.insert(entry, addsNew: hasSlot, replaced: &replaced)
                ? .inserted : .rejected
        }
        for gone in replaced {
            count(bytesOf: gone, sign: -1)
            gone.share?.entryRemoved(bytes: gone.indexedBytes)
        }
        if outcome != .inserted { count(bytesOf: entry, sign: -1) }
        let placesNeeded = (outcome == .inserted ? 1 : 0) - replaced.count
        entryCount.add(placesNeeded - (hasSlot ? 1 : 0), ordering: .relaxed)
        return outcome
    }

    /// Subtracts removed entries from the counts of the tier, the shards and the sites.
    func recordRemoval(_ gone: [MemoryEntry]) {
        for entry in gone {
            count(bytesOf: entry, sign: -1)
            entry.share?.entryRemoved(bytes: entry.indexedBytes)
        }
        entryCount.subtract(gone.count, ordering: .relaxed)
    }

    /// Adds the entry's bytes to the indexed ones (`sign` 1), or subtracts them (-1).
    private func count(bytesOf entry: MemoryEntry, sign: Int) {
        let bytes = sign * entry.indexedBytes
        account.addIndexedBytes(bytes, overheadBytes: sign * entry.overheadBytes)
        shard(entry.hash).bytes.add(bytes, ordering: .relaxed)
        if sign > 0 { fingerprints.add(entry) } else { fingerprints.remove(entry) }
    }

    @inline(__always)
    func shard(_ hash: UInt64) -> LockedMemoryShard {
        shards[MemoryEvictionPolicy.shard(of: hash, among: shards.count)]
    }
}

/// The entries in memory and their names, as the pruning of marks examines them.
///
/// Not the store itself, which references the marks.
package struct MemoryContents: Sendable {
    var shards: [LockedMemoryShard] = []
    var fingerprints = FingerprintCounts()

    /// Returns the least version at up to `count` positions of one shard, from `place` downwards,
    /// and the next position, `nil` after the last.
    ///
    /// The last step includes entries inserted since the first, wherever they are.
    package func leastVersion(
        inShard number: Int, below place: Int?, atMost count: Int
    ) -> (least: InvalidationVersion, next: Int?) {
        let (least, next) = shards[number].state.withLock {
            $0.leastVersion(below: place, atMost: count)
        }
        return (least, next == 0 ? nil : next)
    }
}
