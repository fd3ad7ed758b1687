import Cluster
import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// The peers' side of a `FillRun`: puts the questions that the lookup wants put, and hands on what
/// is taken.
///
/// Confined to its loop.
final class PeerSource: AnswerSource, PeerAskDelegate {
    private let driver: LookupDriver
    private let run: FillRun
    private unowned let hall: Hall
    private let hub: PeerHub
    /// What the answer to the URL is called, variants apart.
    private let name: EntryName
    private var query: SiteRequest { run.query }
    private var asks: [NodeID: PeerAsk] = [:]
    /// What a peer has said last that may be taken.
    private var said: [NodeID: Said] = [:]
    /// What gives the answer.
    private var taken: Taken?
    /// Where it stands here, if that is not the key, and the index that says so.
    private var variant: (place: EntryPlace, index: VariantIndex)?
    /// How often it was wanted here of late.
    private let frequency: UInt8
    /// Interim heads that peers have passed on.
    private var interim = (count: 0, bytes: 0)

    private enum Said {
        case held(Taken)
        /// The origin's answer to it was an error of this status.
        case refused(UInt16)
    }

    /// An answer that is being given by a peer.
    private struct Taken {
        let ask: PeerAsk
        let entry: HeldEntry
        let head: RenderedHead
        /// What is stored here is what the peer holds; no body follows.
        let isConfirmation: Bool
        let receivedAt: Instant
        var receivedBytes: UInt64 = 0
        /// Handed on, and not yet said to be out of the way.
        var owedBytes = 0

        var facts: EntryFacts { entry.facts.facts(at: receivedAt, asked: ask.madeAt) }
    }

    init(_ driver: LookupDriver, name: EntryName, hub: PeerHub) {
        self.driver = driver
        run = driver.run
        hall = driver.hall
        self.name = name
        self.hub = hub
        frequency = hall.node.noteUse(run.hash)
    }

    /// What others keep stays in memory, too, if it is wanted so often, also where others have to
    /// go for it.
    private static let popularFrom: UInt8 = 2

    /// What the readers were told of the answer that is taken.
    var begun: ResumedSource.Begun? {
        taken.map {
            ResumedSource.Begun(facts: $0.facts, head: $0.head, sizeBytes: $0.entry.facts.size)
        }
    }

    /// Of the body of that answer.
    var receivedBytes: UInt64 { taken?.receivedBytes ?? 0 }

    // MARK: What the run asks for

    func pace() {
        guard let taken, !run.isPaused, taken.owedBytes > 0 else { return }
        self.taken?.owedBytes = 0
        taken.ask.connection.take(taken.owedBytes, of: taken.ask)
    }

    func cancel() {
        for ask in asks.values { ask.cancel() }
        taken?.ask.cancel()
    }

    /// What the peer still says is not wanted.
    func cancel(_ node: NodeID) {
        asks.removeValue(forKey: node)?.cancel()
    }

    // MARK: What peers say

    func heard(_ event: PeerAsk.Event, of ask: PeerAsk) {
        switch event {
        case .answered(let answer): answered(answer, ask)
        case .data(let bytes): if taken?.ask === ask { received(bytes) }
        case .ended(let end): if taken?.ask === ask { ended(end) }
        case .refused:
            asks[ask.node] = nil
            driver.tell { $0.replied(ask.node, .fetchYourself, SystemClock.now(), effects: &$1) }
        case .lost:
            asks[ask.node] = nil
            if taken?.ask === ask { return lose() }
            driver.tell { $0.lost(ask.node, SystemClock.now(), effects: &$1) }
        }
    }

    private func answered(_ answer: PeerAnswer, _ ask: PeerAsk) {
        let node = ask.node
        var reply = OwnerSearch.Reply(answer)
        switch answer {
        case .held(let entry):
            if !hears(entry, of: ask, isConfirmation: false) { reply = .fetchYourself }
        case .notModified(let entry):
            // It may confirm what it was not asked about.
            let isMeant = run.stale != nil && hears(entry, of: ask, isConfirmation: true)
            if !isMeant { reply = .fetchYourself }
        case .originFailed(let failure) where failure.status >= 400 && ask.question.kind == .get:
            said[node] = .refused(failure.status)
            // Of a site the answer is this client's to have, and the owner has not kept it.
            reply = query.isImage ? .originRefused : .fetchYourself
        case .interim(let head):
            relay(interim: head, of: ask)
        case .fetchYourself(.otherPolicy): hub.differs(from: node, on: query.plan.name)
        default: break
        }
        if answer.isFinal { asks[node] = nil }
        driver.tell { $0.replied(node, reply, SystemClock.now(), effects: &$1) }
    }

    /// Passes on what may be an interim head, within the limits of an origin's.
    private func relay(interim head: [UInt8], of ask: PeerAsk) {
        let limits = hall.node.origins.settings
        interim = (interim.count + 1, interim.bytes + head.count)
        // Of many only those of the one who will give the answer.
        guard ask.question.kind == .get, interim.count <= limits.interimAnswersMax,
            interim.bytes <= limits.headBytesMax, InterimHead.isWhole(head)
        else { return }
        driver.relay(interim: head)
    }

