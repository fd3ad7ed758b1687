package import Ground

/// Finds the record of an entry in the disk log by its digest; one index per shard, whose owner has
/// the lock.
///
/// A hash table of chains, with exactly as many chains as entries (linear hashing: Litwin, VLDB
/// 1980). An entry that comes brings a chain with it, into which the members of one other chain are
/// divided; one that goes takes the last chain along, whose members go back to where they came
/// from. So the table is never rebuilt: an insertion moves no entry and looks at those of two
/// chains, of about one entry each; a removal moves one entry, the last, into the gap.
///
/// All entries lie side by side, 40 bytes each (``DiskIndexSlots``), with at most two chunks of
/// room: below 48 bytes per entry from 1,000 entries on, whatever the history.
///
/// Digests can be chosen: who tries 2^k keys finds one whose digest ends in k wanted bits. A table
/// that went by those bits alone could be given a chain of thousands of entries (1,000 entries with
/// 20 equal bits: 2^30 hashes, minutes of work), all of which a look-up in that chain would pass
/// under the lock. So the chain is found by a product with two secret numbers: without them, equal
/// bits of digests say nothing of their chains. It is no keyed hash in the strict sense; what it
/// hides is where an entry lies, and a look-up's time is small beside the network's.
///
/// The order of ``forEach(below:atMost:_:)`` follows from the calls alone; the secret numbers have
/// no part in it.
///
/// Invariant: an entry is in the chain ``chain(of:)`` and in no other; chain `n` begins at the head
/// that slot `n` holds, whichever entry that slot holds.
package struct DiskIndex: ~Copyable {
    private var slots = DiskIndexSlots()
    private let key0: UInt64
    private let key1: UInt64

    /// How many slots insertions and removals have looked at so far to keep the chains, beside the
    /// look-up that each begins with: a measure of their work.
    package private(set) var steps: UInt64 = 0
    /// How many entries have been moved to another place in memory so far.
    package private(set) var moves: UInt64 = 0

    /// An empty index; `key0` and `key1` are 128 bits that no client knows, drawn once per process.
    package init(key0: UInt64, key1: UInt64) {
        self.key0 = key0
        self.key1 = key1
    }

    /// Number of entries, below 2^32.
    package var count: Int { slots.count }

    /// Everything that the index has allocated, used or not.
    package var residentBytes: Int { MemoryLayout<DiskIndex>.size + slots.allocatedBytes }

    /// What is known of the entry; nil if it is not on disk.
    package func find(_ digest: EntryDigest) -> DiskEntry? {
        guard let position = position(of: digest) else { return nil }
        return slots[position].entry
    }

    /// Keeps `entry` for `digest`; what was kept for it until now.
    @discardableResult
    package mutating func insert(_ digest: EntryDigest, _ entry: DiskEntry) -> DiskEntry? {
        let hash = hash(digest)
        if let found = position(of: digest, hash: hash) {
            let old = slots[found].entry
            slots.setEntry(found, entry)
            return old
        }
        let position = slots.count
        precondition(position < Int(DiskIndexSlot.none), "a shard holds less than 2^32 entries")
        slots.append(
            DiskIndexSlot(
                digest: digest, entry: entry, next: DiskIndexSlot.none, head: DiskIndexSlot.none))
        if position > 0 { divideChain(into: position) }
        let chain = chain(of: hash)
        slots.setNext(position, slots.head(chain))
        slots.setHead(chain, UInt32(position))
        return nil
    }

    /// Forgets the entry if its record lies at `location`; false if it lies elsewhere or nowhere.
    ///
    /// What gives up a record must not forget a newer one of the same entry.
    package mutating func remove(_ digest: EntryDigest, ifAt location: DiskLocation) -> Bool {
        guard slots.count > 0 else { return false }
        let chain = chain(of: hash(digest))
        guard let position = position(of: digest, in: chain) else { return false }
        guard slots[position].entry.location == location else { return false }
        relink(position, in: chain, to: slots[position].next)
        let last = slots.count - 1
        if last > 0 { rejoinChain(from: last) }
        if position != last { moveLast(to: position) }
        slots.removeLast()
        return true
    }

    /// Adds `count` accesses, the last of them at `seconds`; false if there is no such entry.
    ///
    /// Reports may come in any order: the later last access stands.
    package mutating func touch(
        _ digest: EntryDigest, count: UInt32, at seconds: UInt32
    ) -> Bool {
        guard let position = position(of: digest) else { return false }
        var entry = slots[position].entry
        let sum = UInt64(entry.accessCount) + UInt64(count)
        entry.accessCount = UInt8(min(sum, UInt64(DiskEntry.accessCountMax)))
        entry.lastAccess = max(entry.lastAccess, seconds)
        slots.setEntry(position, entry)
        return true
    }

    /// Up to `entriesMax` entries at positions below `position`, downwards; the position to go on
    /// from, 0 after the last.
    ///
    /// A walk that begins at ``count`` may be cut into parts with any calls between them. It meets
    /// every entry that is there throughout, a few of them twice: a removal moves the last entry
    /// down, never up.
    package func forEach(
        below position: Int, atMost entriesMax: Int, _ body: (EntryDigest, DiskEntry) -> Void
    ) -> Int {
        var next = min(position, count)
        let end = max(0, next - entriesMax)
        while next > end {
            next -= 1
            let slot = slots[next]
            body(slot.digest, slot.entry)
        }
        return next
    }
}

