package import Ground

/// The offers that a node makes to new owners: which wait, for whom, and which are open.
///
/// Each receiver has a queue. Entries that were just fetched go before entries that the receiver
/// has come to own. Of the latter the caller adds the most touched first, and only while
/// ``hasRoom``. An offer stays open until it is answered. If the connection closes before, or
/// ``outcomeTimeout`` passes, it is made again; a receiver that has the entry by then replies so,
/// at the cost of one frame. So a lost reply blocks nothing.
///
/// A receiver that is unreachable for ``unreachableTimeout``, or sends no reply for
/// ``silenceTimeout``, delays no other: its queue is dropped and it is added to
/// ``missedReceivers``.
package struct OutboundOffers: Sendable {
    private struct Receiver: Sendable {
        var fetched = FIFOQueue<PeerOffer>()
        var moved = FIFOQueue<PeerOffer>()
        var open: [EntryDigest: OpenOffer] = [:]
        /// The digests of all offers that wait or are open.
        var pendingDigests: Set<EntryDigest> = []
        /// The newer offers of entries that were fetched again while an older offer waited or was
        /// open.
        var refetched: [EntryDigest: PeerOffer] = [:]
        /// When the connection closed; `nil` while there is one.
        var unreachableSince: Instant?
        /// The time of the last reply, or of the first offer after all were answered.
        var lastOutcomeAt: Instant?
        /// True if the receiver owes no reply.
        var isIdle = true

        var waitingCount: Int { fetched.count + moved.count }

        mutating func enqueue(_ offer: PeerOffer) {
            if offer.isJustFetched { fetched.append(offer) } else { moved.append(offer) }
        }
    }

    private struct OpenOffer: Sendable {
        var offer: PeerOffer
        var since: Instant
    }

    private var receiversByID: [NodeID: Receiver] = [:]
    /// The receivers that were not offered all that they own, because they were unreachable or
    /// silent.
    package private(set) var missedReceivers: Set<NodeID> = []
    /// The number of offers that were dropped because a queue was full or the receiver missed.
    package private(set) var droppedCount: UInt64 = 0

    /// The maximum number of open offers of one receiver.
    package static let openMax = 128
    /// The maximum number of waiting offers of just fetched entries per receiver; then the oldest
    /// is dropped.
    package static let newMax = 8_192
    /// The number of waiting offers of moved entries per receiver at which no more should be added.
    package static let movedMax = 2_048
    /// The time for which a receiver may be unreachable before its queue is dropped.
    package static let unreachableTimeout = Interval.seconds(10)
    /// The time without a reply after which an offer is made again.
    package static let outcomeTimeout = Interval.seconds(20)
    /// The time without any reply, while offers are open, after which the queue is dropped.
    package static let silenceTimeout = Interval.seconds(60)

    /// Creates an empty state.
    package init() {}

    /// True if no offer waits or is open.
    package var isEmpty: Bool { receiversByID.values.allSatisfy { $0.pendingDigests.isEmpty } }
    /// The number of waiting offers of all receivers.
    package var waitingCount: Int { receiversByID.values.reduce(0) { $0 + $1.waitingCount } }
    /// The number of open offers of all receivers.
    package var openCount: Int { receiversByID.values.reduce(0) { $0 + $1.open.count } }

    /// True if more offers of moved entries may be added.
    package var hasRoom: Bool { receiversByID.values.allSatisfy { $0.moved.count < Self.movedMax } }

    /// The nodes that have a queue, by id.
    package var receiverIDs: [NodeID] { receiversByID.keys.sorted() }

    /// Sets the receivers and which of them are connected.
    ///
    /// Queues of other nodes are dropped. Offers that were open on a closed connection wait again.
    ///
    /// - Parameters:
    ///   - receivers: All receivers.
    ///   - connected: The receivers with a connection.
    ///   - reconnected: The receivers whose connection was replaced by a new one.
    ///   - now: The current time.
    package mutating func updateReceivers(
        _ receivers: Set<NodeID>, connected: Set<NodeID>, reconnected: Set<NodeID> = [],
        now: Instant
    ) {
        for node in receiversByID.keys where !receivers.contains(node) { receiversByID[node] = nil }
        missedReceivers.formIntersection(receivers)
        for node in receivers {
            let isReachable = connected.contains(node)
            let since = isReachable ? nil : receiversByID[node]?.unreachableSince ?? now
            receiversByID[node, default: Receiver()].unreachableSince = since
            if !isReachable || reconnected.contains(node) { requeueOpen(node) { _ in true } }
        }
    }

    /// Adds an offer, unless one of the same entry to that receiver waits or is open; a just
    /// fetched entry is then offered again after the reply.
    ///
    /// - Returns: False if `node` has no queue, or is unreachable and has missed offers already.
    @discardableResult
    package mutating func add(_ offer: PeerOffer, to node: NodeID) -> Bool {
        guard let place = receiversByID.index(forKey: node) else { return false }
        guard !missedReceivers.contains(node) || receiversByID.values[place].unreachableSince == nil
        else {
            droppedCount += 1
            return false
        }
        guard receiversByID.values[place].pendingDigests.insert(offer.digest).inserted else {
            // The reply may be about the older version; the newer one is offered after it.
            if offer.isJustFetched { receiversByID.values[place].refetched[offer.digest] = offer }
            return true
        }
        receiversByID.values[place].enqueue(offer)
        if receiversByID.values[place].fetched.count > Self.newMax,
            let oldest = receiversByID.values[place].fetched.takeFirst()
        {
            receiversByID.values[place].pendingDigests.remove(oldest.digest)
            receiversByID.values[place].refetched[oldest.digest] = nil
            droppedCount += 1
        }
        return true
    }

    /// Returns the next offers to send to `node`, which are open from now on; none while it is
    /// unreachable or ``openMax`` are open.
    package mutating func next(for node: NodeID, now: Instant) -> [PeerOffer] {
        guard let place = receiversByID.index(forKey: node),
            receiversByID.values[place].unreachableSince == nil
        else { return [] }
        var offers: [PeerOffer] = []
        let receiver = receiversByID.values[place]
        if receiver.open.isEmpty, receiver.isIdle {
            receiversByID.values[place].lastOutcomeAt = now
        }
        while receiversByID.values[place].open.count < Self.openMax,
            let offer = receiversByID.values[place].fetched.takeFirst()
                ?? receiversByID.values[place].moved.takeFirst()
        {
            receiversByID.values[place].open[offer.digest] = OpenOffer(offer: offer, since: now)
            offers.append(offer)
        }
        if !offers.isEmpty { receiversByID.values[place].isIdle = false }
        return offers
    }

    /// Makes offers wait again that were returned by ``next(for:now:)`` and not sent.
    package mutating func requeue(_ offers: [PeerOffer], for node: NodeID) {
        let digests = Set(offers.map(\.digest))
        requeueOpen(node) { digests.contains($0.offer.digest) }
    }

    /// Records the replies of `node`.
    ///
    /// - Returns: How many of them answer open offers, and how many of those report the entry
    ///   stored.
    package mutating func outcomesReceived(
        _ outcomes: [OfferOutcome], by node: NodeID, now: Instant
    ) -> (count: Int, kept: Int) {
        guard let place = receiversByID.index(forKey: node) else { return (0, 0) }
        var (count, kept) = (0, 0)
        for outcome in outcomes {
            guard receiversByID.values[place].open.removeValue(forKey: outcome.digest) != nil else {
                continue
            }
            count += 1
            if outcome.isStored { kept += 1 }
            if let offer = receiversByID.values[place].refetched.removeValue(forKey: outcome.digest)
            {
                receiversByID.values[place].enqueue(offer)
            } else {
                receiversByID.values[place].pendingDigests.remove(outcome.digest)
            }
        }
        if count > 0 { receiversByID.values[place].lastOutcomeAt = now }
        receiversByID.values[place].isIdle = receiversByID.values[place].open.isEmpty
        return (count, kept)
    }

    /// Requeues offers that are open too long, and drops the queues of unreachable or silent
    /// receivers.
    ///
    /// Must be called every few seconds.
    package mutating func ticked(_ now: Instant) {
        for node in receiversByID.keys {
            guard let place = receiversByID.index(forKey: node) else { continue }
            let receiver = receiversByID.values[place]
            let isAway =
                receiver.unreachableSince.map { now - $0 >= Self.unreachableTimeout } ?? false
            let isSilent =
                !receiver.open.isEmpty
                && now - (receiver.lastOutcomeAt ?? now) >= Self.silenceTimeout
            guard isAway || isSilent else {
                requeueOpen(node) { now - $0.since >= Self.outcomeTimeout }
                continue
            }
            guard !receiver.pendingDigests.isEmpty else { continue }
            droppedCount += UInt64(receiver.waitingCount + receiver.open.count)
            receiversByID.values[place] = Receiver(unreachableSince: receiver.unreachableSince)
            missedReceivers.insert(node)
        }
    }

    /// Removes `node` from ``missedReceivers``, because all that it owns is added again from now
    /// on.
    package mutating func restart(for node: NodeID) {
        missedReceivers.remove(node)
    }

    /// Makes the open offers to `node` for which `isMeant` is true wait again, behind those that
    /// wait.
    private mutating func requeueOpen(_ node: NodeID, where isMeant: (OpenOffer) -> Bool) {
        guard let place = receiversByID.index(forKey: node) else { return }
        let meant = receiversByID.values[place].open.filter { isMeant($0.value) }
        // In a fixed order, independent of the dictionary's.
        for digest in meant.keys.sorted(by: { ($0.first, $0.second) < ($1.first, $1.second) }) {
            guard let open = receiversByID.values[place].open.removeValue(forKey: digest) else {
                continue
            }
            receiversByID.values[place].enqueue(open.offer)
        }
    }
}
