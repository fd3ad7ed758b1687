package import Ground

/// What others offer this node: what of it is fetched, in which order, how much at once, and what
/// they are answered.
///
/// Offers are judged when they come, and those that are wanted once more when their turn comes, for
/// much may have been fetched meanwhile. A node whose ring lags behind the giver's does not own yet
/// what it will own in a moment: what it does not want waits for ``lag`` before it is refused.
///
/// What fails for a reason that may pass is tried again a few times.
///
/// Every offer is answered once on the connection on which it came, unless that ends before.
package struct InboundOffers: Sendable {
    /// What this node makes of an offer.
    package enum Decision: Hashable, Sendable {
        /// It is to be fetched.
        case accepted
        /// It is here, in this version or another.
        case alreadyStored
        /// This node does not own it, or keeps nothing now.
        case notOwned
    }

    /// An offer, and on which connection it came.
    package struct ReceivedOffer: Hashable, Sendable {
        package var offer: PeerOffer
        package var connection: ConnectionID
        /// When it came.
        var receivedAt: Instant
        /// It is not fetched again before.
        var retryAt: Instant
        /// How often it was fetched in vain.
        var failures = 0
    }

    /// What has come of a fetch.
    package enum TransferOutcome: Hashable, Sendable {
        /// It is here, or one as new.
        case stored
        /// The giver has it no more, so that nothing is left to be handed over.
        case goneAtSender
        /// Nothing will come of it, such as of one that is too large.
        case rejected
        /// It may go better at another time.
        case failed
    }

    /// An answer, and on which connection it goes.
    package struct Reply: Hashable, Sendable {
        package var connection: ConnectionID
        package var outcome: OfferOutcome

        package init(connection: ConnectionID, verdict: OfferOutcome) {
            self.connection = connection
            self.outcome = verdict
        }
    }

    private struct Transfer: Sendable {
        var offered: ReceivedOffer
        /// The same entry, offered by others meanwhile.
        var others: [ReceivedOffer] = []
    }

    private var waiting = FIFOQueue<ReceivedOffer>()
    private var deferred: [ReceivedOffer] = []
    private var transfers: [EntryDigest: Transfer] = [:]
    private var transferBytes: UInt64 = 0
    /// How many of each connection are not answered.
    private var pendingCounts: [ConnectionID: Int] = [:]

    /// Entries that are fetched at once.
    package static let transfersMax = 8
    /// Bytes that are fetched at once, unless one entry alone is more.
    package static let transferBytesMax: UInt64 = 8 << 20
    /// Offers of one connection that may wait; further ones are refused.
    package static let waitingMax = 1_024
    /// How long this node's ring may take to follow that of the giver.
    package static let ringLagMax = Interval.seconds(2)
    /// How often a fetch may fail before the offer is refused.
    package static let failuresMax = 5
    /// How soon it is tried again.
    package static let retryTime = Interval.seconds(1)

    package init() {}

    /// Offers that are not answered.
    package var count: Int { pendingCounts.values.reduce(0, +) }
    /// Entries that are being fetched.
    package var transferCount: Int { transfers.count }

    /// Something waits for its turn, or to be looked at again.
    package var hasWaiting: Bool { !waiting.isEmpty || !deferred.isEmpty }

    /// Takes in offers; the answers to those that need no fetch.
    package mutating func offersReceived(
        _ offers: [PeerOffer], on connection: ConnectionID, now: Instant,
        decide: (PeerOffer) -> Decision
    ) -> [Reply] {
        var responses: [Reply] = []
        for offer in offers {
            pendingCounts[connection, default: 0] += 1
            let offered = ReceivedOffer(
                offer: offer, connection: connection, receivedAt: now, retryAt: now)
            if pendingCounts[connection, default: 0] > Self.waitingMax {
                reply(offered, isKept: false, &responses)
                continue
            }
            switch decide(offer) {
            case .alreadyStored: reply(offered, isKept: true, &responses)
            case .accepted: waiting.append(offered)
            case .notOwned: deferred.append(offered)
            }
        }
        return responses
    }

    /// What is to be fetched now, and the answers to what needs no fetch any more.
    ///
    /// Each that is given here is to be ended with ``ended(_:_:now:)``.
    package mutating func next(
        now: Instant, decide: (PeerOffer) -> Decision
    ) -> (fetches: [ReceivedOffer], responses: [Reply]) {
        var (fetches, responses): ([ReceivedOffer], [Reply]) = ([], [])
        for offered in deferred.takeAll() where pendingCounts[offered.connection] != nil {
            switch decide(offered.offer) {
            case .alreadyStored: reply(offered, isKept: true, &responses)
            case .accepted where now < offered.retryAt: deferred.append(offered)
            case .accepted: waiting.append(offered)
            case .notOwned where now - offered.receivedAt >= Self.ringLagMax:
                reply(offered, isKept: false, &responses)
            case .notOwned: deferred.append(offered)
            }
        }
        while hasRoom, let offered = waiting.takeFirst() {
            guard pendingCounts[offered.connection] != nil else { continue }
            if transfers[offered.offer.digest] != nil {
                transfers[offered.offer.digest]?.others.append(offered)
                continue
            }
            switch decide(offered.offer) {
            case .alreadyStored: reply(offered, isKept: true, &responses)
            case .notOwned: deferred.append(offered)
            case .accepted:
                transfers[offered.offer.digest] = Transfer(offered: offered)
                transferBytes += min(offered.offer.size, Self.transferBytesMax)
                fetches.append(offered)
            }
        }
        return (fetches, responses)
    }

    private var hasRoom: Bool {
        transfers.count < Self.transfersMax && transferBytes < Self.transferBytesMax
    }

    /// A fetch is over; where it brought nothing, the others that offer the same are asked.
    package mutating func transferEnded(
        _ digest: EntryDigest, _ ending: TransferOutcome, now: Instant
    ) -> [Reply] {
        guard let taken = transfers.removeValue(forKey: digest) else { return [] }
        transferBytes -= min(taken.offered.offer.size, Self.transferBytesMax)
        var responses: [Reply] = []
        var offered = taken.offered
        offered.failures += 1
        if ending == .failed, offered.failures < Self.failuresMax {
            offered.retryAt = now + Self.retryTime
            deferred.append(offered)
        } else {
            reply(offered, isKept: ending == .stored || ending == .goneAtSender, &responses)
        }
        for other in taken.others {
            // Of two that were just fetched, at two nodes, one is newer.
            if ending == .stored, !other.offer.isJustFetched {
                reply(other, isKept: true, &responses)
            } else {
                waiting.append(other)
            }
        }
        return responses
    }

    /// The connection is gone: nothing that came on it is answered, and what waits is not fetched.
    package mutating func connectionClosed(_ connection: ConnectionID) {
        pendingCounts[connection] = nil
    }

    private mutating func reply(
        _ offered: ReceivedOffer, isKept: Bool, _ responses: inout [Reply]
    ) {
        guard let count = pendingCounts[offered.connection] else { return }
        pendingCounts[offered.connection] = count == 1 ? nil : count - 1
        responses.append(
            Reply(
                connection: offered.connection,
                verdict: OfferOutcome(digest: offered.offer.digest, isKept: isKept)))
    }
}
