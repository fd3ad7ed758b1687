package import Ground

/// The eviction policy of one shard of memory; bodies, keys and locks are managed by the caller.
///
/// The caller keeps its objects in an array indexed by ``EntryID/index``, and calls under the
/// shard's lock. Limits apply to the node, over all shards, so they are also the caller's task:
/// before it admits an entry, it evicts others, here or in another shard, until there is space.
/// ``MemoryAdmission`` decides for which new entries, and from which shard.
///
/// **Objective.** A miss in memory costs one disk read whatever its size, so the policy maximises
/// hits per byte kept: an entry requested *f* times is worth *f* / cost. That is GDSF (Cherkasova,
/// HPL-98-69, 1998): value = *L* + weight / cost, evict the least, and set *L*, the *inflation*, to
/// the value of the last victim, so that entries no longer requested are overtaken. Three details
/// differ:
///
/// - *A hit only counts.* The entry keeps its position in its queue. If it was hit meanwhile when
///   its turn to be evicted comes, it is queued again at its new value (as in CLOCK and S3-FIFO). A
///   hit thus writes one byte, and the result is slightly better on every trace than exact GDSF.
/// - *New entries weigh a fifth* of an entry requested once more, so that a scan passes through a
///   small part of the memory. This is the small queue of S3-FIFO (Yang et al., SOSP 2023), but
///   sensitive to size.
/// - *A ghost list* keeps the frequency of entries evicted within the last 2 × ``bytes`` of
///   evictions; one that returns is queued with that frequency plus 2 (requested, and evicted
///   wrongly).
///
/// Values are rounded to four steps an octave, so entries of equal weight / cost share a queue in
/// which arrival order is value order: 168 queues instead of a heap, constant time for everything.
///
/// **Figures.** Object miss ratio at 1, 5 and 10 % of the footprint (`nuthatch-sim eviction`). The
/// best of the policies in libCacheSim is GDSF, except (a) ARC and (s) S3-FIFO:
///
/// | trace | this | best other | S3-FIFO |
/// |---|---|---|---|
/// | adaptsize_web | .6611 .5998 .5777 | .6758 .6040 .5809 | .7211 .6463 .6225 |
/// | cloudphysics_io | .8199 .7909 .7441 | .8218 .8031a .7418s | .8232 .8051 .7418 |
/// | cache2k_web12_unit | .5732 .3402 .2706 | .5665 .3515 .2775s | .5900 .3519 .2775 |
///
/// The constants lie in the middle of a plateau: with new entries at ¼ to ⅙ and a horizon of 1.8 to
/// 2.5 all nine stay within one point of the best other. Eight shards cost at most 0.4 points if
/// the shard that evicts is always the one with the least ``inflation``, and 1 if they take turns.
/// A shard should hold at least some dozens of entries.
///
/// **Rejected.** S3-FIFO: 4 to 5 points behind on adaptsize_web, because it ignores size. Its small
/// queue before a main queue ordered by value: still 2 to 4 points behind there, because four keys
/// in five are requested once, and that queue drops small ones as early as large ones. Exact GDSF:
/// 3.7 points behind S3-FIFO on cloudphysics_io at 10 %, which has a loop that exact GDSF always
/// misses. No ghost list: 3 points worse there. A maximum frequency of 3: up to 1.3 points worse on
/// cache2k_web12. Halving frequencies at each turn: no better, even where popularity drifts.
///
/// **Cost.** An entry takes 33 bytes and 10.7 to 21.3 of the index; the ghost list takes as much as
/// the index: 54 to 76 bytes in all where `expectedEntries` was right.
package struct MemoryEvictionPolicy: ~Copyable {
    private var index: EntryIndex
    private var ghosts: GhostList
    private var queues = ValueQueues()
    /// The frequency of each entry by id: the initial one, which a ghost increases, plus the hits
    /// since.
    ///
    /// Saturates at ``frequencyMax``; one more means that the entry was requested since it was
    /// queued.
    private var frequencies: [UInt8] = []
    /// The first of the free ids, chained by ``QueuedEntry/next``.
    private var freeHead = ValueQueues.none
    private var evictedBytes: UInt64 = 0

    /// The sum of the entries' costs in bytes.
    package private(set) var bytes: UInt64 = 0

    private static let frequencyMax: UInt8 = 15
    /// The frequency added to an entry that returns from the ghost list.
    private static let returnBonus: UInt8 = 2
    /// The number of hit entries that one call of ``nextVictim(for:)`` queues again at most; after
    /// them it evicts regardless.
    private static let requeuedMax = 1024

    /// Creates a policy with capacity for `expectedEntries`; beyond it, tables double, which takes
    /// time.
    package init(expectedEntries: Int) {
        index = EntryIndex(expectedEntries: expectedEntries)
        ghosts = GhostList(slotCount: index.slotCount)
        queues.entries.reserveCapacity(expectedEntries)
        frequencies.reserveCapacity(expectedEntries)
    }

    /// The number of entries.
    package var count: Int { index.count }

    /// The maximum number of ghosts.
    package var ghostsMax: Int { ghosts.slotCount }

    /// The value at which this shard last evicted; wraps around, so compare with
    /// ``isBehind(_:_:)``.
    ///
    /// Always evicting from the shard with the least inflation makes all shards act as one cache.
    package var inflation: UInt64 { queues.inflation }

    /// True if the inflation `left` is less than `right`.
    @inline(__always)
    package static func isBehind(_ left: UInt64, _ right: UInt64) -> Bool {
        Int64(bitPattern: left &- right) < 0
    }

    /// Returns the shard for entries with this hash, by its upper bits.
    ///
    /// The index uses the lower bits, and would cluster if they also selected the shard.
    @inline(__always)
    package static func shard(of hash: UInt64, among shards: Int) -> Int {
        Int(truncatingIfNeeded: ((hash >> 32) &* UInt64(shards)) >> 32)
    }

    /// Returns the first entry that may have this hash; the caller must compare key and variant.
    ///
    /// Candidates agree in the lower 32 bits of the hash. They become invalid at the next change.
    @inline(__always)
    package func first(_ hash: UInt64) -> Candidate? {
        index.first(hash)
    }

    /// Returns the next entry that may have the hash of `candidate`.
    @inline(__always)
    package func next(after candidate: Candidate) -> Candidate? {
        index.next(after: candidate)
    }

    /// Records a hit.
    @inline(__always)
    package mutating func recordHit(_ id: EntryID) {
        let frequency = frequencies[Int(id.index)]
        frequencies[Int(id.index)] = frequency &+ (frequency <= Self.frequencyMax ? 1 : 0)
    }

    /// Returns the frequency of the entry, at most 15: its hits since admission, plus, if it
    /// returned from the ghost list, its former frequency and 2.
    package func frequency(of id: EntryID) -> UInt8 {
        min(Self.frequencyMax, frequencies[Int(id.index)])
    }

    /// Returns the value above inflation that a new entry would have, by its `cost` in bytes and
    /// its frequency in the ghost list.
    package func gain(hash: UInt64, cost: UInt32) -> UInt64 {
        ValueQueues.gain(cost: cost, frequency: rememberedFrequency(hash))
    }

    /// Adds a ghost for a new entry that was rejected because of its low value.
    ///
    /// The ghost has the frequency with which the entry would have been admitted.
    package mutating func recordRejection(hash: UInt64) {
        ghosts.insert(
            hash, frequency: rememberedFrequency(hash), evictedBytes: evictedBytes)
    }

    /// Admits an entry of `cost` bytes, including overhead; the caller has made space for it.
    ///
    /// Other entries with the same hash stay. The id is reused after the entry is evicted or
    /// removed.
    package mutating func admit(hash: UInt64, cost: UInt32) -> EntryID {
        let frequency = Self.frequency(
            returning: ghosts.remove(hash, evictedBytes: evictedBytes, horizonBytes: bytes &* 2))
        let id = allocateID()
        queues.entries[Int(id.index)] = QueuedEntry(hash: hash, cost: cost)
        queue(id, frequency)
        if index.insert(hash, id) { ghosts.grow() }
        bytes += UInt64(cost)
        return id
    }

    /// Evicts the entry of least value and returns it; `nil` if the shard is empty.
    package mutating func evict() -> Victim? {
        guard let victim = nextVictim() else { return nil }
        evict(victim)
        return victim
    }

    /// Selects the entry of least value and removes it from its queue.
    ///
    /// Before any other call, the caller must either evict the victim or requeue it.
    ///
    /// - Parameter gain: the value of the new entry for which space is made.
    /// - Returns: `nil` if the shard is empty, or if every entry is worth more than `gain`, by
    ///   which the inflation is then raised.
    package mutating func nextVictim(for gain: UInt64 = .max) -> Victim? {
        var requeued = 0
        while let (queue, distance) = queues.least() {
            let entry = queues.head(of: queue)
            let id = EntryID(index: entry)
            let facts = queues.entries[Int(entry)]
            let isTouched = frequencies[Int(entry)] > facts.frequency
            if isTouched, requeued < Self.requeuedMax {
                queues.popHead(of: queue)
                self.queue(id, frequency(of: id))
                requeued += 1
                continue
            }
            guard distance <= gain else {
                queues.raiseInflation(by: gain)
                return nil
            }
            queues.popHead(of: queue)
            return Victim(id: id, hash: facts.hash, cost: facts.cost)
        }
        return nil
    }

    /// Evicts the victim of ``nextVictim(for:)``; its frequency becomes a ghost, and its id is
    /// reused.
    package mutating func evict(_ victim: Victim) {
        evictedBytes &+= UInt64(victim.cost)
        ghosts.insert(
            victim.hash, frequency: frequency(of: victim.id), evictedBytes: evictedBytes)
        forget(victim.id, queues.entries[Int(victim.id.index)])
        free(victim.id)
    }

    /// Queues the victim of ``nextVictim(for:)`` again, by its present frequency; nothing is
    /// evicted.
    package mutating func requeue(_ victim: Victim) {
        queue(victim.id, frequency(of: victim.id))
    }

    /// Removes an entry without a ghost, for example a purged one, and returns its cost in bytes.
    @discardableResult
    package mutating func remove(_ id: EntryID) -> UInt32 {
        let facts = queues.entries[Int(id.index)]
        forget(id, facts)
        queues.unlink(id.index)
        free(id)
        return facts.cost
    }

    /// Halves the frequency of an entry if it is above half of the maximum, so that further hits
    /// can be counted, and returns the result.
    package mutating func halveFrequency(_ id: EntryID) -> UInt8 {
        let frequency = frequency(of: id)
        guard frequency > Self.frequencyMax / 2 else { return frequency }
        queues.unlink(id.index)
        queue(id, frequency / 2)
        return frequency / 2
    }

    /// Returns the frequency with which a new entry would be admitted.
    private func rememberedFrequency(_ hash: UInt64) -> UInt8 {
        Self.frequency(
            returning: ghosts.frequency(
                hash, evictedBytes: evictedBytes, horizonBytes: bytes &* 2))
    }

    /// Returns the initial frequency of an entry, given that of its ghost, or `nil` if it has none.
    private static func frequency(returning remembered: UInt8?) -> UInt8 {
        remembered.map { min(frequencyMax, $0 + returnBonus) } ?? 0
    }

    /// Sets the frequency of an entry that is in no queue, and queues it by the resulting value.
    private mutating func queue(_ id: EntryID, _ frequency: UInt8) {
        frequencies[Int(id.index)] = frequency
        queues.append(id.index, frequency: frequency)
    }

    /// Removes an entry from the index and its cost from the sum; its queue and id stay.
    private mutating func forget(_ id: EntryID, _ facts: QueuedEntry) {
        index.remove(facts.hash, id)
        bytes -= UInt64(facts.cost)
    }

    /// Makes an id available for reuse.
    private mutating func free(_ id: EntryID) {
        queues.entries[Int(id.index)].next = freeHead
        freeHead = id.index
    }

    private mutating func allocateID() -> EntryID {
        guard freeHead == ValueQueues.none else {
            let id = EntryID(index: freeHead)
            freeHead = queues.entries[Int(freeHead)].next
            return id
        }
        queues.entries.append(QueuedEntry(hash: 0, cost: 0))
        frequencies.append(0)
        return EntryID(index: UInt32(frequencies.count - 1))
    }
}

extension MemoryEvictionPolicy {
    /// An entry that a look-up by hash has found, and the position at which the look-up continues.
    package struct Candidate: Hashable, Sendable {
        /// The entry.
        package let id: EntryID
        let tag: UInt32
        let position: UInt32
    }

    /// The entry that ``nextVictim(for:)`` has selected.
    package struct Victim: Hashable, Sendable {
        /// The id of the entry.
        package let id: EntryID
        /// The hash given to ``admit(hash:cost:)``.
        package let hash: UInt64
        /// The cost in bytes.
        package let cost: UInt32
    }
}
