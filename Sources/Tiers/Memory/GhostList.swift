/// Remembers how often evicted entries had been asked for, in 8 bytes each, and bounded.
///
/// The hash chooses a bucket of eight (one cache line), in which the newest memory takes the place
/// of the oldest. What is older than the horizon (in bytes evicted since) counts as forgotten. Two
/// keys that agree in bucket and fingerprint are taken for one, at most once in 130,000 misses: an
/// entry is then valued too highly, and nothing worse.
struct GhostList {
    /// Fingerprint (20 bits), frequency (4 bits), bytes evicted before it (40 bits); 0 if empty.
    private var slots: [UInt64]
    private var bucketMask: Int

    private static let ways = 8
    private static let stampMask: UInt64 = (1 << 40) - 1

    /// `slotCount` is a power of two, 8 at least.
    init(slotCount: Int) {
        slots = Array(repeating: 0, count: slotCount)
        bucketMask = slotCount / Self.ways - 1
    }

    /// The bound: no more are remembered.
    var slotCount: Int { slots.count }

    /// Notes that an entry of `frequency` (15 at most) was evicted when `evictedBytes` had been.
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

    /// The frequency of an entry evicted within the last `horizonBytes`.
    func frequency(_ hash: UInt64, evictedBytes: UInt64, horizonBytes: UInt64) -> UInt8? {
        guard let position = position(of: hash) else { return nil }
        let slot = slots[position]
        guard Self.age(slot, evictedBytes) <= horizonBytes else { return nil }
        return UInt8(truncatingIfNeeded: slot >> 40 & 0xF)
    }

    /// The same; it is then forgotten.
    mutating func remove(
        _ hash: UInt64, evictedBytes: UInt64, horizonBytes: UInt64
    ) -> UInt8? {
        let found = frequency(hash, evictedBytes: evictedBytes, horizonBytes: horizonBytes)
        if let position = position(of: hash) { slots[position] = 0 }
        return found
    }

    /// Doubles the room.
    ///
    /// Both halves get all memories; each is asked for in one of the two only.
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

    private static func age(_ slot: UInt64, _ evictedBytes: UInt64) -> UInt64 {
        (evictedBytes &- slot) & stampMask
    }
}
