package import Ground
import Synchronization
import Tiers

/// The memory tier of a node: entries by normalised URL, in shards, under one limit.
///
/// A look-up takes one shard's lock and nothing else. The limits on bytes and entries are strict:
/// room is made before anything is held, and when it cannot be made the answer is that it cannot be
/// kept.
package final class MemoryStore: Sendable {
    /// What the store is told at its start.
    package struct Settings: Sendable {
        /// Bytes, everything included.
        package var limitBytes: Int
        /// Entries; 0 for no limit.
        package var entriesMax: Int
        /// Shards, a power of two.
        package var shardCount: Int

        package init(limitBytes: Int, entriesMax: Int = 0, shardCount: Int = 16) {
            precondition(shardCount > 0 && shardCount & (shardCount - 1) == 0, "no power of two")
            self.limitBytes = limitBytes
            self.entriesMax = entriesMax
            self.shardCount = shardCount
        }
    }

    package let account: MemoryAccount
    /// What was invalidated.
    package let marks: InvalidationIndex
    private let hashing: KeyedHash
    /// Never raised or lowered but by ``lowerEntries(to:)``; 0 for no limit.
    let entriesMax: Atomic<Int>
    /// What holds of each limit; locked by nobody on a loop.
    let limits: Mutex<Limits>
    /// The limit on bytes that ``limits`` names, for those who may not wait.
    let configuredLimit: Atomic<Int>
    let shards: [Shard]
    private let entryCount = Atomic<Int>(0)
    package let evictions = EvictionCounters()
    /// The names of all entries.
    let fingerprints = FingerprintCounts()

    final class Shard: Sendable {
        let state: Mutex<MemoryShard>
        /// Bytes of the entries in it.
        let bytes = Atomic<Int>(0)
        /// The policy's inflation after the last eviction.
        let inflation = Atomic<UInt64>(0)

        init(_ shard: consuming sending MemoryShard) {
            state = Mutex(shard)
        }
    }

    /// An empty store; `hashing` is keyed by secrets of this process.
    package init(
        _ settings: Settings, hashing: KeyedHash, marks: InvalidationIndex = InvalidationIndex()
    ) {
        self.marks = marks
        account = MemoryAccount(limit: settings.limitBytes)
        entriesMax = Atomic(settings.entriesMax)
        limits = Mutex(Limits(configuredBytes: settings.limitBytes, pressureLimitBytes: nil))
        configuredLimit = Atomic(settings.limitBytes)
        self.hashing = hashing
        shards = (0..<settings.shardCount).map { _ in
            Shard(MemoryShard(policy: MemoryEvictionPolicy(expectedEntries: 1024)))
        }
        marks.attachMemory(contents)
    }

    /// Its shards and names, for those that the store holds.
    package var contents: MemoryContents {
        MemoryContents(shards: shards, fingerprints: fingerprints)
    }

    /// Entries that a look-up can find, and those that have their place but are not in it yet.
    package var count: Int { entryCount.load(ordering: .relaxed) }

    /// The keyed hash of the key in `range` of `bytes`.
    @inline(__always)
    package func hash(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64 {
        hashing(bytes, range)
    }

    /// The entry for the key in `range` of `bytes`; noted as used.
    ///
    /// `hash` is what ``hash(_:_:)`` gives for this key. What was invalidated is never found as
    /// what it was: every way to an entry in memory leads through here, or ``settled(_:)``.
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

    /// Makes an entry findable, in the place of those that it replaces; false if the limit on
    /// entries, or the share of its site, leaves no place for it, or it was invalidated.
    ///
    /// Its bytes are reserved already; only the limit on entries and the share of its site are kept
    /// here. What became stale by an invalidation stands there as stale.
    ///
    /// `begun` is when the request began that has brought it here, which is its stamp if it comes
    /// from another place than the disk.
    @discardableResult
    package func insert(_ entry: MemoryEntry, requestVersion: InvalidationVersion? = nil) -> Bool {
        insert(entry, requestVersion: requestVersion ?? entry.version) { _ in true }
    }

    /// The same of an entry for which nobody holds a lease: it stays only if it is still, when it
    /// has its place, where it was found.
    @discardableResult
    package func insert(_ entry: MemoryEntry, ifStillStored isThere: () -> Bool) -> Bool {
        insert(entry, requestVersion: .last) { _ in isThere() }
    }

    /// In the place of `former`, while that very entry is there.
    func insert(_ entry: MemoryEntry, replacing former: MemoryEntry) -> Bool {
        insert(entry, requestVersion: .last) { $0.contains(former) }
    }

    private func insert(
        _ entry: MemoryEntry, requestVersion: InvalidationVersion,
        where isFit: (borrowing MemoryShard) -> Bool
    ) -> Bool {
        var entry = entry
        while true {
            let number = marks.generation(isKeyOnly: false)
            // What is forgotten after that look was there for it, or has changed the number.
            guard let form = applyingMarks(to: entry), !marks.predatesForgottenMarks(requestVersion)
            else { return false }
            entry = form
            guard reserveShare(for: entry) else { return false }
            let outcome = position(entry, number, isFit)
            commitShare(of: entry, isInserted: outcome == .inserted)
            if outcome != .generationChanged { return outcome == .inserted }
        }
    }

    /// `number` and `isFit` have to hold of the moment in which the entry becomes findable.
    ///
    /// With the number nothing was invalidated since the entry was held against the marks: an
    /// invalidation looks for what it covers only after it has changed the number, so one of the
    /// two sees the other.
    private func position(
        _ entry: MemoryEntry, _ number: UInt64, _ isFit: (borrowing MemoryShard) -> Bool
    ) -> InsertionOutcome {
        // What replaces another needs no place, so nothing is evicted for it.
        if entriesMax.load(ordering: .relaxed) > 0 {
            let outcome = publish(entry, number, isFit, hasSlot: false)
            if outcome != .rejected { return outcome }
        }
        return reserveSlot() ? publish(entry, number, isFit, hasSlot: true) : .rejected
    }

    private enum InsertionOutcome {
        case inserted, rejected, generationChanged
    }

    /// An entry whose key has this keyed hash; nil if there is none.
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

    /// The entry for `key`, and how often it was asked for of late; looking is no use of it.
    package func peek(_ key: [UInt8]) -> (entry: MemoryEntry, frequency: UInt8)? {
        let hash = hash(key.span, 0..<key.count)
        return shard(hash).state.withLock { $0.peek(key.span, hash: hash) }
    }

    /// How many shards there are.
    package var shardCount: Int { shards.count }

    /// The entries at up to `count` places of shard `number`, from `place` on downwards, with how
    /// often each was asked for of late; the place to go on from, nil after the last.
    package func entries(
        inShard number: Int, below place: Int?, atMost count: Int
    ) -> (found: [(entry: MemoryEntry, frequency: UInt8)], next: Int?) {
        let (found, next) = shards[number].state.withLock {
            $0.entries(below: place, atMost: count)
        }
        return (found, next == 0 ? nil : next)
    }

    /// Counts an entry that is to come, evicting for it; false, with nothing counted, if there can
    /// be no place.
    private func reserveSlot() -> Bool {
        var current = count
        while true {
            let entriesMax = entriesMax.load(ordering: .relaxed)
            guard entriesMax == 0 || current < entriesMax else {
                guard evictOne(for: .entryLimit, skipsEntriesInUse: false).isEvicted else {
                    return false
                }
                current = count
                continue
            }
            let (exchanged, original) = entryCount.weakCompareExchange(
                expected: current, desired: current + 1, ordering: .relaxed)
            if exchanged { return true }
            current = original
        }
    }

    /// Makes an entry findable that has a place, or that takes one over from what it replaces; if
    /// not, nothing is changed, and a place is given back.
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

    /// Looks at an entry of a site that has to give one up.
    func evictUnlessTouched(of place: MemoryShare.ClockEntry, mayRetain: Bool)
        -> MemoryShard.SecondChanceOutcome
    {
        shard(place.hash).state.withLock { $0.evictUnlessTouched(of: place, mayRetain: mayRetain) }
    }

    /// True if the entry is still in the tier.
    func contains(_ place: MemoryShare.ClockEntry) -> Bool {
        shard(place.hash).state.withLock { $0.find(place) != nil }
    }

    /// An entry of a site was evicted for another one.
    func recordShareEviction(_ entry: MemoryEntry) {
        recordRemoval([entry])
        evictions.add(.share)
    }

    func recordRemoval(_ gone: [MemoryEntry]) {
        for entry in gone {
            count(bytesOf: entry, sign: -1)
            entry.share?.entryRemoved(bytes: entry.indexedBytes)
        }
        entryCount.subtract(gone.count, ordering: .relaxed)
    }

    /// The entry's bytes now belong to the index (`sign` 1), or no longer do (-1).
    private func count(bytesOf entry: MemoryEntry, sign: Int) {
        let bytes = sign * entry.indexedBytes
        account.addIndexedBytes(bytes, overheadBytes: sign * entry.overheadBytes)
        shard(entry.hash).bytes.add(bytes, ordering: .relaxed)
        if sign > 0 { fingerprints.add(entry) } else { fingerprints.remove(entry) }
    }

    @inline(__always)
    func shard(_ hash: UInt64) -> Shard {
        shards[MemoryEvictionPolicy.shard(of: hash, among: shards.count)]
    }
}

/// Where entries stand in memory, and under which names: what their marks have to look at.
///
/// Not the store, which holds its marks.
package struct MemoryContents: Sendable {
    var shards: [MemoryStore.Shard] = []
    var fingerprints = FingerprintCounts()

    /// The least stamp at up to `count` places of shard `number`, from `place` on downwards; the
    /// place to go on from, nil after the last.
    ///
    /// At the last one what came in since the first is counted, too, wherever it stands.
    package func leastVersion(
        inShard number: Int, below place: Int?, atMost count: Int
    ) -> (least: InvalidationVersion, next: Int?) {
        let (least, next) = shards[number].state.withLock {
            $0.leastVersion(below: place, atMost: count)
        }
        return (least, next == 0 ? nil : next)
    }
}
