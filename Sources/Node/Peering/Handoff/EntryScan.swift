import Cluster
import Ground
import HTTPRules
import Store
import Tiers
import Wire

/// A walk over every answer that a node holds and others may have, the most touched first: what
/// lies on disk, then what stands in memory alone.
///
/// It goes through each index once for each class of touches, and holds nothing but its place. What
/// is touched meanwhile may be met twice, and is not missed.
struct EntryScan {
    private var isInMemory = false
    private var pass = 0
    private var shard = 0
    private var position: Int?

    /// Touches of what is met in each pass.
    private static let accessCountRanges: [ClosedRange<UInt8>] = [16...255, 4...15, 1...3, 0...255]
    /// Entries that are looked at in one step.
    private static let stepEntries = 4_096

    /// What the next step has met, with the keys of what stands in memory; nil after the last.
    mutating func next(
        in node: NodeCore
    ) -> [(offer: PeerOffer, key: [UInt8]?)]? {
        if pass == Self.accessCountRanges.count {
            guard !isInMemory else { return nil }
            (isInMemory, pass) = (true, 0)
        }
        guard !isInMemory, let disk = node.disk, let view = disk.view else {
            if !isInMemory { self = EntryScan(isInMemory: true) }
            return nextInMemory(node, beside: node.disk?.view)
        }
        let second = node.clock.second(SystemClock.now())
        let (range, shares) = (Self.accessCountRanges[pass], SharedRecordFilter(node.settings))
        let (found, _, next) = view.shards.entries(
            inShard: shard, below: position, atMost: Self.stepEntries
        ) { entry in
            range.contains(entry.accessCount) && shares.contains(entry.share)
                && entry.lastAccess >= view.leastAccess
        }
        advance(next, shards: view.shards.shardCount)
        return found.map { digest, entry in
            let bytes = UInt64(entry.lengthUnits) * UInt64(DiskEntry.unitBytes)
            let offer = PeerOffer(
                digest: digest, size: bytes, touches: UInt32(entry.accessCount), isNew: false,
                idleMinutes: UInt16(clamping: (second - min(second, entry.lastAccess)) / 60))
            return (offer, nil)
        }
    }

    private mutating func nextInMemory(
        _ node: NodeCore, beside view: DiskView?
    ) -> [(offer: PeerOffer, key: [UInt8]?)] {
        let (range, store) = (Self.accessCountRanges[pass], node.store)
        let (found, next) = store.entries(inShard: shard, below: position, atMost: Self.stepEntries)
        advance(next, shards: store.shardCount)
        return found.compactMap { entry, frequency in
            let key = entry.key
            guard range.contains(frequency), node.settings.sharesWithPeers(entry) else {
                return nil
            }
            let name = entry.name ?? EntryName(ofKey: key)
            guard view?.contains(name.digest) != true else { return nil }
            let offer = PeerOffer(
                digest: name.digest, size: entry.metadata.size, touches: UInt32(frequency),
                isNew: false)
            return (offer, key)
        }
    }

    private mutating func advance(_ next: Int?, shards: Int) {
        position = next
        guard next == nil else { return }
        shard += 1
        guard shard == shards else { return }
        shard = 0
        pass += 1
    }
}

/// Whose records on disk others may have: a record's index has no key, but says whose it is.
private struct SharedRecordFilter {
    private var named: [UInt16: Bool] = [:]
    private var others = false
    private let images: Bool

    init(_ settings: NodeSettings) {
        images = settings.images.areShared
        for plan in settings.sitePolicies {
            guard !plan.isForEveryHost else {
                others = plan.settings.usesPeers
                continue
            }
            named[DiskShareID.number(ofHost: Array(plan.name.utf8).span)] = plan.settings.usesPeers
        }
    }

    func contains(_ share: UInt16) -> Bool {
        share == DiskShareID.images ? images : named[share] ?? others
    }
}

extension MemoryEntry {
    /// Its key is an image's URL, and none of a site's, which are no URLs.
    var isImage: Bool { keyAndHead.first != UInt8(ascii: "/") }
}
