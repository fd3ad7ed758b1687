import Cluster
import Ground
import NIOCore
import Store
import Wire

/// What is taken over from peers, and offered to them.
extension NodeCore {
    /// Keeps an answer that a peer has offered, unless one as new is here; `done` is told, on any
    /// thread, whether either is.
    func takeOver(
        _ resident: Resident, _ offer: PeerOffer, done: @escaping @Sendable (Bool) -> Void
    ) {
        let held = store.find(resident.key, hash: resident.hash)
        if let held {
            guard held.facts.date <= resident.facts.date else { return done(true) }
            if held.facts.date < resident.facts.date { store.insert(resident) }
        }
        guard let disk else { return done(held != nil || store.insert(resident)) }
        disk.takeOver(
            resident, idle: .seconds(60 * Int64(offer.idleMinutes)),
            touches: offer.touches, now: SystemClock.now(), done: done)
    }

    /// Puts the index of variants that leads to what was taken over into memory and on disk.
    func keepIndex(of taken: OfferedPlace, stamp: Stamp) {
        guard let (index, names) = taken.variant else { return }
        let base = taken.base
        keep(index, names, at: taken.place, of: base, stamp: stamp, now: SystemClock.now())
        // It may have been in memory alone, from when others owned the key.
        guard let view = disk?.view, !view.holds(EntryName(ofKey: base.key).digest),
            let kept = store.find(base.key, hash: base.hash)
        else { return }
        keep(kept)
    }

    /// Offers an answer that the origin has just given to its other owners, if it may be used
    /// there without asking again.
    func offer(_ fetched: Resident) {
        guard let hub, let name = fetched.name, fetched.facts.freshUntil > SystemClock.now() else {
            return
        }
        hub.offer(fetched, name.digest)
    }
}

extension PeerHub {
    /// Offers an answer that was just fetched to those who keep it, as far as they are other nodes.
    func offer(_ fetched: Resident, _ digest: EntryDigest) {
        let owners = rings.ring.owners(of: digest).prefix(replicas).filter { $0 != own }
        guard !owners.isEmpty else { return }
        offeredKeys.note(digest, fetched.key)
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
    /// be, with true if everything was taken.
    func drain() -> EventLoopFuture<Bool> {
        loop.flatSubmit { [self] in
            let promise = loop.makePromise(of: Bool.self)
            guard !isStopped else {
                promise.succeed(false)
                return promise.futureResult
            }
            step(.roleChanged(membership.own.member.role.union(.isDraining)))
            handOver.drain(promise)
            return promise.futureResult
        }
    }

    /// Owns again.
    func undrain() {
        loop.execute { [self] in
            guard !isStopped else { return }
            handOver.undrain()
            step(.roleChanged(membership.own.member.role.subtracting(.isDraining)))
        }
    }
}
