import Cluster
import Ground
import HTTPRules
import Store
import Tiers
import Wire

/// A walk over every image that a node holds, the most touched first: what lies on disk, then what
/// stands in memory alone.
///
/// It goes through each index once for each class of touches, and holds nothing but its place. What
/// is touched meanwhile may be met twice, and is not missed.
struct HoldingsWalk {
    private var isInMemory = false
    private var pass = 0
    private var shard = 0
    private var position: Int?

    /// Touches of what is met in each pass.
    private static let passes: [ClosedRange<UInt8>] = [16...255, 4...15, 1...3, 0...255]
    /// Entries that are looked at in one step.
    private static let step = 4_096

    /// What the next step has met, with the keys of what stands in memory; nil after the last.
    mutating func next(
        in node: NodeCore
    ) -> [(offer: PeerOffer, key: OfferedKeys.OfferedKey?)]? {
        if pass == Self.passes.count {
            guard !isInMemory else { return nil }
            (isInMemory, pass) = (true, 0)
        }
        guard !isInMemory, let disk = node.disk, let view = disk.view else {
            if !isInMemory { self = HoldingsWalk(isInMemory: true) }
            return nextInMemory(node.store, beside: node.disk?.view)
        }
        let second = node.clock.second(SystemClock.now())
        let range = Self.passes[pass]
        let (found, _, next) = view.shards.entries(
            inShard: shard, below: position, atMost: Self.step
        ) { entry in
            entry.share == DiskShare.none && range.contains(entry.accessCount)
                && entry.lastAccess >= view.leastAccess
        }
        goOn(next, shards: view.shards.shardCount)
        return found.map { digest, entry in
            let bytes = UInt64(entry.lengthUnits) * UInt64(DiskEntry.unitBytes)
            let offer = PeerOffer(
                digest: digest, size: bytes, touches: UInt32(entry.accessCount), isNew: false,
                idleMinutes: UInt16(clamping: (second - min(second, entry.lastAccess)) / 60))
            return (offer, nil)
        }
    }

    private mutating func nextInMemory(
        _ store: MemoryStore, beside view: DiskView?
    ) -> [(offer: PeerOffer, key: OfferedKeys.OfferedKey?)] {
        let range = Self.passes[pass]
        let (found, next) = store.entries(inShard: shard, below: position, atMost: Self.step)
        goOn(next, shards: store.shardCount)
        return found.compactMap { resident, frequency in
            let key = resident.key
            guard range.contains(frequency), resident.isImage else { return nil }
            let facts = resident.facts
            let name =
                resident.name
                ?? EntryName(ofKey: key).variant(facts.varies, of: facts.negotiation)
            guard view?.holds(name.digest) != true else { return nil }
            let offer = PeerOffer(
                digest: name.digest, size: facts.size, touches: UInt32(frequency), isNew: false)
            return (offer, OfferedKeys.OfferedKey(key: key, negotiation: facts.negotiation))
        }
    }

    private mutating func goOn(_ next: Int?, shards: Int) {
        position = next
        guard next == nil else { return }
        shard += 1
        guard shard == shards else { return }
        shard = 0
        pass += 1
    }
}

extension Resident {
    /// It is the answer to an image's URL, and not to a site's, whose keys are no URLs.
    var isImage: Bool { facts.flags.isAnswer && text.first != UInt8(ascii: "/") }
}