    /// Hears what a peer would give; false if its head is none: then that peer has nothing.
    private func hears(_ entry: HeldEntry, of ask: PeerAsk, isConfirmation: Bool) -> Bool {
        do throws(StoredHeadFault) {
            said[ask.node] = .held(
                Taken(
                    ask: ask, entry: entry, head: try RenderedHead(entry),
                    isConfirmation: isConfirmation, receivedAt: SystemClock.now()))
            return true
        } catch {
            hub.refused(ask.node, error)
            cancel(ask.node)
            return false
        }
    }

    func put(_ question: OwnerSearch.Question, to node: NodeID) {
        guard let connection = hub.connection(to: node) else {
            // It has just gone; the search hears of it once this step is over.
            return hall.loop.assumeIsolated().execute { [weak driver] in
                driver?.tell { $0.lost(node, SystemClock.now(), effects: &$1) }
            }
        }
        let entityTag = run.stale.map { RenderedHead($0).text($0.facts.entityTag) } ?? []
        var told = PeerQuestion(
            question == .get ? .get : .probe, name: name, key: run.key,
            negotiation: query.negotiation,
            entityTag: entityTag.count > PeerProtocol.entityTagBytesMax ? [] : entityTag,
            request: driver.relay)
        told.cause = PeerQuestion.Cause(run.cause, span: .newSpan())
        let ask = PeerAsk(node, told, on: connection, for: self, of: hall)
        asks[node] = ask
        hall.counters.add(question == .get ? .peerGetsSent : .peerProbesSent)
        connection.ask(ask)
    }

    // MARK: The answer

    /// What this peer has said is the answer.
    func deliver(from node: NodeID) {
        guard case .held(let taken) = said[node] else {
            if case .refused(let status) = said[node] { return refuse(status) }
            return driver.unfit()
        }
        self.taken = taken
        if taken.entry.terms.limits.contains(.standsIn), !standsIn(taken) { return }
        if taken.isConfirmation { return confirm(taken) }
        let (entry, head, length) = (taken.entry, taken.head, taken.entry.facts.size)
        let facts = taken.facts
        let limits = entry.terms.limits
        // The owner has nothing that might stand in, or it would have given that.
        if StatusRules.isFailure(entry.status), let stale = run.stale,
            driver.standIn(stale, status: entry.status)
        {
            if query.isBackground { hall.pauseBackground(query, now: SystemClock.now()) }
            taken.ask.cancel()
            return driver.finish()
        }
        if isUnfit(entry) {
            hall.learned(.unfit, by: run)
            taken.ask.cancel()
            return driver.unfit(asPart: true)
        }
        let nominated = query.nominated(byHead: head.bytes)
        let isStored = !limits.contains(.isUnkept) && findPlace(nominated)
        if !limits.contains(.standsIn) { endStored(by: entry.status, isStored: isStored) }
        let isKept = isStored && hasRoom(length, head)
        guard isKept || run.openWindow() else {
            taken.ask.cancel()
            return driver.fail(.overloaded(.memory))
        }
        hall.counters.add(.peerAnswersTaken)
        if limits.contains(.isHitForMiss), !query.isImage {
            hall.node.notePasses(query, now: SystemClock.now())
        }
        run.answered(
            FillAnswer(
                facts: facts, head: head, sizeBytes: length, isKept: isKept, tags: entry.tags,
                isFromPeer: true),
            isShared: !limits.contains(.isUnshared), isStored: isStored,
            nominated: nominated, isHitForMiss: limits.contains(.isHitForMiss),
            isOwn: limits.contains(.isOwn),
            stoodIn: limits.contains(.standsIn) ? .init(status: entry.terms.failedStatus) : nil)
    }

    /// What was stored here before is not to be used any more, as where the origin was asked.
    private func endStored(by status: UInt16, isStored: Bool) {
        guard let stale = run.stale, !StatusRules.isTransient(status) else { return }
        let before = driver.before(stale, now: SystemClock.now())
        if isStored || before != .fresh { hall.node.forget(stale) }
    }

    /// True of a whole that cannot be stored, where the one who caused the fetch wants a part.
    private func isUnfit(_ entry: HeldEntry) -> Bool {
        guard !query.isImage, entry.status == 200, run.stale == nil,
            entry.terms.limits.isDisjoint(with: [.standsIn, .isOwn]),
            entry.terms.limits.contains(.isUnkept)
                || entry.facts.size ?? 0 > query.plan.objectBytesMax
        else { return false }
        return query.wantsPart(rangesMax: run.settings.rangesMax)
    }

    /// The origin has failed the peer, which gives what it has stored; true if that is to be taken.
    private func standsIn(_ taken: Taken) -> Bool {
        if query.isBackground { hall.pauseBackground(query, now: SystemClock.now()) }
        if let stale = run.stale, driver.standIn(stale, status: taken.entry.terms.failedStatus) {
            taken.ask.cancel()
            driver.finish()
            return false
        }
        guard !taken.isConfirmation, query.standsIn(taken.facts, now: SystemClock.now()) else {
            taken.ask.cancel()
            driver.unfit()
            return false
        }
        return true
    }

