import Glibc
import Ground
import Synchronization
import Tiers

/// One shard of the memory tier with its lock and statistics.
final class LockedMemoryShard: Sendable {
    let state: Mutex<MemoryShard>
    /// Bytes of the shard's entries.
    let bytes = Atomic<Int>(0)
    /// The policy's inflation after the last eviction.
    let inflation = Atomic<UInt64>(0)

    init(_ shard: consuming sending MemoryShard) {
        state = Mutex(shard)
    }
}

/// One shard of the memory tier, under one lock: the eviction policy and the entries.
///
/// An entry's index in `entries` is its `EntryID`. Removed entries are returned, and released
/// outside the lock.
struct MemoryShard: ~Copyable {
    private var policy: MemoryEvictionPolicy
    private var entries: [MemoryEntry?] = []
    /// The least version of entries inserted since the last scan of all positions began.
    private var leastInsertedVersion = InvalidationVersion.last

    init(policy: consuming MemoryEvictionPolicy) {
        self.policy = policy
    }

    /// The policy's inflation; see `MemoryEvictionPolicy.inflation`.
    var inflation: UInt64 { policy.inflation }

    /// Returns the entry for the key in `range` of `bytes`, and records the use.
    mutating func find(
        _ bytes: Span<UInt8>, _ range: Range<Int>, hash: UInt64
    ) -> MemoryEntry? {
        var candidate = policy.first(hash)
        while let current = candidate {
            if let entry = entries[Int(current.id.index)], hasKey(entry, bytes, range) {
                policy.recordHit(current.id)
                return entry
            }
            candidate = policy.next(after: current)
        }
        return nil
    }

    /// Returns the id of the first entry with this keyed hash for which `isMeant` is true.
    private func id(_ hash: UInt64, where isMeant: (MemoryEntry) -> Bool) -> EntryID? {
        var candidate = policy.first(hash)
        while let current = candidate {
            if let entry = entries[Int(current.id.index)], isMeant(entry) { return current.id }
            candidate = policy.next(after: current)
        }
        return nil
    }

    /// Returns an entry whose key has this keyed hash.
    func entry(withHash hash: UInt64) -> MemoryEntry? {
        id(hash) { $0.hash == hash }.flatMap { entries[Int($0.index)] }
    }

    /// Returns the entry for `key` and its recent frequency, without recording a use.
    func peek(_ key: Span<UInt8>, hash: UInt64) -> FoundEntry? {
        guard let id = id(hash, where: { hasKey($0, key, 0..<key.count) }),
            let entry = entries[Int(id.index)]
        else { return nil }
        return (entry, policy.frequency(of: id))
    }

    /// Returns true if this very entry is here.
    func contains(_ entry: MemoryEntry) -> Bool { id(entry.hash) { $0 === entry } != nil }

    /// Inserts an entry in place of the one with its key, which is appended to `replaced`.
    ///
    /// Unless `addsNew`, only if it replaces another: false, with nothing changed, if there is
    /// none.
    mutating func insert(_ entry: MemoryEntry, addsNew: Bool, replaced: inout [MemoryEntry]) -> Bool
    {
        removeAll(hash: entry.hash, into: &replaced) { $0.hasSameKey(as: entry) }
        guard addsNew || !replaced.isEmpty else { return false }
        let cost = UInt32(clamping: entry.overheadBytes + entry.body.capacityBytes)
        let id = policy.admit(hash: entry.hash, cost: cost)
        while entries.count <= Int(id.index) { entries.append(nil) }
        precondition(entries[Int(id.index)] == nil, "place \(id) given twice")
        entries[Int(id.index)] = entry
        leastInsertedVersion = min(leastInsertedVersion, entry.version)
        return true
    }

    /// Removes this very entry if it is still here.
    mutating func remove(_ entry: MemoryEntry, into removed: inout [MemoryEntry]) {
        removeAll(hash: entry.hash, into: &removed) { $0 === entry }
    }

    /// Returns the value of an entry of `bytes` that is to be admitted.
    func gain(_ hash: UInt64, bytes: Int) -> UInt64 {
        policy.gain(hash: hash, cost: UInt32(clamping: bytes))
    }

    /// Records that an entry was worth less than what would have been evicted for it.
    mutating func recordRejection(_ hash: UInt64) {
        policy.recordRejection(hash: hash)
    }

