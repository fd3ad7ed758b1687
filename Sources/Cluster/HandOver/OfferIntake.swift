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
package struct OfferIntake: Sendable {
    /// What this node makes of an offer.
    package enum Judgement: Hashable, Sendable {
        /// It is to be fetched.
        case wanted
        /// It is here, in this version or another.
        case held
        /// This node does not own it, or keeps nothing now.
        case unwanted
    }

    /// An offer, and on which connection it came.
    package struct Offered: Hashable, Sendable {
        package var offer: PeerOffer
        package var connection: ConnectionID
        /// When it came.
        var since: Instant
        /// It is not fetched again before.
        var notBefore: Instant
        /// How often it was fetched in vain.
        var failures = 0
    }

    /// What has come of a fetch.
    package enum Ending: Hashable, Sendable {
        /// It is here, or one as new.
        case kept
        /// The giver has it no more, so that nothing is left to be handed over.
        case gone
        /// Nothing will come of it, such as of one that is too large.
        case refused
        /// It may go better at another time.
        case failed
    }

    /// An answer, and on which connection it goes.
    package struct Answer: Hashable, Sendable {
        package var connection: ConnectionID
        package var verdict: OfferVerdict

        package init(connection: ConnectionID, verdict: OfferVerdict) {
            self.connection = connection
            self.verdict = verdict
        }
    }

    private struct Taking: Sendable {
        var offered: Offered
        /// The same entry, offered by others meanwhile.
        var others: [Offered] = []
    }

    private var waiting = LinkQueue<Offered>()
    private var doubtful: [Offered] = []
    private var taking: [EntryDigest: Taking] = [:]
    private var takingBytes: UInt64 = 0
    /// How many of each connection are not answered.
    private var counts: [ConnectionID: Int] = [:]

    /// Entries that are fetched at once.
    package static let takingMax = 8
    /// Bytes that are fetched at once, unless one entry alone is more.
    package static let takingBytesMax: UInt64 = 8 << 20
    /// Offers of one connection that may wait; further ones are refused.
    package static let waitingMax = 1_024
    /// How long this node's ring may take to follow that of the giver.
    package static let lag = Interval.seconds(2)
    /// How often a fetch may fail before the offer is refused.
    package static let failuresMax = 5
    /// How soon it is tried again.
    package static let retryTime = Interval.seconds(1)

    package init() {}

    /// Offers that are not answered.
    package var count: Int { counts.values.reduce(0, +) }
    /// Entries that are being fetched.
    package var takingCount: Int { taking.count }

    /// Something waits for its turn, or to be looked at again.
    package var waits: Bool { !waiting.isEmpty || !doubtful.isEmpty }

    /// Takes in offers; the answers to those that need no fetch.
    package mutating func offered(
        _ offers: [PeerOffer], on connection: ConnectionID, now: Instant,
        judge: (PeerOffer) -> Judgement
    ) -> [Answer] {
        var answers: [Answer] = []
        for offer in offers {
            counts[connection, default: 0] += 1
            let offered = Offered(
                offer: offer, connection: connection, since: now, notBefore: now)
            if counts[connection, default: 0] > Self.waitingMax {
                answer(offered, isKept: false, &answers)
                continue
            }
            switch judge(offer) {
            case .held: answer(offered, isKept: true, &answers)
            case .wanted: waiting.append(offered)
            case .unwanted: doubtful.append(offered)
            }
        }
        return answers
    }

    /// What is to be fetched now, and the answers to what needs no fetch any more.
    ///
    /// Each that is given here is to be ended with ``ended(_:_:now:)``.
    package mutating func next(
        now: Instant, judge: (PeerOffer) -> Judgement
    ) -> (fetches: [Offered], answers: [Answer]) {
        var (fetches, answers): ([Offered], [Answer]) = ([], [])
        for offered in doubtful.takeAll() where counts[offered.connection] != nil {
            switch judge(offered.offer) {
            case .held: answer(offered, isKept: true, &answers)
            case .wanted where now < offered.notBefore: doubtful.append(offered)
            case .wanted: waiting.append(offered)
            case .unwanted where now - offered.since >= Self.lag:
                answer(offered, isKept: false, &answers)
            case .unwanted: doubtful.append(offered)
            }
        }
        while hasRoom, let offered = waiting.takeFirst() {
            guard counts[offered.connection] != nil else { continue }
            if taking[offered.offer.digest] != nil {
                taking[offered.offer.digest]?.others.append(offered)
                continue
            }
            switch judge(offered.offer) {
            case .held: answer(offered, isKept: true, &answers)
            case .unwanted: doubtful.append(offered)
            case .wanted:
                taking[offered.offer.digest] = Taking(offered: offered)
                takingBytes += min(offered.offer.size, Self.takingBytesMax)
                fetches.append(offered)
            }
        }
        return (fetches, answers)
    }

    private var hasRoom: Bool {
        taking.count < Self.takingMax && takingBytes < Self.takingBytesMax
    }

    /// A fetch is over; where it brought nothing, the others that offer the same are asked.
    package mutating func ended(
        _ digest: EntryDigest, _ ending: Ending, now: Instant
    ) -> [Answer] {
        guard let taken = taking.removeValue(forKey: digest) else { return [] }
        takingBytes -= min(taken.offered.offer.size, Self.takingBytesMax)
        var answers: [Answer] = []
        var offered = taken.offered
        offered.failures += 1
        if ending == .failed, offered.failures < Self.failuresMax {
            offered.notBefore = now + Self.retryTime
            doubtful.append(offered)
        } else {
            answer(offered, isKept: ending == .kept || ending == .gone, &answers)
        }
        for other in taken.others {
            // Of two that were just fetched, at two nodes, one is newer.
            if ending == .kept, !other.offer.isNew {
                answer(other, isKept: true, &answers)
            } else {
                waiting.append(other)
            }
        }
        return answers
    }

    /// The connection is gone: nothing that came on it is answered, and what waits is not fetched.
    package mutating func closed(_ connection: ConnectionID) {
        counts[connection] = nil
    }

    private mutating func answer(
        _ offered: Offered, isKept: Bool, _ answers: inout [Answer]
    ) {
        guard let count = counts[offered.connection] else { return }
        counts[offered.connection] = count == 1 ? nil : count - 1
        answers.append(
            Answer(
                connection: offered.connection,
                verdict: OfferVerdict(digest: offered.offer.digest, isKept: isKept)))
    }
}
