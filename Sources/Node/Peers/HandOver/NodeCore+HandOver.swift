import Cluster
import Ground
import NIOCore
import Store
import Tiers

/// What is taken over from peers, and offered to them.
extension NodeCore {
    /// Keeps an image that a peer has handed over, unless one as new is here; true if either is.
    ///
    /// `location` is where the disk held an older one when it was asked for; what lies there now is
    /// newer if it lies elsewhere.
    func takeOver(_ resident: Resident, stamp: Stamp?, over location: DiskLocation?) -> Bool {
        let key = resident.key
        let held = store.find(
            key.span, 0..<key.count, hash: resident.hash, wanted: resident.facts.negotiation)
        if let held {
            guard held.facts.date <= resident.facts.date else { return true }
            if held.facts.date < resident.facts.date { store.insert(resident) }
        }
        guard let disk else { return held != nil || store.insert(resident) }
        guard let view = disk.view, let name = resident.name else { return false }
        if let entry = view.shards.find(name.digest), entry.location != location { return true }
        return disk.keep(resident, stamp: stamp, now: SystemClock.now())
    }

    /// Offers an image that the origin has just given to its other owners.
    func offer(_ fetched: Resident) {
        guard let hub, let name = fetched.name, fetched.isImage else { return }
        hub.offer(fetched, name.digest)
    }
}

extension PeerHub {
    /// Offers an image that was just fetched to those who keep it, as far as they are other nodes.
    func offer(_ fetched: Resident, _ digest: EntryDigest) {
        let owners = rings.ring.owners(of: digest).prefix(replicas).filter { $0 != own }
        guard !owners.isEmpty else { return }
        offeredKeys.note(
            digest,
            OfferedKeys.OfferedKey(key: fetched.key, negotiation: fetched.facts.negotiation))
        let offer = PeerOffer(digest: digest, size: fetched.facts.size, touches: 1, isNew: true)
        loop.execute { [self] in handOver.fetched(offer, for: owners) }
    }

    func offered(_ offers: [PeerOffer], on connection: PeerConnection) {
        loop.execute { [self] in receiver.offered(offers, on: connection) }
    }

    func answered(_ verdicts: [OfferVerdict], on connection: PeerConnection) {
        guard let peer = connection.peer else { return }
        loop.execute { [self] in handOver.answered(verdicts, by: peer) }
    }

    /// Owns nothing any more, and hands over what it holds; succeeds when that is done, or cannot
    /// be.
    func drain() -> EventLoopFuture<Void> {
        loop.flatSubmit { [self] in
            let promise = loop.makePromise(of: Void.self)
            guard !isStopped else {
                promise.succeed()
                return promise.futureResult
            }
            step(.roleChanged(membership.own.member.role.union(.isDraining)))
            handOver.drain(promise)
            return promise.futureResult
        }
    }
}
