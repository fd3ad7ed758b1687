import Ground
import HTTPRules
import Logging
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// The origin's side of a `FillRun` for a site: asks, decides by the rules of a shared cache what
/// becomes of the answer, and hands its bytes on.
///
/// Confined to its loop.
final class SiteFetch: FillSource, OriginFetchDelegate {
    let run: FillRun
    let query: SiteRequest
    unowned let hall: Hall
    /// The door whose request caused the fetch, which alone is told of interim answers and gives
    /// the request's body.
    private(set) weak var door: Door?
    var fetch: OriginFetch?
    /// What is held back of a request with a body, before it takes a connection.
    var beginning: Beginning?
    private(set) var answer: Answer?
    /// The stored answer that is selected by the request, which the origin is asked about.
    private(set) var stale: Resident?
    /// The stored answers that the origin is asked about: that one, or those that other requests
    /// select.
    private(set) var offered: [Resident] = []
    /// The answer goes to its reader unstored.
    private var isPassing = false
    private var isSettled = false
    private var droppedBytes = 0
    private var isEnded = false

    /// What is needed of the head until the body's end.
    struct Answer {
        let head: AnswerHead
        let examination: Examination
        let nominated: FieldNames
        let place: EntryPlace?
        let index: VariantIndex?
        let tags: [[UInt8]]
        let receivedWall: WallTime
    }

    /// Bytes of an answer that nobody wants which are still read, because a new connection would
    /// cost more.
    private static let droppedBytesMax = 64 << 10

    init(_ run: FillRun, _ query: SiteRequest, for door: Door?, on hall: Hall) {
        self.run = run
        self.query = query
        self.door = door
        self.hall = hall
    }

    func start() {
        stale = query.mode == .whole ? run.stale : nil
        if let stale {
            offered = [stale]
        } else if query.mode == .whole {
            offered = hall.node.variants(of: query)
        }
        var validation = Validation()
        for entry in offered { validation.add(entry.head, facts: entry.facts) }
        let takesTrailers = query.mode != .whole && query.lines.takesTrailers
        let lines = query.lines.bytes
        let outcome = RequestForwarder.forward(
            query.asked, query.lines.lines, in: lines.span,
            rules: query.plan.requestRules,
            purpose: query.mode == .whole ? .store(validation) : .pass,
            takesTrailers: takesTrailers, passage: query.passage(through: hall.node),
            causeLines: run.cause.lines(span: .newSpan()))
        switch outcome {
        case .send(let head): ask(head)
        case .loop, .answerHere: refuse(.loop)
        case .outside: refuse(.outsideSite)
        }
    }

    /// The origin is not asked.
    private func refuse(_ problem: Problem) {
        run.failed(problem)
        settle()
        end()
    }

    private func ask(_ head: [UInt8]) {
        hall.counters.add(.originFetchesStarted)
        let name = query.asked.method
        let isSafe = MethodRules(name.span, at: 0..<name.count).contains(.isSafe)
        var request = OriginFetchRequest(
            origin: query.plan.origin, method: query.method, head: head, body: query.body,
            isSafeToRetry: isSafe)
        // What passes is bounded by its pieces, and by the time that nothing moves.
        request.bodyBytesMax = .max
        request.totalLimit = Self.totalLimit
        request.holders = run.client.map { [$0] } ?? []
        request.upgrade = query.asked.upgrade
        if !request.upgrade.isEmpty { request.holders.append(.upgrades) }
        guard !query.body.isEmpty else { return begin(request) }
        request.holders.append(.uploads)
        beginning = Beginning(request: request)
    }

    private static let totalLimit = Interval.seconds(86_400)

    // MARK: What the run asks for

    var isContended: Bool { run.phase == .passing && fetch?.isContended == true }

    func pace() {
        if run.isPaused { fetch?.pause() } else { fetch?.resume() }
    }

    /// Nobody wants the rest of the answer.
    func cancel() {
        beginning = nil
        noteSize()
        fetch?.cancel()
        if !isEnded { hall.counters.add(.originFetchesAbandoned) }
        // Whoever has joined since it was given up begins anew.
        run.lost()
        settle()
        end()
    }

    // MARK: What the origin says

    func originRedirected(
        _ head: AnswerHead, to url: [UInt8], requestedAt: Instant, answeredAt: Instant
    ) {
        preconditionFailure("a site's redirects are its clients' to follow")
    }

    func originInterim(_ head: AnswerHead) {
        door?.relayInterim(head, by: query.plan, for: run)
    }