    /// Removes the least valuable entry, if it is worth no more than `maxGain`.
    ///
    /// If `skipsEntriesInUse`, an entry that someone is reading is requeued, because removing it
    /// frees nothing.
    mutating func evict(skipsEntriesInUse: Bool, maxGain: UInt64) -> EvictionOutcome {
        guard let victim = policy.nextVictim(for: maxGain) else {
            return policy.count == 0 ? .empty : .allAboveMaxGain
        }
        let place = Int(victim.id.index)
        if skipsEntriesInUse, entries[place] != nil, !isKnownUniquelyReferenced(&entries[place]) {
            policy.requeue(victim)
            return .skippedInUse
        }
        policy.evict(victim)
        guard let entry = entries[place].take() else {
            preconditionFailure("no entry at \(victim)")
        }
        return .evicted(entry)
    }

    /// Returns the entries at up to `count` positions below `place`, downwards, with their recent
    /// frequencies, and the next position, 0 after the last.
    func entries(below place: Int?, atMost count: Int) -> (found: [FoundEntry], next: Int) {
        let end = min(place ?? entries.count, entries.count)
        let start = max(0, end - count)
        var found: [FoundEntry] = []
        for index in start..<end {
            guard let entry = entries[index] else { continue }
            found.append((entry, policy.frequency(of: EntryID(index: UInt32(index)))))
        }
        return (found, start)
    }

    /// Returns the least version at up to `count` positions below `place`, downwards, and the next
    /// position, 0 after the last.
    ///
    /// `nil` starts a scan; its last step includes entries inserted meanwhile, wherever they are.
    mutating func leastVersion(below place: Int?, atMost count: Int) -> (
        least: InvalidationVersion, next: Int
    ) {
        if place == nil { leastInsertedVersion = .last }
        let end = min(place ?? entries.count, entries.count)
        let start = max(0, end - count)
        var least = start == 0 ? leastInsertedVersion : .last
        for index in start..<end {
            guard let version = entries[index]?.version else { continue }
            least = min(least, version)
        }
        return (least, start)
    }

    /// An entry with its recent frequency.
    typealias FoundEntry = (entry: MemoryEntry, frequency: UInt8)

    /// The outcome of asking a shard for a victim.
    enum EvictionOutcome {
        /// The entry was removed.
        case evicted(MemoryEntry)
        /// The least valuable entry was in use and has been requeued.
        case skippedInUse
        /// All entries are worth more than `maxGain`.
        case allAboveMaxGain
        /// The shard has no entries.
        case empty

        var isEvicted: Bool { if case .evicted = self { true } else { false } }
    }

    /// The outcome of examining an entry of a site that has to give one up.
    enum SecondChanceOutcome {
        /// The entry is no longer here.
        case absent
        /// The entry was used since its last examination; carries its frequency.
        case retained(frequency: UInt8)
        /// The entry was removed.
        case evicted(MemoryEntry)
    }

    /// Removes the entry, unless `mayRetain` and it was used since its last examination.
    ///
    /// A retained entry with a high frequency has it halved, because the count saturates.
    mutating func evictUnlessTouched(of place: MemoryShare.ClockEntry, mayRetain: Bool)
        -> SecondChanceOutcome
    {
        guard let id = find(place) else { return .absent }
        let frequency = policy.frequency(of: id)
        if mayRetain, frequency > place.frequency {
            return .retained(frequency: policy.halveFrequency(id))
        }
        policy.remove(id)
        guard let entry = entries[Int(id.index)].take() else { return .absent }
        return .evicted(entry)
    }

    /// Returns the id of this very entry; `nil` if it is no longer here.
    func find(_ place: MemoryShare.ClockEntry) -> EntryID? {
        id(place.hash) { ObjectIdentifier($0) == place.entry }
    }

    /// Removes the entries with this keyed hash for which `isMeant` is true, and appends them to
    /// `removed`.
    private mutating func removeAll(
        hash: UInt64, into removed: inout [MemoryEntry], where isMeant: (MemoryEntry) -> Bool
    ) {
        var found: [EntryID] = []
        var candidate = policy.first(hash)
        while let current = candidate {
            if let entry = entries[Int(current.id.index)], isMeant(entry) {
                found.append(current.id)
            }
            candidate = policy.next(after: current)
        }
        for id in found {
            policy.remove(id)
            if let entry = entries[Int(id.index)].take() { removed.append(entry) }
        }
    }

    @inline(__always)
    private func hasKey(
        _ entry: MemoryEntry, _ bytes: Span<UInt8>, _ range: Range<Int>
    ) -> Bool {
        guard entry.headStart == range.count else { return false }
        return unsafe bytes.withUnsafeBytes { all in
            unsafe entry.keyAndHead.withUnsafeBytes { own in
                guard let left = own.baseAddress, let right = all.baseAddress else {
                    return range.isEmpty
                }
                return unsafe memcmp(left, right + range.lowerBound, range.count) == 0
            }
        }
    }
}
