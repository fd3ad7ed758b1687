import Cluster
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Store
import Tiers
import Wire

/// One answer that was offered, and is fetched from who offers it.
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
    /// That was an index of variants.
    private var hidesIndex = false
    private var arriving: Arriving?
    private var lastEvent = SystemClock.now()
    private var watch: Scheduled<Void>?

    /// How long the giver may say nothing.
    private static let patience = Interval.seconds(10)

    /// An answer of which the head has come.
    private struct Arriving {
        let entry: HeldEntry
        let facts: EntryFacts
        /// Its name and its place here.
        let name: EntryName
        let place: OfferedPlace
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
        let facts = disk.readers.runIfActive(eventLoop: hall.loop) {
            view.read(offered: digest)?.facts(clock)
        }
        facts.assumeIsolated().whenComplete { [self] result in
            if case .success(let facts?) = result {
                (before, hidesIndex) = (facts.date, facts.flags.contains(.isVariantIndex))
            }
            put()
        }
    }

    private func put() {
        lease = hall.node.marks.lease()
        let ask = PeerAsk(
            peer,
            PeerQuestion(
                .probe, name: EntryName(offered: offer.digest), key: []),
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
        case .held(let answer):
            begin(answer.entry, of: ask)
            for bytes in answer.body { heard(.data(bytes), of: ask) }
            if let end = answer.end { heard(.ended(end), of: ask) }
        case .answered(.fetching), .answered(.interim): break
        case .answered(.absent): end(.gone)
        case .answered(.fetchYourself(.tooLarge)), .answered(.fetchYourself(.notUnderstood)):
            end(.refused)
        case .answered: end(.failed)
        case .lost, .refused: end(.failed)
        case .data(let bytes):
            arriving?.body.append(bytes)
            connection.take(bytes.readableBytes, of: ask)
        case .ended(let end): finish(end.size)
        }
    }

    private func begin(_ entry: HeldEntry, of ask: PeerAsk) {
        let now = SystemClock.now()
        let facts = entry.facts.facts(at: now, asked: ask.madeAt)
        guard let plan = hall.settings.sharedPlan(ofKey: entry.key), plan.digest == entry.policy
        else {
            if let site = hall.settings.sharedPlan(ofKey: entry.key)?.name {
                connection.hub.differs(from: peer, on: site)
            }
            return end(.refused)
        }
        guard let size = entry.facts.size, size <= plan.objectBytesMax,
            isKey(entry.key, of: plan)
        else { return end(.refused) }
        // Of a stale page the owner may have heard since that it is there no more.
        guard plan.images != nil || facts.freshUntil > now else { return end(.refused) }
        let head: RenderedHead
        do throws(StoredHeadFault) {
            head = try RenderedHead(entry)
        } catch {
            connection.hub.refused(peer, error)
            return end(.refused)
        }
        let name = EntryName(ofKey: entry.key)
        guard name.digest == offer.digest else { return end(.refused) }
        // What the disk has under the key may be an index that memory does not have.
        guard !hidesIndex,
            let place = hall.node.place(ofKey: entry.key, share: hall.share(of: plan))
        else { return end(.failed) }
        guard !isHere(asNewAs: facts, place.place, isMoved: place.place.key != entry.key) else {
            return end(.kept)
        }
        let reservation = FillReservation(hall.store)
        let bytes =
            BodyLayout.capacity(size)
            + Resident.overhead(
                keyBytes: place.place.key.count, headBytes: head.bytes.count,
                tagBytes: Resident.bytes(of: entry.tags), bodyBytes: size)
        let ownName = place.variant == nil ? name : EntryName(ofKey: place.place.key)
        reservation.judgedHash = hall.node.judgedHash(of: ownName, at: place.place.hash)
        guard reservation.grow(by: bytes) else { return end(.failed) }
        arriving = Arriving(
            entry: entry, facts: facts, name: ownName, place: place,
            head: head, reservation: reservation, reservedBytes: bytes)
    }

    /// What may be a key of what `plan` answers.
    private func isKey(_ key: [UInt8], of plan: SitePlan) -> Bool {
        let base = VariantKey.Parts(key)?.base ?? key
        if plan.images != nil {
            return CacheKey.isKey(base, bytesMax: hall.settings.urlBytesMax)
        }
        return base.count <= hall.settings.urlBytesMax
            && base.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    /// True if nothing is to be gained by it; `isMoved` if it has another name here than there.
    ///
    /// Of what is moved the disk does not say how new it is: it is here unless it was just fetched.
    private func isHere(asNewAs facts: EntryFacts, _ place: EntryPlace, isMoved: Bool) -> Bool {
        if let before, !isMoved { return before >= facts.date }
        if let disk = hall.node.disk {
            return isMoved && !offer.isNew
                && disk.view?.holds(EntryName(ofKey: place.key).digest) == true
        }
        return hall.store.find(place).map { $0.facts.date >= facts.date } ?? false
    }

    private func finish(_ size: UInt64) {
        guard let lease, var arriving, size == arriving.facts.size, arriving.body.endOffset == size,
            let chunks = arriving.body.finish()
        else { return end(.failed) }
        let (store, entry, place) = (hall.store, arriving.entry, arriving.place)
        arriving.reservation.handOver(arriving.reservedBytes)
        let resident = Resident(
            key: place.place.key, hash: place.place.hash, name: arriving.name,
            facts: arriving.facts, head: arriving.head.bytes, layout: arriving.head.layout,
            tags: entry.tags, stamp: lease.stamp,
            body: Body(
                chunks: chunks, size: size, capacityBytes: BodyLayout.capacity(size),
                account: store.account),
            account: store.account, share: place.base.share)
        guard let done = done.take() else { return }
        end(.failed)
        let node = hall.node
        node.takeOver(resident, offer) { isKept in
            if isKept { node.keepIndex(of: place, stamp: resident.stamp) }
            done(isKept ? .kept : .failed)
        }
    }

    private func end(_ ending: OfferIntake.Ending) {
        ask?.cancel()
        watch?.cancel()
        arriving = nil
        done.take()?(ending)
    }
}
