package import Ground

/// What a node would hand over, to whom, and what of it was offered and is not answered yet.
///
/// One line for each receiver. What was just fetched goes before what the receiver has come to own;
/// of that the caller adds the most touched first, and no more than there is room for
/// (``hasRoom``). An offer stays open until it is answered. If the connection goes before, or
/// ``answerTime`` has gone by, it is made again: whoever has the entry by then says so, which costs
/// one more frame and nothing else. So the book never waits for an answer that was lost.
///
/// Who cannot be reached for ``patience``, or answers nothing for ``silence``, holds up nobody: its
/// line is dropped, and it is noted that it ``misses`` something.
package struct OutboundOffers: Sendable {
    private struct Receiver: Sendable {
        var fetched = FIFOQueue<PeerOffer>()
        var moved = FIFOQueue<PeerOffer>()
        var open: [EntryDigest: OpenOffer] = [:]
        /// Everything that waits or is open.
        var pendingDigests: Set<EntryDigest> = []
        /// Fetched anew while an older offer of the same waited or was open.
        var refetched: [EntryDigest: PeerOffer] = [:]
        /// When the connection went; nil while there is one.
        var unreachableSince: Instant?
        /// When it has answered last, or when it came to owe an answer after owing none.
        var lastOutcomeAt: Instant?
        /// It owes no answer to what was said to it.
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
    /// Those that were not offered all that they should have been, for they were out of reach.
    package private(set) var missedReceivers: Set<NodeID> = []
    /// Offers that were given up for want of room or of a connection.
    package private(set) var droppedCount: UInt64 = 0

    /// Offers of one receiver that may be open at once.
    package static let openMax = 128
    /// Offers of what was just fetched that may wait for one receiver, beyond which the oldest go.
    package static let newMax = 8_192
    /// Offers of what moved that may wait for one receiver before no more should be added.
    package static let movedMax = 2_048
    /// How long a receiver may be out of reach before nobody waits for it.
    package static let unreachableTimeout = Interval.seconds(10)
    /// How long an answer may take before the offer is made again.
    package static let outcomeTimeout = Interval.seconds(20)
    /// How long a receiver may answer nothing while something is open.
    package static let silenceTimeout = Interval.seconds(60)

    package init() {}

    /// Nothing waits and nothing is open.
    package var isEmpty: Bool { receiversByID.values.allSatisfy { $0.pendingDigests.isEmpty } }
    package var waitingCount: Int { receiversByID.values.reduce(0) { $0 + $1.waitingCount } }
    package var openCount: Int { receiversByID.values.reduce(0) { $0 + $1.open.count } }

    /// More of what moved may be added.
    package var hasRoom: Bool { receiversByID.values.allSatisfy { $0.moved.count < Self.movedMax } }

    /// Those that there is a line for, by id.
    package var receiverIDs: [NodeID] { receiversByID.keys.sorted() }

    /// Has a line for each of `receivers` and for nobody else, and knows with whom of them there is
    /// a connection, with some of them another one than before.
    ///
    /// What was open on a connection that is gone waits again.
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

    /// Adds an offer, unless the same entry is on its way to that receiver already; false if there
    /// is no line for it.
    @discardableResult
    package mutating func add(_ offer: PeerOffer, to node: NodeID) -> Bool {
        guard let place = receiversByID.index(forKey: node) else { return false }
        guard !missedReceivers.contains(node) || receiversByID.values[place].unreachableSince == nil
        else {
            droppedCount += 1
            return false
        }
        guard receiversByID.values[place].pendingDigests.insert(offer.digest).inserted else {
            // The receiver may take the older one for it.
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

    /// The offers that go to `node` next, which are open from now on.
    package mutating func next(for node: NodeID, now: Instant) -> [PeerOffer] {
        guard let place = receiversByID.index(forKey: node),
            receiversByID.values[place].unreachableSince == nil
        else { return [] }
        var offers: [PeerOffer] = []
        let line = receiversByID.values[place]
        if line.open.isEmpty, line.isIdle { receiversByID.values[place].lastOutcomeAt = now }
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

    /// These were not said after all.
    package mutating func requeue(_ offers: [PeerOffer], for node: NodeID) {
        let digests = Set(offers.map(\.digest))
        requeueOpen(node) { digests.contains($0.offer.digest) }
    }

    /// `node` has answered; how many of the answers were to offers that were open, and how many of
    /// those say that the entry is kept.
    package mutating func outcomesReceived(
        _ verdicts: [OfferOutcome], by node: NodeID, now: Instant
    ) -> (count: Int, kept: Int) {
        guard let place = receiversByID.index(forKey: node) else { return (0, 0) }
        var (count, kept) = (0, 0)
        for verdict in verdicts {
            guard receiversByID.values[place].open.removeValue(forKey: verdict.digest) != nil else {
                continue
            }
            count += 1
            if verdict.isStored { kept += 1 }
            if let offer = receiversByID.values[place].refetched.removeValue(forKey: verdict.digest)
            {
                receiversByID.values[place].enqueue(offer)
            } else {
                receiversByID.values[place].pendingDigests.remove(verdict.digest)
            }
        }
        if count > 0 { receiversByID.values[place].lastOutcomeAt = now }
        receiversByID.values[place].isIdle = receiversByID.values[place].open.isEmpty
        return (count, kept)
    }

    /// To be called every few seconds: what has been open for too long waits again, and the lines
    /// of those that are out of reach, or silent, for too long are dropped.
    package mutating func ticked(_ now: Instant) {
        for node in receiversByID.keys {
            guard let place = receiversByID.index(forKey: node) else { continue }
            let line = receiversByID.values[place]
            let isAway = line.unreachableSince.map { now - $0 >= Self.unreachableTimeout } ?? false
            let isSilent =
                !line.open.isEmpty && now - (line.lastOutcomeAt ?? now) >= Self.silenceTimeout
            guard isAway || isSilent else {
                requeueOpen(node) { now - $0.since >= Self.outcomeTimeout }
                continue
            }
            guard !line.pendingDigests.isEmpty else { continue }
            droppedCount += UInt64(line.waitingCount + line.open.count)
            receiversByID.values[place] = Receiver(unreachableSince: line.unreachableSince)
            missedReceivers.insert(node)
        }
    }

    /// All that `node` owns is added anew from now on: it misses nothing.
    package mutating func restart(for node: NodeID) {
        missedReceivers.remove(node)
    }

    private mutating func requeueOpen(_ node: NodeID, where isMeant: (OpenOffer) -> Bool) {
        guard let place = receiversByID.index(forKey: node) else { return }
        let meant = receiversByID.values[place].open.filter { isMeant($0.value) }
        // In one order, whatever that of the table is.
        for digest in meant.keys.sorted(by: { ($0.first, $0.second) < ($1.first, $1.second) }) {
            guard let open = receiversByID.values[place].open.removeValue(forKey: digest) else {
                continue
            }
            receiversByID.values[place].enqueue(open.offer)
        }
    }
}
