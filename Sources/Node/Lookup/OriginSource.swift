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

/// The origin's side of a `FillRun`: asks, decides by the rules of its site what becomes of the
/// answer, and hands its bytes on.
///
/// Confined to its loop.
final class OriginSource: AnswerSource, OriginFetchDelegate {
    let driver: LookupDriver
    let run: FillRun
    let query: SiteRequest
    unowned let hall: Hall
    /// The door whose request caused the fetch, which alone is told of interim answers and gives
    /// the request's body.
    var door: Door? { driver.door }
    var fetch: OriginFetch?
    /// What is held back of a request with a body, before it takes a connection.
    var beginning: Beginning?
    /// An answer that is held until its first bytes say what it is.
    var held: HeldAnswer?
    /// An answer that goes to the readers.
    var answer: Answer?
    /// Those by way of which it comes.
    private(set) var redirects: [Redirect] = []
    /// The stored answer that is selected by the request, which the origin is asked about.
    private(set) var stale: Resident?
    /// The stored answers that the origin is asked about: that one, or those that other requests
    /// select.
    private(set) var offered: [Resident] = []
    /// The answer goes to its reader unstored.
    private var isPassing = false
    /// Bytes that arrived after the run was over; the connection can be used again.
    private var droppedBytes = 0

    /// What is needed of the head until the body's end.
    struct Answer {
        let head: AnswerHead
        let examination: Examination
        let acceptance: Acceptance
        let nominated: FieldNames
        let place: EntryPlace?
        let index: VariantIndex?
        let tags: [[UInt8]]
        let receipt: Freshness.Receipt
    }

    /// Bytes of an answer that nobody wants which are still read, because a new connection would
    /// cost more.
    private static let droppedBytesMax = 64 << 10

    init(_ driver: LookupDriver, _ query: SiteRequest) {
        self.driver = driver
        self.query = query
        run = driver.run
        hall = driver.hall
    }

    func start() {
        stale = query.mode == .whole ? run.stale : nil
        if let stale {
            offered = [stale]
        } else if query.mode == .whole, !query.isImage {
            // Origins that make images of several types from one are known to forget Accept where
            // they are asked conditionally.
            offered = hall.node.variants(of: query)
        }
        switch query.question(about: offered, for: run, through: hall.node) {
        case .refused(let problem): driver.fail(problem)
        case .request(let request):
            hall.counters.add(.originFetchesStarted)
            guard !query.body.isEmpty else { return begin(request) }
            beginning = Beginning(request: request)
        }
    }

    // MARK: What the run asks for

    var isContended: Bool { run.phase == .passing && fetch?.isContended == true }

    func pace() {
        if run.isPaused { fetch?.pause() } else { fetch?.resume() }
    }

    func cancel() {
        beginning = nil
        held = nil
        noteSize()
        fetch?.cancel()
        hall.counters.add(.originFetchesAbandoned)
    }

    // MARK: What the origin says

    func originRedirected(
        _ head: AnswerHead, to url: [UInt8], requestedAt: Instant, answeredAt: Instant
    ) {
        hall.counters.add(.originRedirects)
        hall.counters.add(.originAnswers(status: head.status))
        redirects.append(
            Redirect(
                head: head,
                receipt: Freshness.Receipt(
                    requestedAt: requestedAt, receivedAt: answeredAt,
                    receivedWall: SystemClock.wallTime()),
                url: url))
    }

    func originReached(_ origin: OriginAuthority, at address: IPAddress?) {
        // What the operator has named has a share of its own.
        guard query.plan.origin == nil,
            !hall.node.fills.move(run, to: run.holders(askingAt: origin, address))
        else { return }
        drop(.overloaded(.share), nil)
    }