    func originAnswered(
        _ head: AnswerHead, bodyLength: UInt64?, requestedAt: Instant, answeredAt: Instant
    ) {
        let receipt = Freshness.Receipt(
            requestedAt: requestedAt, receivedAt: answeredAt, receivedWall: SystemClock.wallTime())
        hall.counters.add(.originAnswers(status: head.status))
        if head.isEventStream { fetch?.waiveRate() }
        if head.status == 101 { door?.switched(run, with: self) }
        invalidate(by: head)
        let head = query.plan.told(head, to: query)
        guard query.mode != .verbatim else { return relay(head, bodyLength, receipt) }
        if query.mode == .part, head.status == 206 || StatusRules.isOfOneRequest(head.status) {
            learn(from: head, receipt)
            return relay(head, bodyLength, receipt)
        }
        if head.status == 304 {
            // Nothing was asked about: whoever asked makes of it what he can.
            guard !offered.isEmpty else { return relay(head, bodyLength, receipt) }
            return freshen(with: head, receipt)
        }
        if StatusRules.isFailure(head.status), standIn(status: head.status) {
            return drop(bodyLength)
        }
        accept(head, bodyLength, receipt)
    }

    func originSent(_ body: ByteBuffer) {
        hall.counters.add(.originReceivedBytes, body.readableBytes)
        query.counters.add(.originBytes, body.readableBytes)
        guard isSettled else { return run.received(body) }
        droppedBytes += body.readableBytes
        if droppedBytes > Self.droppedBytesMax { cancel() }
    }

    func originTrailers(_ trailers: Trailers) {
        // Only who asked is given them, and only if it reads them (RFC 9110 §6.5.1).
        guard query.lines.takesTrailers else { return }
        run.trailed(
            by: query.plan.answerRules.trailers(trailers.lines, in: trailers.bytes.span))
    }

    func originEnded(delimitedByClose: Bool) {
        hall.counters.add(.originFetchesOK)
        defer { end() }
        guard !isSettled else { return }
        guard let answer else {
            if isPassing { _ = run.ended(name: nil) { _ in nil } }
            return settle()
        }
        let plan = query.plan
        let key = answer.place?.key ?? query.key
        let name = hall.node.disk == nil ? nil : EntryName(ofKey: key)
        let resident = run.ended(
            name: name, tags: answer.tags, place: answer.place
        ) { size in
            let stored = plan.storedHead(
                answer.head, size: size, answer.examination, received: answer.receivedWall)
            return (
                plan.facts(answer.examination, size: size, stored, of: answer.head),
                RenderedHead(stored)
            )
        }
        if let resident { keep(resident, answer.index, answer.nominated, answer.place) }
        noteSize()
        settle()
    }

    /// The tags of the answer; says so if there are more than are kept, because a purge by those
    /// will not find it.
    private func tags(of head: AnswerHead) -> [[UInt8]] {
        let tags = query.plan.tags(
            of: head, key: query.key, hall.originals(by: query.plan))
        if tags.cutCount > 0 { hall.noteCut(tags.cutCount, of: query.key, for: run.cause) }
        return tags.tags
    }

    func originFailed(_ failure: OriginFailure) {
        hall.count(failure)
        hall.node.logger.log(
            level: failure.isReportedOnce ? .debug : .info, "origin fetch failed",
            metadata: run.cause.metadata([
                "url": "\(String(decoding: query.key, as: UTF8.self))", "why": "\(failure)",
            ]))
        if query.isBackground { hall.pauseBackground(query, now: SystemClock.now()) }
        if !standIn(status: nil) {
            run.failed(.origin(failure, isValidation: stale?.facts.flags.contains(.mustRevalidate)))
        }
        settle()
        end()
    }

    // MARK: Decisions

    func keep(
        _ resident: Resident, _ index: VariantIndex?, _ names: FieldNames, _ place: EntryPlace?
    ) {
        hall.node.keep(resident)
        guard let index, let place else { return }
        hall.node.keep(index, names, at: place, for: query, of: run, now: SystemClock.now())
    }

    /// Gives the stale answer instead of an error, if it may be given (RFC 5861 §4).
    private func standIn(status: UInt16?) -> Bool {
        guard answer == nil, let stale,
            query.standsIn(stale.facts, now: SystemClock.now())
        else { return false }
        if query.isBackground { hall.pauseBackground(query, now: SystemClock.now()) }
        run.confirmed(
            stale, isShared: true, isStored: true, nominated: stale.nominated,
            stoodIn: .init(status: status))
        settle()
        return true
    }

    /// The answer as it came, for the one who asked.
    private func relay(_ head: AnswerHead, _ length: UInt64?, _ receipt: Freshness.Receipt) {
        if query.isHead { compare(head, receipt) }
        let passedHead = query.plan.passedHead(
            head, takesTrailers: query.lines.takesTrailers, received: receipt.receivedWall)
        guard run.openWindow() else { return overloaded(length) }
        // Age is the origin's; nothing is added to it.
        let facts = EntryFacts(
            size: length ?? 0, bornAt: receipt.receivedAt, freshUntil: receipt.receivedAt,
            flags: .isDated, lastModified: nil, date: receipt.receivedWall, entityTag: .empty)
        var passed = FillAnswer(
            facts: facts, head: RenderedHead(passedHead),
            sizeBytes: query.isHead ? declaredLength(head) : length, isKept: false)
        passed.isVerbatim = true
        isPassing = true
        run.answered(passed, isShared: false, varies: [])
    }

