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
package struct OfferBook: Sendable {
    private struct Line: Sendable {
        var new = LinkQueue<PeerOffer>()
        var moved = LinkQueue<PeerOffer>()
        var open: [EntryDigest: Open] = [:]
        /// Everything that waits or is open.
        var known: Set<EntryDigest> = []
        /// Fetched anew while an older offer of the same waited or was open.
        var renewed: [EntryDigest: PeerOffer] = [:]
        /// When the connection went; nil while there is one.
        var unreachableSince: Instant?
        /// When it has answered last, or when it came to owe an answer after owing none.
        var heardAt: Instant?
        /// It owes no answer to what was said to it.
        var isAnswered = true

        var waitingCount: Int { new.count + moved.count }

        mutating func enqueue(_ offer: PeerOffer) {
            if offer.isNew { new.append(offer) } else { moved.append(offer) }
        }
    }

    private struct Open: Sendable {
        var offer: PeerOffer
        var since: Instant
    }

    private var lines: [NodeID: Line] = [:]
    /// Those that were not offered all that they should have been, for they were out of reach.
    package private(set) var misses: Set<NodeID> = []
    /// Offers that were given up for want of room or of a connection.
    package private(set) var dropped: UInt64 = 0

    /// Offers of one receiver that may be open at once.
    package static let openMax = 128
    /// Offers of what was just fetched that may wait for one receiver, beyond which the oldest go.
    package static let newMax = 8_192
    /// Offers of what moved that may wait for one receiver before no more should be added.
    package static let movedMax = 2_048
    /// How long a receiver may be out of reach before nobody waits for it.
    package static let patience = Interval.seconds(10)
    /// How long an answer may take before the offer is made again.
    package static let answerTime = Interval.seconds(20)
    /// How long a receiver may answer nothing while something is open.
    package static let silence = Interval.seconds(60)

    package init() {}

    /// Nothing waits and nothing is open.
    package var isEmpty: Bool { lines.values.allSatisfy { $0.known.isEmpty } }
    package var waitingCount: Int { lines.values.reduce(0) { $0 + $1.waitingCount } }
    package var openCount: Int { lines.values.reduce(0) { $0 + $1.open.count } }

    /// More of what moved may be added.
    package var hasRoom: Bool { lines.values.allSatisfy { $0.moved.count < Self.movedMax } }

    /// Those that there is a line for, by id.
    package var receivers: [NodeID] { lines.keys.sorted() }

    /// Has a line for each of `receivers` and for nobody else, and knows with whom of them there is
    /// a connection, with some of them another one than before.
    ///
    /// What was open on a connection that is gone waits again.
    package mutating func follow(
        _ receivers: Set<NodeID>, connected: Set<NodeID>, reconnected: Set<NodeID> = [],
        now: Instant
    ) {
        for node in lines.keys where !receivers.contains(node) { lines[node] = nil }
        misses.formIntersection(receivers)
        for node in receivers {
            let isReachable = connected.contains(node)
            let since = isReachable ? nil : lines[node]?.unreachableSince ?? now
            lines[node, default: Line()].unreachableSince = since
            if !isReachable || reconnected.contains(node) { reopen(node) { _ in true } }
        }
    }

    /// Adds an offer, unless the same entry is on its way to that receiver already; false if there
    /// is no line for it.
    @discardableResult
    package mutating func add(_ offer: PeerOffer, to node: NodeID) -> Bool {
        guard let place = lines.index(forKey: node) else { return false }
        guard !misses.contains(node) || lines.values[place].unreachableSince == nil else {
            dropped += 1
            return false
        }
        guard lines.values[place].known.insert(offer.digest).inserted else {
            // The receiver may take the older one for it.
            if offer.isNew { lines.values[place].renewed[offer.digest] = offer }
            return true
        }
        lines.values[place].enqueue(offer)
        if lines.values[place].new.count > Self.newMax,
            let oldest = lines.values[place].new.takeFirst()
        {
            lines.values[place].known.remove(oldest.digest)
            lines.values[place].renewed[oldest.digest] = nil
            dropped += 1
        }
        return true
    }

    /// The offers that go to `node` next, which are open from now on.
    package mutating func next(for node: NodeID, now: Instant) -> [PeerOffer] {
        guard let place = lines.index(forKey: node),
            lines.values[place].unreachableSince == nil
        else { return [] }
        var offers: [PeerOffer] = []
        let line = lines.values[place]
        if line.open.isEmpty, line.isAnswered { lines.values[place].heardAt = now }
        while lines.values[place].open.count < Self.openMax,
            let offer = lines.values[place].new.takeFirst()
                ?? lines.values[place].moved.takeFirst()
        {
            lines.values[place].open[offer.digest] = Open(offer: offer, since: now)
            offers.append(offer)
        }
        if !offers.isEmpty { lines.values[place].isAnswered = false }
        return offers
    }

    /// These were not said after all.
    package mutating func putBack(_ offers: [PeerOffer], for node: NodeID) {
        let digests = Set(offers.map(\.digest))
        reopen(node) { digests.contains($0.offer.digest) }
    }

    /// `node` has answered; how many of the answers were to offers that were open, and how many of
    /// those say that the entry is kept.
    package mutating func answered(
        _ verdicts: [OfferVerdict], by node: NodeID, now: Instant
    ) -> (count: Int, kept: Int) {
        guard let place = lines.index(forKey: node) else { return (0, 0) }
        var (count, kept) = (0, 0)
        for verdict in verdicts {
            guard lines.values[place].open.removeValue(forKey: verdict.digest) != nil else {
                continue
            }
            count += 1
            if verdict.isKept { kept += 1 }
            if let offer = lines.values[place].renewed.removeValue(forKey: verdict.digest) {
                lines.values[place].enqueue(offer)
            } else {
                lines.values[place].known.remove(verdict.digest)
            }
        }
        if count > 0 { lines.values[place].heardAt = now }
        lines.values[place].isAnswered = lines.values[place].open.isEmpty
        return (count, kept)
    }

    /// To be called every few seconds: what has been open for too long waits again, and the lines
    /// of those that are out of reach, or silent, for too long are dropped.
    package mutating func ticked(_ now: Instant) {
        for node in lines.keys {
            guard let place = lines.index(forKey: node) else { continue }
            let line = lines.values[place]
            let isAway = line.unreachableSince.map { now - $0 >= Self.patience } ?? false
            let isSilent = !line.open.isEmpty && now - (line.heardAt ?? now) >= Self.silence
            guard isAway || isSilent else {
                reopen(node) { now - $0.since >= Self.answerTime }
                continue
            }
            guard !line.known.isEmpty else { continue }
            dropped += UInt64(line.waitingCount + line.open.count)
            lines.values[place] = Line(unreachableSince: line.unreachableSince)
            misses.insert(node)
        }
    }

    /// All that `node` owns is added anew from now on: it misses nothing.
    package mutating func beginAnew(for node: NodeID) {
        misses.remove(node)
    }

    private mutating func reopen(_ node: NodeID, where isMeant: (Open) -> Bool) {
        guard let place = lines.index(forKey: node) else { return }
        let meant = lines.values[place].open.filter { isMeant($0.value) }
        // In one order, whatever that of the table is.
        for digest in meant.keys.sorted(by: { ($0.first, $0.second) < ($1.first, $1.second) }) {
            guard let open = lines.values[place].open.removeValue(forKey: digest) else { continue }
            lines.values[place].enqueue(open.offer)
        }
    }
}
