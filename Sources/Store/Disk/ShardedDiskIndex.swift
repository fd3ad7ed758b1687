package import Ground
import Synchronization
package import Tiers

/// The index of the disk log in shards, each under its own lock.
///
/// The writer inserts and moves entries; readers look up, and remove entries that are damaged or
/// forgotten. Thread-safe.
package final class ShardedDiskIndex: Sendable {
    private let shards: [Shard]
    private let entryCount = Atomic<Int>(0)
    /// Bytes of records by share number.
    private let shareBytes = Mutex<[UInt16: Int]>([:])

    private final class Shard: Sendable {
        let index: Mutex<DiskIndex>

        init(key0: UInt64, key1: UInt64) {
            index = Mutex(DiskIndex(key0: key0, key1: key1))
        }
    }

    private static let shardCount = 16

    /// Creates an empty index; the keys are 128 bits of secret for its hash function.
    package init(key0: UInt64, key1: UInt64) {
        shards = (0..<Self.shardCount).map { _ in Shard(key0: key0, key1: key1) }
    }

    /// Number of entries in all shards.
    package var count: Int { entryCount.load(ordering: .relaxed) }

    /// Bytes allocated for the index.
    package var allocatedBytes: Int {
        shards.reduce(0) { $0 + $1.index.withLock { $0.allocatedBytes } }
    }

    /// Returns the entry with this digest; `nil` if there is none.
    package func find(_ digest: EntryDigest) -> DiskEntry? {
        shard(digest).index.withLock { $0.find(digest) }
    }

    /// Inserts an entry; returns the one that it replaces.
    @discardableResult
    package func insert(_ digest: EntryDigest, _ entry: DiskEntry) -> DiskEntry? {
        let old = shard(digest).index.withLock { $0.insert(digest, entry) }
        if old == nil { entryCount.add(1, ordering: .relaxed) }
        if let old { count(old, sign: -1) }
        count(entry, sign: 1)
        return old
    }

    /// Removes the entry if its record is at `location`; returns whether it did.
    @discardableResult
    package func remove(_ digest: EntryDigest, ifAt location: DiskLocation) -> Bool {
        let gone = shard(digest).index.withLock { index -> DiskEntry? in
            guard let entry = index.find(digest), index.remove(digest, ifAt: location) else {
                return nil
            }
            return entry
        }
        guard let gone else { return false }
        entryCount.subtract(1, ordering: .relaxed)
        count(gone, sign: -1)
        return true
    }

    /// Returns the bytes of the records of a group.
    package func bytes(of group: DiskShareLimits.Group, in shares: DiskShareLimits) -> Int {
        shareBytes.withLock { bytes in
            if case .host(let number) = group { return bytes[number] ?? 0 }
            // A sum does not depend on the order.
            return bytes.reduce(0) { $0 + (shares.contains($1.key, in: group) ? $1.value : 0) }
        }
    }

    /// Adds the bytes of an entry to those of its share (`sign` 1), or subtracts them (-1).
    private func count(_ entry: DiskEntry, sign: Int) {
        shareBytes.withLock { bytes in
            let left = bytes[entry.share, default: 0] + sign * entry.bytes
            bytes[entry.share] = left == 0 ? nil : left
        }
    }

    /// Removes and returns the entry with this digest.
    package func remove(_ digest: EntryDigest) -> DiskEntry? {
        while let entry = find(digest) {
            if remove(digest, ifAt: entry.location) { return entry }
        }
        return nil
    }

    /// Replaces the entry whose record moved from `from`, keeping accesses recorded meanwhile;
    /// false if its record is another one.
    package func move(_ digest: EntryDigest, from: DiskLocation, to entry: DiskEntry) -> Bool {
        shard(digest).index.withLock { index in
            guard let old = index.find(digest), old.location == from else { return false }
            var entry = entry
            entry.lastAccess = max(entry.lastAccess, old.lastAccess)
            index.insert(digest, entry)
            return true
        }
    }

    /// Adds `count` accesses, the last one at `second` (since 1970).
    ///
    /// - Returns: the location of the record; `nil` if there is none.
    package func touch(
        _ digest: EntryDigest, count: UInt32, at second: UInt32
    ) -> DiskLocation? {
        shard(digest).index.withLock { index in
            guard index.touch(digest, count: count, at: second) else { return nil }
            return index.find(digest)?.location
        }
    }

    /// Returns the matching entries among at most `entriesMax` examined in one shard.
    ///
    /// - Parameters:
    ///   - number: the shard, from 0 to below ``shardCount``.
    ///   - position: where to continue, downwards; `nil` to begin at the end.
    ///   - entriesMax: maximum number of entries to examine.
    ///   - isMeant: whether an entry matches.
    /// - Returns: the entries, the number examined, and the next position, `nil` after the last.
    package func entries(
        inShard number: Int, below position: Int?, atMost entriesMax: Int,
        matching isMeant: (DiskEntry) -> Bool
    ) -> (found: [(EntryDigest, DiskEntry)], looked: Int, next: Int?) {
        var found: [(EntryDigest, DiskEntry)] = []
        var looked = 0
        let next = shards[number].index.withLock { index in
            index.forEach(below: position ?? index.count, atMost: entriesMax) { digest, entry in
                looked += 1
                if isMeant(entry) { found.append((digest, entry)) }
            }
        }
        return (found, looked, next == 0 ? nil : next)
    }

    /// Returns all entries whose records are in the segment.
    ///
    /// Examines the whole index in steps, so that no reader waits for long.
    package func entries(in segment: UInt16) -> [(EntryDigest, DiskEntry)] {
        var found: [(EntryDigest, DiskEntry)] = []
        for shard in shards {
            var position: Int?
            while position != 0 {
                position = shard.index.withLock { index in
                    index.forEach(below: position ?? index.count, atMost: 4096) { digest, entry in
                        if entry.location.segment == segment { found.append((digest, entry)) }
                    }
                }
            }
        }
        return found
    }

    /// Number of shards.
    package var shardCount: Int { shards.count }

    private func shard(_ digest: EntryDigest) -> Shard {
        shards[Int(truncatingIfNeeded: digest.first) & (Self.shardCount - 1)]
    }
}

/// A search through an index in steps, each of which begins where the one before ended, and begins
/// again after the last entry.
struct IndexScan {
    private var shard = 0
    /// The position in the shard, downwards; `nil` at its end.
    private var position: Int?

    /// Returns the matching entries among at most `entriesMax` of one shard, and the number
    /// examined.
    mutating func next(
        in index: ShardedDiskIndex, atMost entriesMax: Int, matching isMeant: (DiskEntry) -> Bool
    ) -> (found: [(EntryDigest, DiskEntry)], looked: Int) {
        let part = index.entries(
            inShard: shard, below: position, atMost: entriesMax, matching: isMeant)
        position = part.next
        if part.next == nil { shard = (shard + 1) % index.shardCount }
        return (part.found, part.looked)
    }
}
