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
    let driver: LookupDriver
    let run: FillRun
    unowned let hall: Hall
    let hub: PeerHub
    /// What the answer to the URL is called, variants apart.
    let name: EntryName
    var query: SiteRequest { run.query }
    private var asks: [PeerAsk] = []
    /// What a peer has said last that may be taken, which is taken at once or never.
    private var said: (node: NodeID, what: Said)?
    /// What gives the answer.
    var taken: Taken?
    /// Where it stands here, if that is not the key, and the index that says so.
    var variant: (place: EntryPlace, index: VariantIndex)?
    /// How often it was wanted here of late.
    let frequency: UInt8
    /// Interim heads that peers have passed on.
    private var interim = (count: 0, bytes: 0)

    private enum Said {
        case held(Taken)
        /// The origin's answer to it was an error of this status.
        case refused(UInt16)
    }

    /// An answer that is being given by a peer.
    struct Taken {
        let ask: PeerAsk
        var answer: GivenAnswer
        let head: RenderedHead
        /// What is stored here is what the peer holds; no body follows.
        let isConfirmation: Bool
        let receivedAt: Instant
        var receivedBytes: UInt64 = 0
        /// Handed on, and not yet said to be out of the way.
        var owedBytes = 0

        var entry: HeldEntry { answer.entry }
        /// All of the body has come with the head, and nothing behind it.
        var isWhole: Bool { answer.end?.trailers.isEmpty == true && entry.facts.size != nil }
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
    static let popularFrom: UInt8 = 2

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
        for ask in asks { ask.cancel() }
        taken?.ask.cancel()
    }

    /// What the peer still says is not wanted.
    func cancel(_ node: NodeID) {
        forget(node)?.cancel()
    }

    /// Nothing more is heard of what a peer was asked.
    @discardableResult
    private func forget(_ node: NodeID) -> PeerAsk? {
        asks.firstIndex { $0.node == node }.map { asks.remove(at: $0) }
    }

    // MARK: What peers say

    func heard(_ event: PeerAsk.Event, of ask: PeerAsk) {
        switch event {
        case .answered(let answer): answered(answer, ask)
        case .held(let answer):
            let reply = hears(answer, of: ask, isConfirmation: false)
            driver.tell { $0.replied(ask.node, reply, SystemClock.now(), effects: &$1) }
        case .data(let bytes): if taken?.ask === ask { received(bytes) }
        case .ended(let end): if taken?.ask === ask { ended(end) }
        case .refused:
            forget(ask.node)
            driver.tell { $0.replied(ask.node, .fetchYourself, SystemClock.now(), effects: &$1) }
        case .lost:
            forget(ask.node)
            if taken?.ask === ask { return lose() }
            driver.tell { $0.lost(ask.node, SystemClock.now(), effects: &$1) }
        }
    }

    private func answered(_ answer: PeerAnswer, _ ask: PeerAsk) {
        let node = ask.node
        var reply = OwnerSearch.Reply(answer)
        switch answer {
        case .notModified(let entry):
            // It may confirm what it was not asked about.
            reply =
                run.stale == nil
                ? .fetchYourself
                : hears(GivenAnswer(entry: entry), of: ask, isConfirmation: true)
        case .originFailed(let failure) where failure.status >= 400 && ask.question.kind == .get:
            said = (node, .refused(failure.status))
            // Of a site the answer is this client's to have, and the owner has not kept it.
            reply = query.isImage ? .originRefused : .fetchYourself
        case .interim(let head):
            relay(interim: head, of: ask)
        case .fetchYourself(.otherPolicy): hub.differs(from: node, on: query.plan.name)
        default: break
        }
        if answer.isFinal { forget(node) }
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

    /// Hears what a peer would give; if its head is none, that peer has nothing.
    private func hears(
        _ answer: GivenAnswer, of ask: PeerAsk, isConfirmation: Bool
    ) -> OwnerSearch.Reply {
        do throws(StoredHeadFault) {
            let head = try RenderedHead(answer.entry)
            said = (
                ask.node,
                .held(
                    Taken(
                        ask: ask, answer: answer, head: head, isConfirmation: isConfirmation,
                        receivedAt: SystemClock.now()))
            )
            return .held
        } catch {
            hub.refused(ask.node, error)
            cancel(ask.node)
            return .fetchYourself
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
        asks.append(ask)
        hall.counters.add(question == .get ? .peerGetsSent : .peerProbesSent)
        connection.ask(ask)
    }

    // MARK: The answer

    /// What this peer has said is the answer.
    func deliver(from node: NodeID) {
        guard let said = said.take(), said.node == node else { return driver.unfit() }
        switch said.what {
        case .refused(let status): refuse(status)
        case .held(let taken): take(taken)
        }
    }

    private func take(_ taken: Taken) {
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
        if taken.isWhole, isKept, limits.isEmpty, store(taken, nominated) { return }
        run.answered(
            FillAnswer(
                facts: facts, head: head, sizeBytes: length, isKept: isKept, tags: entry.tags,
                isFromPeer: true),
            isShared: !limits.contains(.isUnshared), isStored: isStored,
            nominated: nominated, isHitForMiss: limits.contains(.isHitForMiss),
            isOwn: limits.contains(.isOwn),
            stoodIn: limits.contains(.standsIn) ? .init(status: entry.terms.failedStatus) : nil)
        self.taken?.answer.body = []
        for piece in taken.answer.body { received(piece) }
        if let end = taken.answer.end { ended(end) }
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
}
