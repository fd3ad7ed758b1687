import Cluster
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// The peers' side of a `FillRun`: looks for the answer where the ring says, and hands it on; if it
/// is to come from the origin, the run goes on there.
///
/// Confined to its loop.
final class PeerFetch: FillSource, PeerAskDelegate {
    let run: FillRun
    private unowned let hall: Hall
    private let hub: PeerHub
    /// What the answer to the URL is called, variants apart.
    private let name: EntryName
    private weak var door: Door?
    private var search: OwnerSearch
    private var asks: [NodeID: PeerAsk] = [:]
    /// What gives the answer.
    private var taken: Taken?
    /// The status of the origin's answer to the peer, if that was an error.
    private var refusal: UInt16?
    private var isSettled = false
    /// How often it was wanted here of late.
    private let frequency: UInt8

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

        /// What the readers were told.
        var begun: ResumedFetch.Begun {
            ResumedFetch.Begun(
                facts: entry.facts.facts(at: receivedAt, asked: ask.madeAt), head: head,
                sizeBytes: entry.facts.size)
        }
    }

    init(
        _ run: FillRun, name: EntryName, on hall: Hall, hub: PeerHub, preference: [NodeID],
        for door: Door?
    ) {
        self.run = run
        self.name = name
        self.hall = hall
        self.hub = hub
        self.door = door
        frequency = hall.node.noteUse(run.hash)
        let view = hub.view
        search = OwnerSearch(
            me: view.own.member.id,
            preference: preference.map { .init($0, isReachable: view.isReachable($0)) },
            lookback: Self.lookback, leaving: Array(view.leaving.prefix(Self.lookback)))
    }

    /// Nodes that an owner asks before it asks the origin.
    private static let lookback = 3
    /// What others keep stays in memory, too, if it is wanted so often, also where others have to
    /// go for it.
    private static let popularFrom: UInt8 = 2

    func start() {
        let isOwners = run.isOwners
        step { search, effects in
            if isOwners {
                search.beganAsOwner(SystemClock.now(), effects: &effects)
            } else {
                search.began(SystemClock.now(), effects: &effects)
            }
        }
    }

    // MARK: What the run asks for

    func pace() {
        guard let taken, !run.isPaused, taken.owedBytes > 0 else { return }
        self.taken?.owedBytes = 0
        taken.ask.connection.take(taken.owedBytes, of: taken.ask)
    }

    func cancel() {
        step { search, effects in search.cancelled(effects: &effects) }
        taken?.ask.cancel()
        settle()
    }

    func becomeOwner() {
        step { $0.becameOwner(SystemClock.now(), effects: &$1) }
    }

    // MARK: What peers say

    func heard(_ event: PeerAsk.Event, of ask: PeerAsk) {
        guard !isSettled else { return }
        switch event {
        case .answered(let answer): answered(answer, ask)
        case .data(let bytes): if taken?.ask === ask { received(bytes) }
        case .ended(let size): if taken?.ask === ask { ended(size) }
        case .refused:
            asks[ask.node] = nil
            step { $0.replied(ask.node, .fetchYourself, SystemClock.now(), effects: &$1) }
        case .lost:
            asks[ask.node] = nil
            if taken?.ask === ask { return lose() }
            step { $0.lost(ask.node, SystemClock.now(), effects: &$1) }
        }
    }

    private func answered(_ answer: PeerAnswer, _ ask: PeerAsk) {
        switch answer {
        case .held(let entry): take(entry, of: ask, isConfirmation: false)
        case .notModified(let entry) where run.stale != nil:
            take(entry, of: ask, isConfirmation: true)
        case .originFailed(let failure) where failure.status >= 400 && ask.question.kind == .get:
            refusal = failure.status
        default: break
        }
        if answer.isFinal { asks[ask.node] = nil }
        let wasOver = search.hasEnded
        var reply: OwnerSearch.Reply = refusal == nil ? .init(answer) : .originRefused
        // It confirms what it was not asked about, or cannot be believed.
        if reply == .held, taken?.ask !== ask { reply = .fetchYourself }
        step { $0.replied(ask.node, reply, SystemClock.now(), effects: &$1) }
        // Of two that hold it the first is taken.
        if !wasOver, !search.hasEnded { taken = nil }
    }

    /// Takes what a peer gives, unless its head is none: then that peer has nothing.
    private func take(_ entry: HeldEntry, of ask: PeerAsk, isConfirmation: Bool) {
        do throws(StoredHeadFault) {
            taken = Taken(
                ask: ask, entry: entry, head: try RenderedHead(entry),
                isConfirmation: isConfirmation, receivedAt: SystemClock.now())
        } catch {
            hub.refused(ask.node, error)
            asks[ask.node] = nil
            ask.cancel()
        }
    }

    private func step(_ body: (inout OwnerSearch, inout [OwnerSearch.Effect]) -> Void) {
        guard !isSettled else { return }
        var effects: [OwnerSearch.Effect] = []
        body(&search, &effects)
        for effect in effects {
            // Hearing at once that a peer is gone may have ended it.
            guard !isSettled else { return }
            switch effect {
            case .ask(let node, let question): put(question, to: node)
            case .cancel(let node): asks.removeValue(forKey: node)?.cancel()
            case .take: deliver()
            case .fetch: return askOrigin()
            }
        }
        hall.watch(self, now: SystemClock.now())
    }

    var deadline: Instant? { isSettled ? nil : search.nextTick }

    func deadlineReached(_ now: Instant) {
        if search.isProbing { hall.counters.add(.peerProbesLate) }
        step { $0.ticked(now, effects: &$1) }
    }

    private func put(_ question: OwnerSearch.Question, to node: NodeID) {
        guard let connection = hub.connection(to: node) else {
            // It has just gone; the search hears of it once this step is over.
            return hall.loop.assumeIsolated().execute { [weak self] in
                self?.step { $0.lost(node, SystemClock.now(), effects: &$1) }
            }
        }
        let validators = run.stale.map(StoredValidators.init) ?? StoredValidators()
        var told = PeerQuestion(
            question == .get ? .get : .probe, name: name, key: run.key,
            deadlineMilliseconds: 0, negotiation: run.negotiation,
            entityTag: validators.entityTag.count > PeerProtocol.entityTagBytesMax
                ? [] : validators.entityTag)
        told.cause = PeerQuestion.Cause(run.cause, span: .newSpan())
        let ask = PeerAsk(node, told, on: connection, for: self, of: hall)
        asks[node] = ask
        hall.counters.add(question == .get ? .peerGetsSent : .peerProbesSent)
        connection.ask(ask)
    }

    // MARK: The answer

    private func deliver() {
        if let refusal {
            run.failed(.originStatus(refusal))
            return settle()
        }
        guard let taken else { return askOrigin() }
        if taken.isConfirmation { return confirm(taken) }
        let (entry, head, length) = (taken.entry, taken.head, taken.entry.facts.size)
        let facts = entry.facts.facts(
            at: taken.receivedAt, asked: taken.ask.madeAt)
        guard facts.answers(run.negotiation) else {
            taken.ask.cancel()
            return askOrigin()
        }
        let isKept = hasRoom(length, head)
        guard isKept || run.openWindow() else {
            taken.ask.cancel()
            run.failed(.overloaded(.memory))
            return settle()
        }
        hall.counters.add(.peerAnswersTaken)
        run.answered(
            FillAnswer(
                facts: facts, head: head, sizeBytes: length, isKept: isKept, tags: entry.tags,
                isFromPeer: true),
            isShared: true, varies: facts.varies)
    }

    /// The stored body stays, with the facts and the head that the peer has for it.
    private func confirm(_ taken: Taken) {
        var facts = taken.entry.facts.facts(
            at: taken.receivedAt, asked: taken.ask.madeAt)
        guard let stale = run.stale, taken.entry.facts.size == stale.facts.size else {
            return askOrigin()
        }
        facts.size = stale.facts.size
        let resident = run.makeFreshened(
            stale, name.variant(facts.varies, of: facts.negotiation), tags: taken.entry.tags,
            facts, taken.head)
        hall.counters.add(.peerAnswersTaken)
        if let resident {
            hall.node.keep(resident)
        } else {
            hall.node.store.remove(stale)
        }
        run.confirmed(
            resident ?? stale, isShared: true, isStored: resident != nil, isFromPeer: true)
        settle()
    }

    private func hasRoom(_ length: UInt64?, _ head: RenderedHead) -> Bool {
        if let length, length > run.settings.objectBytesMax { return false }
        let overhead = Resident.overhead(
            keyBytes: run.key.count, headBytes: head.bytes.count, bodyBytes: length ?? 0)
        return run.reserve(
            overhead + (length.map(BodyLayout.capacity) ?? FillAnswer.reservedBytes(growingTo: 0)))
    }

    /// What this node does not own stays in memory while there is room that nothing needs, and
    /// beyond that if it is popular.
    private var isWorthKeeping: Bool {
        frequency >= Self.popularFrom || run.readersEver > 1 || hub.owns(name)
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

    private func ended(_ size: UInt64) {
        guard let taken else { return }
        guard taken.receivedBytes == size else { return lose() }
        let facts = taken.entry.facts.facts(
            at: taken.receivedAt, asked: taken.ask.madeAt)
        let name = name.variant(facts.varies, of: facts.negotiation)
        // Without a length only the format can say that it was whole.
        let isWhole = taken.entry.facts.size != nil || run.ending == .whole
        let resident = run.ended(name: name, tags: taken.entry.tags) { size in
            guard isWhole else { return nil }
            var head = taken.head
            // The peer had begun to give it before its length was known.
            if taken.entry.facts.size == nil { head = head.framed(size: size) }
            var facts = facts
            facts.size = size
            facts.entityTag = head.entityTag
            return (facts, head)
        }
        if let resident, isWorthKeeping { hall.node.keep(resident) }
        settle()
    }

    /// The rest does not come from here.
    private func lose() {
        guard let taken, !run.isResumption, taken.begun.identity.canBeResumed else {
            // Whoever has nothing of it begins anew.
            run.lost()
            return settle()
        }
        end()
        hall.start(
            ResumedFetch(
                run, name: name, taken.begun, receivedBytes: taken.receivedBytes, on: hall))
    }

    private func askOrigin() {
        guard !isSettled else { return }
        end()
        hall.startOrigin(run, name: name, for: door)
    }

    /// From now on nobody joins this fetch.
    private func settle() {
        guard !isSettled else { return }
        end()
        hall.node.fills.remove(run)
    }

    private func end() {
        isSettled = true
        for ask in asks.values where ask !== taken?.ask { ask.cancel() }
        asks = [:]
        hall.ended(self)
    }
}

extension OwnerSearch.Reply {
    init(_ answer: PeerAnswer) {
        switch answer {
        case .held, .notModified: self = .held
        case .fetching: self = .fetching
        case .absent: self = .absent
        case .fetchYourself: self = .fetchYourself
        case .behind: self = .behind
        case .originFailed: self = .originFailed
        }
    }
}

extension RenderedHead {
    /// The head of an answer that a peer gives.
    ///
    /// - Throws: what is wrong with it; it is read as strictly as an origin's.
    init(_ entry: HeldEntry) throws(StoredHeadFault) {
        guard let places = entry.places else { throw .places }
        self.init(
            bytes: entry.head,
            layout: HeadLayout(
                partialStart: Int(places.partialStart), multipartStart: Int(places.multipartStart),
                notModifiedStart: Int(places.notModifiedStart), contentType: places.contentType),
            entityTag: entry.facts.entityTag)
        try stored.check(entry.facts.flags, size: entry.facts.size)
        guard status == entry.status else { throw .statusLine }
    }
}
