import Platform
import Peering
import Cluster
import Ground
import HTTPRules
import NIOCore
import Store
import Telemetry
import Tiers
import Wire

extension NodeCore: PeerService {
    var sharingRule: SharingRule {
        let settings = settings
        var (named, others) = ([UInt16: Bool](), false)
        for policy in settings.sitePolicies {
            guard !policy.isForEveryHost else {
                others = policy.settings.usesPeers
                continue
            }
            let share = DiskShareID.number(ofHost: Array(policy.name.utf8).span)
            named[share] = policy.settings.usesPeers
        }
        return SharingRule(images: settings.images.areShared, named: named, others: others) {
            settings.sharesWithPeers($0)
        }
    }

    func makeQueryHandler(
        _ query: PeerQuery, on stream: UInt32, of connection: PeerConnection
    ) -> (any PeerQueryHandler)? {
        guard let context = connection.loop.flatMap({ context(of: $0) }) else { return nil }
        return PeerRequestHandler(query, on: stream, of: connection, in: context)
    }

    func touchesReceived(_ touches: [AgedTouch]) {
        let second = clock.second(SystemClock.now())
        counters.add(.touchesReceived, touches.count)
        touch(touches.map { $0.touch(now: second) })
    }

    func startTransfer(
        of offer: PeerOffer, from peer: NodeID, on connection: PeerConnection,
        completion: @escaping @Sendable (InboundOffers.TransferOutcome) -> Void
    ) -> (any Sendable & AnyObject)? {
        guard let context = connection.loop.flatMap({ context(of: $0) }) else { return nil }
        let transfer = HandoffTransfer(
            offer, from: peer, on: connection, in: context, done: completion)
        context.loop.execute { transfer.start() }
        return transfer
    }
}

/// Entries received from peers and offered to them.
extension NodeCore {
    /// Stores a response that a peer has offered, unless the node already has one as new.
    ///
    /// - Parameters:
    ///   - entry: the response, complete.
    ///   - offer: the offer that it was fetched for.
    ///   - done: called on any thread, with true if this response or one as new is stored.
    func storeOffered(
        _ entry: MemoryEntry, _ offer: PeerOffer, done: @escaping @Sendable (Bool) -> Void
    ) {
        let held = store.find(entry.key, hash: entry.hash)
        if let held {
            guard held.metadata.date <= entry.metadata.date else { return done(true) }
            if held.metadata.date < entry.metadata.date { store.insert(entry) }
        }
        guard let disk else { return done(held != nil || store.insert(entry)) }
        disk.enqueueHandoff(
            entry, idle: .seconds(60 * Int64(offer.idleMinutes)),
            touches: offer.touches, now: SystemClock.now(), done: done)
    }

    /// Stores the variant index that leads to a received response in memory and on disk.
    func storeVariantIndex(of taken: OfferedLocation, version: InvalidationVersion) {
        guard let (index, names) = taken.variant else { return }
        let base = taken.primaryKey
        insert(index, names, at: taken.entryKey, of: base, version: version, now: SystemClock.now())
        // The index may be in memory alone, from a time when other nodes owned the key.
        guard let view = disk?.view, !view.contains(EntryName(ofKey: base.key).digest),
            let kept = store.find(base.key, hash: base.hash)
        else { return }
        insert(kept)
    }

    /// Offers a response that was just fetched from the origin to its other owners, if it is fresh.
    func offer(_ fetched: MemoryEntry) {
        guard let hub, let name = fetched.name, fetched.metadata.freshUntil > SystemClock.now()
        else {
            return
        }
        hub.offer(fetched, name.digest)
    }
}

extension MemoryEntry {
    /// True for an image, whose key is its URL; keys of sites begin with a slash.
    var isImage: Bool { keyAndHead.first != UInt8(ascii: "/") }
}
