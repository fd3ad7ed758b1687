package import Ground

/// A map from digests to records of the disk log, for one shard.
///
/// The caller holds the shard's lock.
///
/// A hash table of chains, with exactly as many chains as entries (linear hashing: Litwin, VLDB
/// 1980). Each inserted entry adds a chain, into which part of one other chain is moved. Each
/// removed entry removes the last chain, whose members return to the chain they came from. The
/// table is therefore never rebuilt: an insertion moves no entry and visits those of two chains, of
/// about one entry each; a removal moves one entry, the last, into the gap.
///
/// All entries are stored contiguously, 40 bytes each (``DiskIndexSlots``), with at most two chunks
/// of spare capacity: below 48 bytes per entry from 1,000 entries on, whatever the history.
///
/// Digests can be chosen: trying 2^k keys yields one whose digest ends in k wanted bits. If those
/// bits alone selected the chain, an attacker could create a chain of thousands of entries (1,000
/// entries with 20 equal bits: 2^30 hashes, minutes of work), which every look-up in it would
/// traverse under the lock. So the chain is selected by a product with two secret numbers; without
/// them, equal bits of digests do not predict equal chains. This is not a keyed hash in the strict
/// sense. It hides only the position of an entry, and the duration of a look-up is small beside the
/// network's.
///
/// The order of ``forEach(below:atMost:_:)`` depends on the calls alone, not on the secret numbers.
///
/// Invariant: an entry is in the chain `chain(of:)` and in no other; chain `n` begins at the head
/// stored in slot `n`, whichever entry that slot holds.
package struct DiskIndex: ~Copyable {
    private var slots = DiskIndexSlots()
    private let key0: UInt64
    private let key1: UInt64

    /// The number of slots visited so far by insertions and removals to maintain chains, without
    /// their initial look-ups: a measure of their work.
    package private(set) var steps: UInt64 = 0
    /// The number of entries moved in memory so far.
    package private(set) var moves: UInt64 = 0

    /// Creates an empty index; `key0` and `key1` are 128 secret bits, drawn once per process.
    package init(key0: UInt64, key1: UInt64) {
        self.key0 = key0
        self.key1 = key1
    }

    /// The number of entries, below 2^32.
    package var count: Int { slots.count }

    /// The bytes that the index has allocated, used or not.
    package var allocatedBytes: Int { MemoryLayout<DiskIndex>.size + slots.allocatedBytes }

    /// Returns the entry for `digest`; `nil` if the index has none.
    package func find(_ digest: EntryDigest) -> DiskEntry? {
        guard let position = position(of: digest) else { return nil }
        return slots[position].entry
    }

    /// Stores `entry` for `digest` and returns the entry that it replaces; `nil` if there was none.
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

    /// Removes the entry for `digest` if its record is at `location`; otherwise returns false.
    ///
    /// The condition protects a newer record of the same entry from the removal of an older one.
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

    /// Adds `count` accesses, the last of them at `seconds`; returns false if the entry is absent.
    ///
    /// The sum saturates at ``DiskEntry/accessCountMax``. Calls may come in any order of time: the
    /// latest access is kept.
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

    /// Visits up to `entriesMax` entries at positions below `position`, in descending order.
    ///
    /// A walk from ``count`` may be divided into calls with any other calls between them. It visits
    /// every entry that exists throughout, a few of them twice: a removal moves the last entry to a
    /// lower position, never to a higher one.
    ///
    /// - Returns: the position to continue from, 0 after the last entry.
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
    /// Returns the hash that selects the chain of a digest: the product with both secret numbers.
    @inline(__always)
    private func hash(_ digest: EntryDigest) -> UInt64 {
        let product = (digest.first &+ key0).multipliedFullWidth(by: digest.second &+ key1)
        return product.high ^ product.low
    }

    /// Returns the chain of a hash, among as many chains as there are entries, at least one.
    ///
    /// Chains that the current doubling has not yet reached hold the entries of two future chains.
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

    /// Moves the members of a chain that belong to `new`, the last chain, which is empty.
    ///
    /// The order within both chains is kept.
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

    /// Links `next` after `tail`, or as the first slot of `chain` if `tail` is `nil`.
    @inline(__always)
    private mutating func append(_ next: UInt32, after tail: Int?, of chain: Int) {
        if let tail { slots.setNext(tail, next) } else { slots.setHead(chain, next) }
    }

    /// Prepends the members of the last chain to the chain that it was divided from.
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

    /// Moves the last entry to `position`, whose own entry is no longer in a chain.
    ///
    /// The last chain must be empty: its members have been rejoined.
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

    /// Redirects the link to `position` in `chain` to `next`.
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
