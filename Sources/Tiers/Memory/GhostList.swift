/// A bounded list of evicted entries with their frequencies, 8 bytes each.
///
/// The hash selects a bucket of eight slots (one cache line), in which a new ghost replaces the
/// oldest. Ghosts older than the horizon (in bytes evicted since) are ignored. Two keys with the
/// same bucket and fingerprint are confused, at most once in 130,000 misses; the only effect is
/// that an entry is valued too highly.
struct GhostList {
    /// Fingerprint (20 bits), frequency (4 bits), evicted bytes at insertion (40 bits); 0 if empty.
    private var slots: [UInt64]
    private var bucketMask: Int

    private static let ways = 8
    private static let stampMask: UInt64 = (1 << 40) - 1

    /// Creates an empty list; `slotCount` must be a power of two, at least 8.
    init(slotCount: Int) {
        slots = Array(repeating: 0, count: slotCount)
        bucketMask = slotCount / Self.ways - 1
    }

    /// The maximum number of ghosts.
    var slotCount: Int { slots.count }

    /// Records an eviction.
    ///
    /// - Parameters:
    ///   - hash: the hash of the entry.
    ///   - frequency: at most 15.
    ///   - evictedBytes: the total of bytes evicted so far.
    mutating func insert(_ hash: UInt64, frequency: UInt8, evictedBytes: UInt64) {
        let start = firstSlot(hash)
        var oldest = start
        var oldestAge: UInt64 = 0
        for position in start..<start + Self.ways {
            let slot = slots[position]
            if slot == 0 || Self.matches(slot, hash) {
                oldest = position
                break
            }
            let age = Self.age(slot, evictedBytes)
            if age >= oldestAge {
                oldest = position
                oldestAge = age
            }
        }
        slots[oldest] =
            Self.fingerprint(hash) << 44 | UInt64(frequency) << 40
            | evictedBytes & Self.stampMask
    }

    /// Returns the frequency of an entry evicted within the last `horizonBytes`; otherwise `nil`.
    func frequency(_ hash: UInt64, evictedBytes: UInt64, horizonBytes: UInt64) -> UInt8? {
        guard let position = position(of: hash) else { return nil }
        let slot = slots[position]
        guard Self.age(slot, evictedBytes) <= horizonBytes else { return nil }
        return UInt8(truncatingIfNeeded: slot >> 40 & 0xF)
    }

    /// Removes the ghost of an entry and returns its frequency; `nil` if there is none or it is
    /// older than `horizonBytes`.
    mutating func remove(
        _ hash: UInt64, evictedBytes: UInt64, horizonBytes: UInt64
    ) -> UInt8? {
        let found = frequency(hash, evictedBytes: evictedBytes, horizonBytes: horizonBytes)
        if let position = position(of: hash) { slots[position] = 0 }
        return found
    }

    /// Doubles the capacity.
    ///
    /// Both halves receive all ghosts; each ghost is looked up in only one of them.
    mutating func grow() {
        slots += slots
        bucketMask = slots.count / Self.ways - 1
    }

    private func position(of hash: UInt64) -> Int? {
        let start = firstSlot(hash)
        return (start..<start + Self.ways).first {
            slots[$0] != 0 && Self.matches(slots[$0], hash)
        }
    }

    private func firstSlot(_ hash: UInt64) -> Int {
        (Int(truncatingIfNeeded: hash) & bucketMask) * Self.ways
    }

    private static func fingerprint(_ hash: UInt64) -> UInt64 {
        hash >> 32 & 0xF_FFFF
    }

    private static func matches(_ slot: UInt64, _ hash: UInt64) -> Bool {
        slot >> 44 == fingerprint(hash)
    }

    /// Returns the bytes evicted since the ghost was inserted, modulo 2^40.
    private static func age(_ slot: UInt64, _ evictedBytes: UInt64) -> UInt64 {
        (evictedBytes &- slot) & stampMask
    }
}
