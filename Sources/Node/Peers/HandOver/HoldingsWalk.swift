import Cluster
import Ground
import HTTPRules
import Store
import Tiers
import Wire

/// A walk over every image that a node keeps, the most touched first: what lies on disk, or, for a
/// node that keeps nothing there, what stands in memory.
///
/// It goes through the index once for each class of touches, and holds nothing but its place.
struct HoldingsWalk {
    private var pass = 0
    private var shard = 0
    private var position: Int?

    /// Touches of what is met in each pass.
    private static let passes: [ClosedRange<UInt8>] = [16...255, 4...15, 1...3, 0...0]
    /// Entries that are looked at in one step.
    private static let step = 4_096

    /// What the next step has met, with the keys of what stands in memory; nil after the last.
    mutating func next(
        in node: NodeCore
    ) -> [(offer: PeerOffer, key: OfferedKeys.OfferedKey?)]? {
        guard pass < Self.passes.count else { return nil }
        guard node.disk != nil else { return nextInMemory(node.store) }
        // A disk that is down holds nothing that could be handed over.
        guard let view = node.disk?.view else { return nil }
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
                digest: digest, size: bytes, touches: UInt32(entry.accessCount), isNew: false)
            return (offer, nil)
        }
    }

    private mutating func nextInMemory(
        _ store: MemoryStore
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
