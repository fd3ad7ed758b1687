package import Ground

/// The offers that this node receives: which are fetched, in which order and how many at once, and
/// the replies.
///
/// Each offer is decided on arrival and, if accepted, again when its turn comes, for much may have
/// been fetched meanwhile. If this node's ring lags behind the sender's, it does not yet own what
/// it will own shortly; so an unwanted offer waits for ``ringLagMax`` before it is rejected.
///
/// A fetch that fails temporarily is retried up to ``failuresMax`` attempts in all.
///
/// Every offer gets one reply on its connection, unless that closes before.
package struct InboundOffers: Sendable {
    /// The decision about an offer.
    package enum Decision: Hashable, Sendable {
        /// The entry is to be fetched.
        case accepted
        /// This node holds the entry, in this version or another.
        case alreadyStored
        /// This node does not own the entry, or stores nothing at present.
        case notOwned
    }

    /// An offer with the connection on which it arrived.
    package struct ReceivedOffer: Hashable, Sendable {
        /// The offer.
        package var offer: PeerOffer
        /// The connection on which it arrived.
        package var connection: ConnectionID
        /// The time of arrival.
        var receivedAt: Instant
        /// The time before which it is not fetched again.
        var retryAt: Instant
        /// The number of fetches that have ended, successful or not.
        var failures = 0
    }

    /// The outcome of a fetch.
    package enum TransferOutcome: Hashable, Sendable {
        /// The entry is stored here, or a version at least as new.
        case stored
        /// The sender no longer has the entry, so there is nothing to hand off.
        case goneAtSender
        /// The entry will not be stored, for example because it is too large.
        case rejected
        /// The fetch failed for a reason that may pass.
        case failed
    }

    /// A reply with the connection on which to send it.
    package struct Reply: Hashable, Sendable {
        /// The connection of the offer.
        package var connection: ConnectionID
        /// The outcome to report.
        package var outcome: OfferOutcome

        /// Creates a reply from its parts.
        package init(connection: ConnectionID, outcome: OfferOutcome) {
            self.connection = connection
            self.outcome = outcome
        }
    }

    private struct Transfer: Sendable {
        var offered: ReceivedOffer
        /// The offers of the same entry that arrived from others during the fetch.
        var others: [ReceivedOffer] = []
    }

    private var waiting = FIFOQueue<ReceivedOffer>()
    private var deferred: [ReceivedOffer] = []
    private var transfers: [EntryDigest: Transfer] = [:]
    private var transferBytes: UInt64 = 0
    /// The number of unanswered offers of each connection.
    private var pendingCounts: [ConnectionID: Int] = [:]

    /// The maximum number of entries fetched at once.
    package static let transfersMax = 8
    /// The maximum number of bytes fetched at once, unless a single entry is larger.
    package static let transferBytesMax: UInt64 = 8 << 20
    /// The maximum number of unanswered offers of one connection; further ones are rejected.
    package static let waitingMax = 1_024
    /// The maximum time by which this node's ring lags behind the sender's.
    package static let ringLagMax = Interval.seconds(2)
    /// The number of failed fetches after which an offer is rejected.
    package static let failuresMax = 5
    /// The delay before a failed fetch is retried.
    package static let retryTime = Interval.seconds(1)

    /// Creates an empty state.
    package init() {}

    /// The number of unanswered offers.
    package var count: Int { pendingCounts.values.reduce(0, +) }
    /// The number of entries being fetched.
    package var transferCount: Int { transfers.count }

    /// True if offers wait for their turn or for another decision.
    package var hasWaiting: Bool { !waiting.isEmpty || !deferred.isEmpty }

    /// Adds offers that arrived on `connection`.
    ///
    /// - Returns: The replies to offers that need no fetch: the entry is stored here, or too many
    ///   offers of the connection are unanswered.
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

    /// Returns the offers to fetch now, and replies to offers that no longer need a fetch.
    ///
    /// Each returned fetch must be ended with ``transferEnded(_:_:now:)``.
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

    /// Records the end of a fetch.
    ///
    /// A failed fetch is retried after ``retryTime``, until ``failuresMax`` have failed. Offers of
    /// the entry by other senders are answered if it was stored, except of an entry that they have
    /// just fetched; otherwise they wait for their turn again.
    ///
    /// - Returns: The replies that result; none for a fetch that is not in progress.
    package mutating func transferEnded(
        _ digest: EntryDigest, _ ending: TransferOutcome, now: Instant
    ) -> [Reply] {
        guard let transfer = transfers.removeValue(forKey: digest) else { return [] }
        transferBytes -= min(transfer.offered.offer.size, Self.transferBytesMax)
        var responses: [Reply] = []
        var offered = transfer.offered
        offered.failures += 1
        if ending == .failed, offered.failures < Self.failuresMax {
            offered.retryAt = now + Self.retryTime
            deferred.append(offered)
        } else {
            reply(offered, isKept: ending == .stored || ending == .goneAtSender, &responses)
        }
        for other in transfer.others {
            // Of two entries that two nodes have just fetched, one is newer.
            if ending == .stored, !other.offer.isJustFetched {
                reply(other, isKept: true, &responses)
            } else {
                waiting.append(other)
            }
        }
        return responses
    }

    /// Drops the offers of a closed connection: they get no reply, and waiting ones are not
    /// fetched.
    package mutating func connectionClosed(_ connection: ConnectionID) {
        pendingCounts[connection] = nil
    }

    /// Ends an offer with a reply, which reports the entry as stored if `isKept`; no effect once
    /// its connection has closed.
    private mutating func reply(
        _ offered: ReceivedOffer, isKept: Bool, _ responses: inout [Reply]
    ) {
        guard let count = pendingCounts[offered.connection] else { return }
        pendingCounts[offered.connection] = count == 1 ? nil : count - 1
        responses.append(
            Reply(
                connection: offered.connection,
                outcome: OfferOutcome(digest: offered.offer.digest, isStored: isKept)))
    }
}
