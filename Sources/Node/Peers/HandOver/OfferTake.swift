import Cluster
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Store
import Tiers
import Wire

/// One image that was offered, and is fetched from who offers it.
///
/// It goes to the disk and not into memory, where nobody has asked for it; a node without a disk
/// has nowhere else to put it. What is here and as new is never replaced. Confined to the loop of
/// its hall.
final class OfferTake: PeerAskDelegate, @unchecked Sendable {
    private let offer: PeerOffer
    private let peer: NodeID
    private let connection: PeerConnection
    private let hall: Hall
    private var done: (@Sendable (OfferIntake.Ending) -> Void)?
    private var ask: PeerAsk?
    /// Of the moment at which it was asked for.
    private var lease: StampLease?
    /// That of what the disk held of it then.
    private var before: WallTime?
    private var arriving: Arriving?
    private var lastEvent = SystemClock.now()
    private var watch: Scheduled<Void>?

    /// How long the giver may say nothing.
    private static let patience = Interval.seconds(10)

    /// An image of which the head has come.
    private struct Arriving {
        let entry: HeldEntry
        let facts: EntryFacts
        let name: EntryName
        let head: RenderedHead
        let reservation: FillReservation
        let reservedBytes: Int
        var body = GrowingBody(isKept: true)
    }

    /// `done` is told once what has come of it.
    init(
        _ offer: PeerOffer, from peer: NodeID, on connection: PeerConnection, in hall: Hall,
        done: @escaping @Sendable (OfferIntake.Ending) -> Void
    ) {
        self.offer = offer
        self.peer = peer
        self.connection = connection
        self.hall = hall
        self.done = done
    }

    func start() {
        guard offer.isNew, let disk = hall.node.disk, let view = disk.view,
            view.holds(offer.digest)
        else { return put() }
        let (digest, clock) = (offer.digest, disk.clock)
        let date = disk.readers.runIfActive(eventLoop: hall.loop) {
            view.read(offered: digest)?.facts(clock).date
        }
        date.assumeIsolated().whenComplete { [self] result in
            if case .success(let date?) = result { before = date }
            put()
        }
    }

    private func put() {
        lease = hall.node.marks.lease()
        let ask = PeerAsk(
            peer,
            PeerQuestion(
                .probe, name: EntryName(offered: offer.digest), key: [], deadlineMilliseconds: 0),
            on: connection, for: self, of: hall)
        self.ask = ask
        connection.ask(ask)
        lookAgain()
    }

    /// A giver that hangs is not to hold up what others give.
    private func lookAgain() {
        let wait = max(.milliseconds(1), lastEvent + Self.patience - SystemClock.now())
        watch = hall.loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) {
            [self] in
            guard done != nil else { return }
            guard SystemClock.now() - lastEvent < Self.patience else { return end(.failed) }
            lookAgain()
        }
    }

    func heard(_ event: PeerAsk.Event, of ask: PeerAsk) {
        guard done != nil else { return }
        lastEvent = SystemClock.now()
        switch event {
        case .answered(.held(let entry)): begin(entry, of: ask)
        case .answered(.fetching): break
        case .answered(.absent): end(.gone)
        case .answered(.fetchYourself(.tooLarge)), .answered(.fetchYourself(.notUnderstood)):
            end(.refused)
        case .answered: end(.failed)
        case .lost, .refused: end(.failed)
        case .data(let bytes):
            arriving?.body.append(bytes)
            connection.take(bytes.readableBytes, of: ask)
        case .ended(let size): finish(size)
        }
    }

    private func begin(_ entry: HeldEntry, of ask: PeerAsk) {
        let now = SystemClock.now()
        let facts = entry.facts.facts(at: now, asked: ask.madeAt)
        guard let size = entry.facts.size, size <= hall.settings.objectBytesMax,
            CacheKey.isCanonical(
                entry.key.span, at: 0..<entry.key.count, bytesMax: hall.settings.urlBytesMax)
        else { return end(.refused) }
        let head: RenderedHead
        do throws(StoredHeadFault) {
            head = try RenderedHead(entry)
        } catch {
            connection.hub.refused(peer, error)
            return end(.refused)
        }
        let name = EntryName(ofKey: entry.key).variant(facts.varies, of: facts.negotiation)
        guard name.digest == offer.digest else { return end(.refused) }
        guard !isHere(asNewAs: facts, entry.key) else { return end(.kept) }
        let reservation = FillReservation(hall.store)
        let bytes =
            BodyLayout.capacity(size)
            + Resident.overhead(
                keyBytes: entry.key.count, headBytes: head.bytes.count,
                tagBytes: Resident.bytes(of: entry.tags), bodyBytes: size)
        guard reservation.grow(by: bytes) else { return end(.failed) }
        arriving = Arriving(
            entry: entry, facts: facts, name: name, head: head, reservation: reservation,
            reservedBytes: bytes)
    }

    /// True if nothing is to be gained by it.
    private func isHere(asNewAs facts: EntryFacts, _ key: [UInt8]) -> Bool {
        if let before { return before >= facts.date }
        guard hall.node.disk == nil else { return false }
        let held = hall.store.find(
            key.span, 0..<key.count, hash: hall.store.hash(of: key), wanted: facts.negotiation)
        return held.map { $0.facts.date >= facts.date } ?? false
    }

    private func finish(_ size: UInt64) {
        guard let lease, var arriving, size == arriving.facts.size, arriving.body.endOffset == size,
            let chunks = arriving.body.finish()
        else { return end(.failed) }
        let (store, entry) = (hall.store, arriving.entry)
        arriving.reservation.handOver(arriving.reservedBytes)
        let resident = Resident(
            key: entry.key, hash: store.hash(of: entry.key), name: arriving.name,
            facts: arriving.facts, head: arriving.head.bytes, layout: arriving.head.layout,
            tags: entry.tags, stamp: lease.stamp,
            body: Body(
                chunks: chunks, size: size, capacityBytes: BodyLayout.capacity(size),
                account: store.account),
            account: store.account)
        guard let done = done.take() else { return }
        end(.failed)
        hall.node.takeOver(resident, offer) { done($0 ? .kept : .failed) }
    }

    private func end(_ ending: OfferIntake.Ending) {
        ask?.cancel()
        watch?.cancel()
        arriving = nil
        done.take()?(ending)
    }
}