extension DiskIndex {
    @inline(__always)
    private func hash(_ digest: EntryDigest) -> UInt64 {
        let product = (digest.first &+ key0).multipliedFullWidth(by: digest.second &+ key1)
        return product.high ^ product.low
    }

    /// The chain that a hash belongs to, of as many as there are entries, which must be some.
    ///
    /// Chains that the present doubling has not come to yet hold what will be two chains.
    @inline(__always)
    private func chain(of hash: UInt64) -> Int {
        let highest = 1 &<< (63 &- slots.count.leadingZeroBitCount)
        let low = Int(truncatingIfNeeded: hash) & (highest &- 1)
        let whole = low | (Int(truncatingIfNeeded: hash) & highest)
        return whole < slots.count ? whole : low
    }

    @inline(__always)
    private func position(of digest: EntryDigest) -> Int? {
        position(of: digest, hash: hash(digest))
    }

    @inline(__always)
    private func position(of digest: EntryDigest, hash: UInt64) -> Int? {
        guard slots.count > 0 else { return nil }
        return position(of: digest, in: chain(of: hash))
    }

    @inline(__always)
    private func position(of digest: EntryDigest, in chain: Int) -> Int? {
        var next = slots.head(chain)
        while next != DiskIndexSlot.none {
            let slot = slots[Int(next)]
            if slot.digest == digest { return Int(next) }
            next = slot.next
        }
        return nil
    }

    /// Moves those members of a chain that belong to `new`, which is empty and the last, to it.
    ///
    /// The order within both is kept.
    private mutating func divideChain(into new: Int) {
        let bit = 1 &<< (63 &- new.leadingZeroBitCount)
        let old = new & ~bit
        var next = slots.head(old)
        var tails = (stay: Int?.none, go: Int?.none)
        while next != DiskIndexSlot.none {
            let position = Int(next)
            let slot = slots[position]
            steps += 1
            if Int(truncatingIfNeeded: hash(slot.digest)) & bit == 0 {
                append(next, after: tails.stay, of: old)
                tails.stay = position
            } else {
                append(next, after: tails.go, of: new)
                tails.go = position
            }
            next = slot.next
        }
        append(DiskIndexSlot.none, after: tails.stay, of: old)
        append(DiskIndexSlot.none, after: tails.go, of: new)
    }

    /// Makes `next` follow `tail`, or be the first of its chain.
    @inline(__always)
    private mutating func append(_ next: UInt32, after tail: Int?, of chain: Int) {
        if let tail { slots.setNext(tail, next) } else { slots.setHead(chain, next) }
    }

    /// Puts the members of the last chain before those of the chain that it was divided from.
    private mutating func rejoinChain(from last: Int) {
        let first = slots.head(last)
        guard first != DiskIndexSlot.none else { return }
        var tail = Int(first)
        steps += 1
        while slots[tail].next != DiskIndexSlot.none {
            tail = Int(slots[tail].next)
            steps += 1
        }
        let old = last & ~(1 &<< (63 &- last.leadingZeroBitCount))
        slots.setNext(tail, slots.head(old))
        slots.setHead(old, first)
        slots.setHead(last, DiskIndexSlot.none)
    }

    /// Moves the last entry to `position`, whose own is in no chain any more.
    ///
    /// The last chain must be empty: its members have been put back.
    private mutating func moveLast(to position: Int) {
        let last = slots.count - 1
        let slot = slots[last]
        let hash = hash(slot.digest)
        let whole = chain(of: hash)
        let chain = whole == last ? last & ~(1 &<< (63 &- last.leadingZeroBitCount)) : whole
        relink(last, in: chain, to: UInt32(position))
        slots.replaceEntry(at: position, by: slot)
        moves += 1
    }

    /// Makes what points to `position` in `chain` point to `next`.
    private mutating func relink(_ position: Int, in chain: Int, to next: UInt32) {
        steps += 1
        var before = slots.head(chain)
        guard Int(before) != position else {
            slots.setHead(chain, next)
            return
        }
        while true {
            precondition(before != DiskIndexSlot.none, "slot \(position) is not in chain \(chain)")
            let after = slots[Int(before)].next
            steps += 1
            guard Int(after) != position else { break }
            before = after
        }
        slots.setNext(Int(before), next)
    }
}
