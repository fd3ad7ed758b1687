import Ground
import Synchronization
import Tiers

import Glibc

/// One part of the memory tier under one lock: what the policy decides about, and the entries
/// themselves.
///
/// An entry's place in ``residents`` is its `EntryID`. What leaves a shard is handed out and let go
/// of outside the lock.
struct MemoryShard: ~Copyable {
    private var tier: MemoryTier
    private var residents: [Resident?] = []
    /// Of what came in since the last walk over all places began.
    private var leastInserted = Stamp.last

    init(tier: consuming MemoryTier) {
        self.tier = tier
    }

    /// How far the policy has come; see `MemoryTier.inflation`.
    var inflation: UInt64 { tier.inflation }

    /// The entry for the key in `range` of `bytes`; noted as used.
    mutating func find(
        _ bytes: Span<UInt8>, _ range: Range<Int>, hash: UInt64
    ) -> Resident? {
        var candidate = tier.first(hash)
        while let current = candidate {
            if let resident = residents[Int(current.id.index)], holds(resident, bytes, range) {
                tier.touched(current.id)
                return resident
            }
            candidate = tier.next(after: current)
        }
        return nil
    }

    /// An entry whose key has this keyed hash.
    func entry(withHash hash: UInt64) -> Resident? {
        var candidate = tier.first(hash)
        while let current = candidate {
            if let resident = residents[Int(current.id.index)], resident.hash == hash {
                return resident
            }
            candidate = tier.next(after: current)
        }
        return nil
    }

    /// The entry for `key`, and how often it was asked for of late; it is not noted as used.
    func held(_ key: Span<UInt8>, hash: UInt64) -> Found? {
        var candidate = tier.first(hash)
        while let current = candidate {
            if let resident = residents[Int(current.id.index)], holds(resident, key, 0..<key.count)
            {
                return (resident, tier.frequency(of: current.id))
            }
            candidate = tier.next(after: current)
        }
        return nil
    }

    /// True if this very entry is here.
    func has(_ resident: Resident) -> Bool {
        var candidate = tier.first(resident.hash)
        while let current = candidate {
            if residents[Int(current.id.index)] === resident { return true }
            candidate = tier.next(after: current)
        }
        return false
    }

    /// Puts an entry in the place of the one with its key, which is appended to `replaced`.
    ///
    /// If not `adds`, only in the place of another: false, with nothing changed, if there is none.
    mutating func insert(_ resident: Resident, adds: Bool, replaced: inout [Resident]) -> Bool {
        removeAll(hash: resident.hash, into: &replaced) { $0.hasKey(of: resident) }
        guard adds || !replaced.isEmpty else { return false }
        let cost = UInt32(clamping: resident.overheadBytes + resident.body.capacityBytes)
        let id = tier.admit(hash: resident.hash, cost: cost)
        while residents.count <= Int(id.index) { residents.append(nil) }
        precondition(residents[Int(id.index)] == nil, "place \(id) given twice")
        residents[Int(id.index)] = resident
        leastInserted = min(leastInserted, resident.stamp)
        return true
    }

    /// Removes this very entry if it is still there.
    mutating func remove(_ resident: Resident, into removed: inout [Resident]) {
        removeAll(hash: resident.hash, into: &removed) { $0 === resident }
    }

    /// What an entry is worth that is to come, of so many bytes.
    func gain(_ hash: UInt64, bytes: Int) -> UInt64 {
        tier.gain(hash: hash, cost: UInt32(clamping: bytes))
    }

    /// An entry was worth less than what would have had to go for it.
    mutating func refused(_ hash: UInt64) {
        tier.refused(hash: hash)
    }

    /// Removes the entry that the policy can best do without, if it is worth no more than `worth`.
    ///
    /// If `sparesReaders`, an entry that someone is reading is put back, because removing it frees
    /// nothing.
    mutating func evict(sparesReaders: Bool, worth: UInt64) -> Eviction {
        guard let victim = tier.nextVictim(for: worth) else {
            return tier.count == 0 ? .empty : .dearer
        }
        let place = Int(victim.id.index)
        if sparesReaders, residents[place] != nil, !isKnownUniquelyReferenced(&residents[place]) {
            tier.putBack(victim)
            return .spared
        }
        tier.evict(victim)
        guard let resident = residents[place].take() else {
            preconditionFailure("no entry at \(victim)")
        }
        return .evicted(resident)
    }