    func originInterim(_ head: AnswerHead) {
        guard AnswerForwarder.passesInterim(head.status) else { return }
        var bytes: [UInt8] = []
        AnswerForwarder.appendInterim(head, rules: query.plan.answerRules, to: &bytes)
        driver.relay(interim: bytes)
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
            if !offered.isEmpty { return freshen(with: head, receipt) }
            // Nothing was asked about: whoever asked makes of it what he can.
            if query.plan.images == nil { return relay(head, bodyLength, receipt) }
        }
        if StatusRules.isFailure(head.status), standIn(status: head.status) {
            return drop(bodyLength)
        }
        accept(head, bodyLength, receipt)
    }

    func originSent(_ body: ByteBuffer) {
        hall.counters.add(.originReceivedBytes, body.readableBytes)
        query.counters?.add(.originBytes, body.readableBytes)
        if held != nil { return hold(body) }
        guard driver.isSettled else { return run.received(body) }
        droppedBytes += body.readableBytes
        if droppedBytes > Self.droppedBytesMax { driver.cancel() }
    }

    func originTrailers(_ trailers: Trailers) {
        // Only who asked is given them, and only if it reads them (RFC 9110 §6.5.1).
        guard query.takesTrailers else { return }
        run.trailed(
            by: query.plan.answerRules.trailers(trailers.lines, in: trailers.bytes.span))
    }

    func originEnded(delimitedByClose: Bool) {
        hall.counters.add(.originFetchesOK)
        defer { driver.end() }
        if held != nil { releaseAtEnd() }
        guard !driver.isSettled else { return }
        guard let answer else {
            if isPassing { _ = run.ended(name: nil) { _ in nil } }
            return driver.settle()
        }
        let plan = query.plan
        // Of images the format says whether that was the end.
        let ending = delimitedByClose && plan.images != nil ? run.ending : .whole
        if ending == .cut {
            run.failed(.incompleteImage)
            return driver.settle()
        }
        let resident = run.ended(
            name: name(at: answer.place), tags: answer.tags, place: answer.place
        ) { size in
            guard ending == .whole else { return nil }
            let stored = plan.storedHead(
                answer.head, size: size, answer.examination,
                received: answer.receipt.receivedWall)
            return (
                plan.facts(answer.examination, size: size, stored, of: answer.head),
                RenderedHead(stored)
            )
        }
        if let resident { keep(resident, answer.index, answer.nominated, answer.place) }
        noteSize()
        driver.settle()
    }

    /// What an answer is called on disk that stands at `place`, or under the key that was asked
    /// for; nil without a disk.
    func name(at place: EntryPlace?) -> EntryName? {
        driver.name.map { name in place.map { EntryName(ofKey: $0.key) } ?? name }
    }

    func originFailed(_ failure: OriginFailure) {
        hall.count(failure)
        held = nil
        // What this node did not even try is counted, and said once for the origin: a storm of
        // misses must not become one of lines.
        log("origin fetch failed", why: "\(failure)", at: failure.isReportedOnce ? .debug : .info)
        if query.isBackground { hall.pauseBackground(query, now: SystemClock.now()) }
        if !standIn(status: nil) {
            run.failed(.origin(failure, isValidation: stale?.facts.flags.contains(.mustRevalidate)))
        }
        driver.finish()
    }

    func log(_ what: Logger.Message, why: String, at level: Logger.Level = .info) {
        hall.node.logger.log(
            level: level, what,
            metadata: run.cause.metadata([
                "url": "\(String(decoding: query.key, as: UTF8.self))", "why": "\(why)",
            ]))
    }

    // MARK: Decisions

    /// Gives the stale answer instead of an error, if it may be given (RFC 5861 §4).
    private func standIn(status: UInt16?) -> Bool {
        guard answer == nil, let stale, driver.standIn(stale, status: status) else { return false }
        if query.isBackground { hall.pauseBackground(query, now: SystemClock.now()) }
        driver.settle()
        return true
    }

    /// The answer as it came, for the one who asked.
    private func relay(_ head: AnswerHead, _ length: UInt64?, _ receipt: Freshness.Receipt) {
        if query.isHead { compare(head, receipt) }
        let passedHead = query.plan.passedHead(
            head, takesTrailers: query.takesTrailers, received: receipt.receivedWall)
        guard run.openWindow() else { return drop(.overloaded(.memory), length) }
        // Age is the origin's; nothing is added to it.
        let facts = EntryFacts(
            size: length ?? 0, bornAt: receipt.receivedAt, freshUntil: receipt.receivedAt,
            flags: .isDated, lastModified: nil, date: receipt.receivedWall, entityTag: .empty)
        var passed = FillAnswer(
            facts: facts, head: RenderedHead(passedHead),
            sizeBytes: query.isHead ? declaredLength(head) : length, isKept: false)
        passed.isVerbatim = true
        isPassing = true
        run.answered(passed, isShared: false, isStored: false)
    }

    /// What Content-Length says, also where no body follows (RFC 9110 §8.6).
    private func declaredLength(_ head: AnswerHead) -> UInt64? {
        guard let value = head.first(.contentLength) else { return nil }
        return UInt64(String(decoding: head.bytes[value.range], as: UTF8.self))
    }

    /// What a request that may have changed something makes unfit to be used (RFC 9111 §4.4).
    private func invalidate(by head: AnswerHead) {
        for key in query.plan.invalidated(by: head, query) {
            hall.node.invalidate(key)
        }
    }

    /// The readers get `problem`; what remains of the answer is read if it is little.
    ///
    /// Errors that are the client's to hear, such as 404, are ordinary and not worth a line.
    func drop(
        _ problem: Problem, _ length: UInt64?, nominated: FieldNames = FieldNames()
    ) {
        if problem.status >= 500, problem.retryAfterSeconds == nil {
            log("origin answer refused", why: problem.document.detail)
        }
        held = nil
        run.failed(problem, nominated: nominated)
        drop(length)
    }

    /// What remains of the answer is read if it is little.
    func drop(_ length: UInt64?) {
        driver.settle()
        if let length, length <= Self.droppedBytesMax { return }
        driver.cancel()
    }
}
