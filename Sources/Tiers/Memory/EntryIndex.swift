import Ground

/// An index of entries by hash: open addressing with linear probing, one 8-byte slot per entry.
///
/// A slot holds the low 32 bits of the hash (the *tag*) and the entry's id, so that a look-up of an
/// absent key ends in the cache line where it began, without accessing entries. The tag also
/// determines the home position, so slots move on growth and removal without access to entries. A
/// removal moves later slots back and leaves no tombstone: runs of slots never outlive their
/// entries.
///
/// Invariant: there is no empty slot between a slot's home position and its position.
struct EntryIndex {
    /// The tag in the upper half and the id in the lower, or ``empty``.
    private var slots: [UInt64]
    private var mask: Int
    private(set) var count = 0

    private static let empty = UInt64.max

    init(expectedEntries: Int) {
        var size = 64
        while size * 3 / 4 < expectedEntries { size *= 2 }
        slots = Array(repeating: Self.empty, count: size)
        mask = size - 1
    }

    /// The number of slots, a power of two; at most three quarters of them are in use.
    var slotCount: Int { slots.count }

    /// Returns the first entry whose hash agrees in the lower 32 bits; `nil` if there is none.
    @inline(__always)
    func first(_ hash: UInt64) -> MemoryEvictionPolicy.Candidate? {
        let tag = UInt32(truncatingIfNeeded: hash)
        return candidate(tag, from: Int(tag) & mask)
    }

    /// Returns the next entry with the tag of `candidate`; `nil` if there is none.
    @inline(__always)
    func next(after candidate: MemoryEvictionPolicy.Candidate) -> MemoryEvictionPolicy.Candidate? {
        self.candidate(candidate.tag, from: (Int(candidate.position) + 1) & mask)
    }

    /// Returns the first slot with this tag from `start` on; `nil` if an empty one comes first.
    @inline(__always)
    private func candidate(_ tag: UInt32, from start: Int) -> MemoryEvictionPolicy.Candidate? {
        var position = start
        while true {
            let slot = slots[position]
            if slot == Self.empty { return nil }
            if UInt32(truncatingIfNeeded: slot >> 32) == tag {
                return MemoryEvictionPolicy.Candidate(
                    id: EntryID(index: UInt32(truncatingIfNeeded: slot)), tag: tag,
                    position: UInt32(truncatingIfNeeded: position))
            }
            position = (position + 1) & mask
        }
    }

    /// Inserts `id`; returns true if the table was doubled for it.
    mutating func insert(_ hash: UInt64, _ id: EntryID) -> Bool {
        let grows = (count + 1) * 4 > slots.count * 3
        if grows { grow() }
        insertSlot(UInt64(UInt32(truncatingIfNeeded: hash)) << 32 | UInt64(id.index))
        count += 1
        return grows
    }

    /// Removes `id`, which must be in the table under `hash`.
    mutating func remove(_ hash: UInt64, _ id: EntryID) {
        let wanted = UInt64(UInt32(truncatingIfNeeded: hash)) << 32 | UInt64(id.index)
        var hole = home(wanted)
        while slots[hole] != wanted {
            precondition(slots[hole] != Self.empty, "entry \(id.index) is not in the index")
            hole = (hole + 1) & mask
        }
        count -= 1
        var position = hole
        while true {
            position = (position + 1) & mask
            let slot = slots[position]
            if slot == Self.empty { break }
            let fromHome = (position - home(slot)) & mask
            let fromHole = (position - hole) & mask
            guard fromHome >= fromHole else { continue }
            slots[hole] = slot
            hole = position
        }
        slots[hole] = Self.empty
    }

    @inline(__always)
    private func home(_ slot: UInt64) -> Int {
        Int(truncatingIfNeeded: slot >> 32) & mask
    }

    private mutating func insertSlot(_ slot: UInt64) {
        var position = home(slot)
        while slots[position] != Self.empty { position = (position + 1) & mask }
        slots[position] = slot
    }

    private mutating func grow() {
        precondition(slots.count < 1 << 32, "a shard holds at most 3 × 2^30 entries")
        let old = slots
        slots = Array(repeating: Self.empty, count: old.count * 2)
        mask = slots.count - 1
        for slot in old where slot != Self.empty { insertSlot(slot) }
    }
}
