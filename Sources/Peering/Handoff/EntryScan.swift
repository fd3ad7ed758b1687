import Cluster
import Ground
import HTTPRules
import Platform
import Store
import Tiers
import Wire

/// An iterator over all entries of a node that other nodes may own, on disk and then in memory
/// alone, the most used first.
///
/// It traverses each index once for each class of use counts and stores only its position. An entry
/// that is used meanwhile may be returned twice, but is not missed.
struct EntryScan {
    /// True once the disk is done.
    private var isInMemory = false
    /// The index of the class of use counts.
    private var pass = 0
    /// The shard that is traversed.
    private var shard = 0
    /// The position below which the shard is still to be traversed; `nil` for its start.
    private var position: Int?

    /// The use counts of the entries in each pass.
    private static let accessCountRanges: [ClosedRange<UInt8>] = [16...255, 4...15, 1...3, 0...255]
    /// The number of index positions per step.
    private static let stepEntries = 4_096

    /// Returns the offers of the next step for entries that `rule` contains, possibly none, with
    /// the keys of those that are in memory only; `nil` after the last step.
    mutating func next(
        in tiers: CacheTiers, _ rule: SharingRule
    ) -> [(offer: PeerOffer, key: [UInt8]?)]? {
        if pass == Self.accessCountRanges.count {
            guard !isInMemory else { return nil }
            (isInMemory, pass) = (true, 0)
        }
        guard !isInMemory, let disk = tiers.disk, let view = disk.view else {
            if !isInMemory { self = EntryScan(isInMemory: true) }
            return nextInMemory(tiers.memory, rule, beside: tiers.disk?.view)
        }
        let second = disk.clock.second(SystemClock.now())
        let range = Self.accessCountRanges[pass]
        let (found, _, next) = view.shards.entries(
            inShard: shard, below: position, atMost: Self.stepEntries
        ) { entry in
            range.contains(entry.accessCount) && rule.contains(share: entry.share)
                && entry.lastAccess >= view.leastAccess
        }
        advance(next, shards: view.shards.shardCount)
        return found.map { digest, entry in
            let bytes = UInt64(entry.lengthUnits) * UInt64(DiskEntry.unitBytes)
            let offer = PeerOffer(
                digest: digest, size: bytes, touches: UInt32(entry.accessCount),
                isJustFetched: false,
                idleMinutes: UInt16(clamping: (second - min(second, entry.lastAccess)) / 60))
            return (offer, nil)
        }
    }

    /// Returns the offers of the next step in memory, without entries that are also in the index
    /// `view` of the disk.
    private mutating func nextInMemory(
        _ store: MemoryStore, _ rule: SharingRule, beside view: DiskView?
    ) -> [(offer: PeerOffer, key: [UInt8]?)] {
        let range = Self.accessCountRanges[pass]
        let (found, next) = store.entries(inShard: shard, below: position, atMost: Self.stepEntries)
        advance(next, shards: store.shardCount)
        return found.compactMap { entry, frequency in
            let key = entry.key
            guard range.contains(frequency), rule.contains(entry) else {
                return nil
            }
            let name = entry.name ?? EntryName(ofKey: key)
            guard view?.contains(name.digest) != true else { return nil }
            let offer = PeerOffer(
                digest: name.digest, size: entry.metadata.size, touches: UInt32(frequency),
                isJustFetched: false)
            return (offer, key)
        }
    }

    /// Moves to the position `next` of the shard or, if that is `nil`, to the next of `shards`
    /// shards or the next pass.
    private mutating func advance(_ next: Int?, shards: Int) {
        position = next
        guard next == nil else { return }
        shard += 1
        guard shard == shards else { return }
        shard = 0
        pass += 1
    }
}