    /// What Content-Length says, also where no body follows (RFC 9110 §8.6).
    private func declaredLength(_ head: AnswerHead) -> UInt64? {
        guard let value = head.first(.contentLength) else { return nil }
        return UInt64(String(decoding: head.bytes[value.range], as: UTF8.self))
    }

    private func accept(_ head: AnswerHead, _ length: UInt64?, _ receipt: Freshness.Receipt) {
        let plan = query.plan
        let examination = plan.examine(head, query, receipt)
        let vary = VaryNames(head)
        var acceptance = Acceptance(
            examination, vary, status: head.status,
            before: stale.map { receipt.receivedAt < $0.facts.freshUntil ? .fresh : .stale }
                ?? .nothing)
        var place: EntryPlace?
        var index: VariantIndex?
        if acceptance.isStorable {
            switch hall.node.place(query, selectedBy: vary.names, claims: true) {
            case .key: break
            case .variant(let found, let names): (place, index) = (found, names)
            case .none: acceptance.isPlaced = false
            }
        }
        if let stale, acceptance.endsStored { hall.node.forget(stale) }
        if isUnfit(acceptance, head, length) { return giveUpWhole(length) }
        let tags = tags(of: head)
        answer = Answer(
            head: head, examination: examination, nominated: vary.names, place: place,
            index: index, tags: tags, receivedWall: receipt.receivedWall)
        let stored = plan.storedHead(
            head, size: length, examination, received: receipt.receivedWall)
        let rendered = RenderedHead(stored)
        let isKept = acceptance.isStorable && !run.isOvertaken && hasRoom(length, rendered, place)
        if isKept, let index, let place {
            // Before the body: who asks for another variant meanwhile must make it one of the same.
            hall.node.keep(
                index, vary.names, at: place, for: query, of: run, now: receipt.receivedAt)
        }
        if acceptance.isHitForMiss { hall.node.notePasses(query, now: SystemClock.now()) }
        guard isKept || run.openWindow() else { return overloaded(length) }
        var given = FillAnswer(
            facts: plan.facts(examination, size: length ?? 0, stored, of: head), head: rendered,
            sizeBytes: length, isKept: isKept, tags: tags)
        if !isKept {
            given.head = RenderedHead(
                plan.unstoredHead(
                    head, size: length, without: examination.unstoredFields,
                    received: receipt.receivedWall))
        }
        given.examination = examination
        run.answered(
            given, isShared: acceptance.isShared, varies: [], nominated: vary.names,
            own: own(given, head, examination, receipt))
    }

    /// The answer with those fields that are for the client who asked and are not stored (RFC 9111
    /// §5.2.2.4, §5.2.2.7); nil if there are none.
    private func own(
        _ answer: FillAnswer, _ head: AnswerHead, _ examination: Examination,
        _ receipt: Freshness.Receipt
    ) -> FillAnswer? {
        guard !examination.unstoredFields.isEmpty else { return nil }
        var own = answer
        own.head = RenderedHead(
            query.plan.unstoredHead(
                head, size: answer.sizeBytes, without: FieldNames(),
                received: receipt.receivedWall))
        return own
    }

    private func hasRoom(_ length: UInt64?, _ head: RenderedHead, _ place: EntryPlace?) -> Bool {
        if let length, length > query.plan.objectBytesMax { return false }
        let overhead = Resident.overhead(
            keyBytes: place?.key.count ?? query.key.count, headBytes: head.bytes.count,
            bodyBytes: length ?? 0)
        guard let length else {
            return run.reserve(overhead + FillAnswer.reservedBytes(growingTo: 0))
        }
        return run.reserve(overhead + BodyLayout.capacity(length))
    }

    /// What a request that may have changed something makes unfit to be used (RFC 9111 §4.4).
    private func invalidate(by head: AnswerHead) {
        for key in query.plan.invalidated(by: head, query) {
            hall.node.invalidate(key)
        }
    }

    private func overloaded(_ length: UInt64?) {
        run.failed(.overloaded(.memory))
        drop(length)
    }

    /// What remains of the answer is read if it is little.
    func drop(_ length: UInt64?) {
        settle()
        if let length, length <= Self.droppedBytesMax { return }
        cancel()
    }

    /// Nothing more comes from the origin; the connection is free or gone.
    private func end() {
        guard !isEnded else { return }
        isEnded = true
        hall.node.fills.originEnded(run)
        hall.ended(self)
    }

    /// From now on nobody joins this fetch.
    func settle() {
        guard !isSettled else { return }
        isSettled = true
        hall.node.fills.remove(run)
    }
}
