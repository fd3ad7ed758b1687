import Cluster
import Ground
import NIOCore
import Store
import Wire

/// What is taken over from peers, and offered to them.
extension NodeCore {
    /// Keeps an answer that a peer has offered, unless one as new is here; `done` is told, on any
    /// thread, whether either is.
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

    /// Puts the index of variants that leads to what was taken over into memory and on disk.
    func storeVariantIndex(of taken: OfferedLocation, version: InvalidationVersion) {
        guard let (index, names) = taken.variant else { return }
        let base = taken.primaryKey
        insert(index, names, at: taken.entryKey, of: base, version: version, now: SystemClock.now())
        // It may have been in memory alone, from when others owned the key.
        guard let view = disk?.view, !view.contains(EntryName(ofKey: base.key).digest),
            let kept = store.find(base.key, hash: base.hash)
        else { return }
        insert(kept)
    }

    /// Offers an answer that the origin has just given to its other owners, if it may be used
    /// there without asking again.
    func offer(_ fetched: MemoryEntry) {
        guard let hub, let name = fetched.name, fetched.metadata.freshUntil > SystemClock.now()
        else {
            return
        }
        hub.offer(fetched, name.digest)
    }
}

extension PeerHub {
    /// Offers an answer that was just fetched to those who keep it, as far as they are other nodes.
    func offer(_ fetched: MemoryEntry, _ digest: EntryDigest) {
        let owners = ringUpdater.ring.owners(of: digest).prefix(replicas).filter { $0 != ownID }
        guard !owners.isEmpty else { return }
        offeredKeys.record(digest, fetched.key)
        let offer = PeerOffer(digest: digest, size: fetched.metadata.size, touches: 1, isNew: true)
        loop.execute { [self] in handoffSender.entryFetched(offer, for: owners) }
    }

    func offersReceived(_ offers: [PeerOffer], on connection: PeerConnection) {
        loop.execute { [self] in handoffReceiver.offersReceived(offers, on: connection) }
    }

    func offerOutcomesReceived(_ verdicts: [OfferOutcome], on connection: PeerConnection) {
        guard let peer = connection.peer else { return }
        loop.execute { [self] in handoffSender.outcomesReceived(verdicts, by: peer) }
    }

    /// Owns nothing any more, and hands over what it holds; succeeds when that is done, or cannot
    /// be, with true if everything was taken.
    func drain() -> EventLoopFuture<Bool> {
        loop.flatSubmit { [self] in
            let promise = loop.makePromise(of: Bool.self)
            guard !isStopped else {
                promise.succeed(false)
                return promise.futureResult
            }
            handle(.roleChanged(membership.own.member.role.union(.isDraining)))
            handoffSender.startDrain(promise)
            return promise.futureResult
        }
    }

    /// Owns again.
    func cancelDrain() {
        loop.execute { [self] in
            guard !isStopped else { return }
            handoffSender.cancelDrain()
            handle(.roleChanged(membership.own.member.role.subtracting(.isDraining)))
        }
    }
}