    /// Finds where the answer is to stand; false if it cannot be stored.
    private func findPlace(_ nominated: FieldNames) -> Bool {
        switch hall.node.place(query, selectedBy: nominated, claims: true) {
        case .key: return true
        case .variant(let place, let index):
            variant = (place, index)
            return true
        case .none: return false
        }
    }

    /// The stored body stays, with the facts and the head that the peer has for it.
    private func confirm(_ taken: Taken) {
        var facts = taken.facts
        guard let stale = run.stale, taken.entry.facts.size == stale.facts.size else {
            return driver.unfit()
        }
        facts.size = stale.facts.size
        let nominated = query.nominated(byHead: taken.head.bytes)
        var place = EntryPlace(key: stale.key, hash: stale.hash)
        if nominated != query.nominated(of: stale) {
            // What other fields select than before stands elsewhere (RFC 9111 §4.1).
            guard findPlace(nominated) else { return driver.unfit() }
            place = variant?.place ?? EntryPlace(key: query.key, hash: query.hash)
        }
        let resident = run.makeFreshened(
            stale, EntryName(ofKey: place.key), tags: taken.entry.tags, place: place, facts,
            taken.head)
        hall.counters.add(.peerAnswersTaken)
        let isKept = !taken.entry.terms.limits.contains(.isUnkept) && resident != nil
        if !isKept || place.key != stale.key { hall.node.forget(stale) }
        if let resident, isKept { keep(resident) }
        run.confirmed(
            resident ?? stale, isShared: !taken.entry.terms.limits.contains(.isUnshared),
            isStored: isKept, nominated: nominated, isFromPeer: true)
        driver.finish()
    }

    /// The origin has answered the peer with an error of this status.
    private func refuse(_ status: UInt16) {
        if run.query.isBackground {
            hall.pauseBackground(run.query, now: SystemClock.now())
        }
        if let stale = run.stale {
            if StatusRules.isFailure(status), driver.standIn(stale, status: status) {
                return driver.finish()
            }
            let before = driver.before(stale, now: SystemClock.now())
            if run.query.plan.isEnded(before, byRefusal: status) { hall.node.forget(stale) }
        }
        // Which of them it depended on the peer does not say.
        driver.fail(.originStatus(status), nominated: VaryNames.imageFields)
    }

    private func hasRoom(_ length: UInt64?, _ head: RenderedHead) -> Bool {
        if let length, length > query.plan.objectBytesMax { return false }
        let overhead = Resident.overhead(
            keyBytes: run.key.count, headBytes: head.bytes.count, bodyBytes: length ?? 0)
        let body = length.map(BodyLayout.capacity) ?? FillAnswer.reservedBytes(growingTo: 0)
        return run.reserve(
            overhead + body,
            judgedAs: hall.node.judgedHash(of: name, at: variant?.place.hash ?? run.hash))
    }

    /// What this node does not own stays in memory while there is room that nothing needs, and
    /// beyond that if it is popular.
    private var isWorthKeeping: Bool {
        frequency >= Self.popularFrom || run.view.readersEver > 1 || hub.owns(name)
            || hall.store.hasSpareRoom
    }

    private func received(_ bytes: ByteBuffer) {
        guard let ask = taken?.ask else { return }
        taken?.receivedBytes += UInt64(bytes.readableBytes)
        hall.counters.add(.peerReceivedBytes, bytes.readableBytes)
        run.received(bytes)
        guard !run.isPaused else {
            taken?.owedBytes += bytes.readableBytes
            return
        }
        ask.connection.take(bytes.readableBytes, of: ask)
    }

    private func ended(_ end: StreamEnd) {
        guard let taken else { return }
        guard taken.receivedBytes == end.size else { return lose() }
        if FieldSection.isWhole(end.trailers) { run.trailed(by: end.trailers) }
        let facts = taken.facts
        let name = variant.map { EntryName(ofKey: $0.place.key) } ?? name
        // Without a length only the format can say that an image was whole.
        let isWhole = taken.entry.facts.size != nil || !query.isImage || run.ending == .whole
        let resident = run.ended(
            name: name, tags: taken.entry.tags, place: variant?.place
        ) { size in
            guard isWhole else { return nil }
            var head = taken.head
            // The peer had begun to give it before its length was known.
            if taken.entry.facts.size == nil { head = head.framed(size: size) }
            var facts = facts
            facts.size = size
            facts.entityTag = head.entityTag
            return (facts, head)
        }
        if let resident, isWorthKeeping { keep(resident) }
        driver.finish()
    }

    private func keep(_ resident: Resident) {
        hall.node.keep(resident)
        guard let variant else { return }
        hall.node.keep(
            variant.index, query.nominated(of: resident), at: variant.place, of: query.base,
            stamp: run.stamp, now: SystemClock.now())
    }

    /// The rest does not come from here.
    private func lose() {
        driver.lost(canBeResumed: begun?.identity.canBeResumed ?? false)
    }
}
