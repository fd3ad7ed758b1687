package import Cluster
package import Ground
package import NIOCore
package import Store
import Telemetry

/// The touches sent to the owners of entries; each is sent at most once.
extension PeerHub {
    /// Sends touches to those owners of their entries that are other nodes; touches for an owner
    /// without a connection are counted as lost.
    ///
    /// - Parameters:
    ///   - touches: the touches.
    ///   - second: the current second of this node's clock, from which their ages are computed.
    package func sendTouches(_ touches: [Touch], second: UInt32) {
        let (view, ring) = (view, ringUpdater.ring)
        var batches: [NodeID: [AgedTouch]] = [:]
        for touch in touches {
            for owner in ring.owners(of: touch.digest).prefix(replicas) where owner != ownID {
                batches[owner, default: []].append(AgedTouch(touch, now: second))
            }
        }
        for (owner, batch) in batches {
            guard let connection = view.connections[owner] else {
                counters.add(.touchesLost, batch.count)
                continue
            }
            connection.send(batch)
        }
    }
}

/// Offers of entries, and the drain.
extension PeerHub {
    /// Offers a response that was just fetched to those of its owners that are other nodes.
    package func offer(_ fetched: MemoryEntry, _ digest: EntryDigest) {
        let owners = ringUpdater.ring.owners(of: digest).prefix(replicas).filter { $0 != ownID }
        guard !owners.isEmpty else { return }
        offeredKeys.record(digest, fetched.key)
        let offer = PeerOffer(
            digest: digest, size: fetched.metadata.size, touches: 1, isJustFetched: true)
        loop.execute { [self] in handoffSender.entryFetched(offer, for: owners) }
    }

    /// Passes offers to the handoff receiver; thread-safe.
    func offersReceived(_ offers: [PeerOffer], on connection: PeerConnection) {
        loop.execute { [self] in handoffReceiver.offersReceived(offers, on: connection) }
    }

    /// Passes the outcomes of offers to the handoff sender; thread-safe.
    func offerOutcomesReceived(_ verdicts: [OfferOutcome], on connection: PeerConnection) {
        guard let peer = connection.peer else { return }
        loop.execute { [self] in handoffSender.outcomesReceived(verdicts, by: peer) }
    }

    /// Drops ownership and hands off all entries; joins a drain in progress.
    ///
    /// - Returns: a future that succeeds when the handoff has ended, with true if every entry was
    ///   taken; with false at once after ``stop()``.
    package func drain() -> EventLoopFuture<Bool> {
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

    /// Cancels the drain, if any, and takes ownership again; ignored after ``stop()``.
    package func cancelDrain() {
        loop.execute { [self] in
            guard !isStopped else { return }
            handoffSender.cancelDrain()
            handle(.roleChanged(membership.own.member.role.subtracting(.isDraining)))
        }
    }
}