    /// The entries at up to `count` places below `place`, downwards, with how often each was asked
    /// for of late; the place to go on from, 0 after the last.
    func entries(below place: Int?, atMost count: Int) -> (found: [Found], next: Int) {
        let end = min(place ?? residents.count, residents.count)
        let start = max(0, end - count)
        var found: [Found] = []
        for index in start..<end {
            guard let resident = residents[index] else { continue }
            found.append((resident, tier.frequency(of: EntryID(index: UInt32(index)))))
        }
        return (found, start)
    }

    /// The least stamp at up to `count` places below `place`, downwards; the place to go on from, 0
    /// after the last.
    ///
    /// With nil a walk begins; at its end what came in meanwhile is counted, wherever it stands.
    mutating func leastStamp(below place: Int?, atMost count: Int) -> (least: Stamp, next: Int) {
        if place == nil { leastInserted = .last }
        let end = min(place ?? residents.count, residents.count)
        let start = max(0, end - count)
        var least = start == 0 ? leastInserted : .last
        for index in start..<end {
            guard let stamp = residents[index]?.stamp else { continue }
            least = min(least, stamp)
        }
        return (least, start)
    }

    typealias Found = (resident: Resident, frequency: UInt8)

    /// What came of asking a shard for a victim.
    enum Eviction {
        case evicted(Resident)
        /// Its reader was spared.
        case spared
        /// All entries are worth more than what they would go for.
        case dearer
        case empty

        var isEvicted: Bool { if case .evicted = self { true } else { false } }
    }

    /// What came of looking at an entry of a site that has to give one up.
    enum Turn {
        /// It is not here any more.
        case gone
        /// It was asked for, so often in all, since it was last looked at.
        case stays(frequency: UInt8)
        case evicted(Resident)
    }

    /// Removes the entry unless it `mayStay` and was asked for since it was last looked at.
    ///
    /// What was asked for most is halved, because nothing is counted beyond that.
    mutating func turn(of place: MemoryShare.Place, mayStay: Bool) -> Turn {
        guard let id = find(place) else { return .gone }
        let frequency = tier.frequency(of: id)
        if mayStay, frequency > place.frequency {
            return .stays(frequency: tier.halved(id))
        }
        tier.remove(id)
        guard let resident = residents[Int(id.index)].take() else { return .gone }
        return .evicted(resident)
    }

    /// The id of this very entry; nil if it is not here any more.
    func find(_ place: MemoryShare.Place) -> EntryID? {
        var candidate = tier.first(place.hash)
        while let current = candidate {
            if let resident = residents[Int(current.id.index)],
                ObjectIdentifier(resident) == place.entry
            {
                return current.id
            }
            candidate = tier.next(after: current)
        }
        return nil
    }

    private mutating func removeAll(
        hash: UInt64, into removed: inout [Resident], where isMeant: (Resident) -> Bool
    ) {
        var found: [EntryID] = []
        var candidate = tier.first(hash)
        while let current = candidate {
            if let resident = residents[Int(current.id.index)], isMeant(resident) {
                found.append(current.id)
            }
            candidate = tier.next(after: current)
        }
        for id in found {
            tier.remove(id)
            if let resident = residents[Int(id.index)].take() { removed.append(resident) }
        }
    }

    @inline(__always)
    private func holds(
        _ resident: Resident, _ bytes: Span<UInt8>, _ range: Range<Int>
    ) -> Bool {
        guard resident.headStart == range.count else { return false }
        return unsafe bytes.withUnsafeBytes { all in
            unsafe resident.text.withUnsafeBytes { own in
                guard let left = own.baseAddress, let right = all.baseAddress else {
                    return range.isEmpty
                }
                return unsafe memcmp(left, right + range.lowerBound, range.count) == 0
            }
        }
    }
}
