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

/// The origin's side of a `FillRun`: asks, reads the answer's meaning, and hands its bytes on.
///
/// Confined to its loop.
final class FillFetch: FillSource, OriginFetchDelegate {
    let run: FillRun
    unowned let hall: Hall
    /// What the answer to the URL is called on disk, variants apart; nil without a disk tier.
    private let name: EntryName?
    private var fetch: OriginFetch?
    /// An answer that is held until its first bytes say what it is.
    var held: HeldAnswer?
    /// An answer that goes to the readers.
    private var answer: Answer?
    /// Those by way of which the answer comes.
    private var redirects: [Redirect] = []
    /// The run is over; what still arrives is dropped, so that the connection can be used again.
    private var isSettled = false
    private var droppedBytes = 0
    private var isEnded = false

    /// What is needed of the head until the body's end.
    private struct Answer {
        let head: AnswerHead
        let examination: Examination
        let tags: [[UInt8]]
    }

    /// Bytes of an answer that nobody wants which are still read, because a new connection would
    /// cost more.
    private static let droppedBytesMax = 64 << 10

    init(_ run: FillRun, name: EntryName?, on hall: Hall) {
        self.run = run
        self.name = name
        self.hall = hall
    }

    func start() {
        let validators = run.stale.map(StoredValidators.init) ?? StoredValidators()
        let key = run.key
        do {
            var request = try OriginFetchRequest(
                key: key.span, negotiation: run.negotiation,
                ifNoneMatch: validators.entityTag, ifModifiedSince: validators.lastModified,
                causeLines: run.cause.lines(span: .newSpan()))
            request.holders = run.client.map { [$0] } ?? []
            hall.counters.add(.originFetchesStarted)
            fetch = hall.origin.fetch(request, to: self)
        } catch {
            // What is stored is not believed so far that it could end the node.
            refuse(.origin(.malformed("no request can be made: \(error)")))
            end()
        }
    }

    // MARK: What the run asks for

    var isContended: Bool { run.phase == .passing && fetch?.isContended == true }

    /// Reads from the origin, or does not, as the run says now: what two loops have said a moment
    /// ago may come in either order.
    func pace() {
        if run.isPaused { fetch?.pause() } else { fetch?.resume() }
    }

    /// Nobody wants the rest of the answer.
    func cancel() {
        fetch?.cancel()
        if !isEnded { hall.counters.add(.originFetchesAbandoned) }
        // Whoever has joined since it was given up begins anew.
        run.lost()
        held = nil
        settle()
        end()
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
        guard !hall.node.fills.move(run, to: run.holders(askingAt: origin, address)) else {
            return
        }
        drop(.overloaded(.share), nil)
    }

    func originAnswered(
        _ head: AnswerHead, bodyLength: UInt64?, requestedAt: Instant, answeredAt: Instant
    ) {
        let receipt = Freshness.Receipt(
            requestedAt: requestedAt, receivedAt: answeredAt, receivedWall: SystemClock.wallTime())
        hall.counters.add(.originAnswers(status: head.status))
        switch head.status {
        case 304:
            guard let stale = run.stale else { return drop(.originStatus(304), bodyLength) }
            freshen(stale, with: head, receipt)
        case 200:
            accept(head, bodyLength, receipt)
        default:
            drop(.originStatus(head.status), bodyLength)
        }
    }

    func originSent(_ body: ByteBuffer) {
        hall.counters.add(.originReceivedBytes, body.readableBytes)
        if held != nil { return hold(body) }
        guard isSettled else { return run.received(body) }
        droppedBytes += body.readableBytes
        if droppedBytes > Self.droppedBytesMax { cancel() }
    }

    func originEnded(delimitedByClose: Bool) {
        hall.counters.add(.originFetchesOK)
        defer { end() }
        if held != nil { releaseAtEnd() }
        guard !isSettled, let answer else { return }
        let ending = delimitedByClose ? run.ending : .whole
        if ending == .cut { return refuse(.incompleteImage) }
        let resident = run.ended(
            name: variant(answer.examination.varies), tags: answer.tags
        ) { size in
            guard ending == .whole else { return nil }
            let stored = StoredHead(answer.head, size: size)
            return (answer.examination.facts(size: size, head: stored), RenderedHead(stored))
        }
        if let resident {
            hall.node.keep(resident)
            hall.node.offer(resident)
        }
        settle()
    }

    func originFailed(_ failure: OriginFailure) {
        hall.count(failure)
        // What this node did not even try is counted, and said once for the origin: a storm of
        // misses must not become one of lines.
        log("origin fetch failed", why: "\(failure)", at: failure.isReportedOnce ? .debug : .info)
        refuse(.origin(failure))
        end()
    }

    // MARK: Decisions

    private func variant(_ varies: Negotiation) -> EntryName? {
        name?.variant(varies, of: run.negotiation)
    }

    /// What the answer is kept with: where the redirects ended, and what its origin says.
    private func tags(_ said: AnswerTags) -> [[UInt8]] {
        let tags = EntryTags(key: run.key, answer: said, urls: places)
        if tags.cutCount > 0 { hall.noteCut(tags.cutCount, of: run.key, for: run.cause) }
        return tags.tags
    }

    /// Where the answer comes from, if the origin has sent it elsewhere.
    private var places: [[UInt8]] { redirects.last.map { [$0.url] } ?? [] }

    private func accept(_ head: AnswerHead, _ length: UInt64?, _ receipt: Freshness.Receipt) {
        let settings = run.settings
        var examination = AnswerRules.examine(
            head, negotiation: run.negotiation, receipt: receipt, defaultTTL: settings.defaultTTL,
            types: settings.types)
        for redirect in redirects {
            examination.limit(by: redirect, defaultTTL: settings.defaultTTL)
        }
        guard examination.isTypeAccepted else { return drop(.notAnImage(head), length) }
        // The origin has another answer now, whether or not this one will be whole.
        if let stale = run.stale { hall.node.forget(stale) }
        guard settings.takesCodedImages || !ImageProbe.isVeiled(head) else {
            hall.counters.add(.imagesCoded)
            return drop(.codedImage, length)
        }
        let head = head.redirected(by: redirects, examination)
        hold(HeldAnswer(head: head, examination: examination, length: length))
    }

    /// Gives the answer to the readers; `isFit` if it may be kept as far as its body can tell.
    func deliver(_ head: AnswerHead, _ examination: Examination, _ length: UInt64?, isFit: Bool) {
        let stored = StoredHead(head, size: length)
        let rendered = RenderedHead(stored)
        let tags = tags(AnswerTags(head))
        answer = Answer(head: head, examination: examination, tags: tags)
        let isKept = isFit && examination.notStored == nil && hasRoom(length, rendered)
        // Whoever is served from memory needs none; a miss that would take more has to wait.
        guard isKept || run.openWindow() else { return drop(.overloaded(.memory), length) }
        run.answered(
            FillAnswer(
                facts: examination.facts(size: length ?? 0, head: stored), head: rendered,
                sizeBytes: length, isKept: isKept, tags: tags),
            isShared: examination.isShareable, varies: examination.varies)
    }

    /// True if the body may be kept as far as its length is known; reserves the memory for it.
    private func hasRoom(_ length: UInt64?, _ head: RenderedHead) -> Bool {
        if let length, length > run.settings.objectBytesMax { return false }
        let overhead = Resident.overhead(
            keyBytes: run.key.count, headBytes: head.bytes.count, bodyBytes: length ?? 0)
        guard let length else {
            return run.reserve(overhead + FillAnswer.reservedBytes(growingTo: 0))
        }
        return run.reserve(overhead + BodyLayout.capacity(length))
    }

    /// 304: the stored body stays, with new facts and a new head (RFC 9111 §3.2, §4.3.4).
    private func freshen(
        _ stale: Resident, with head: AnswerHead, _ receipt: Freshness.Receipt
    ) {
        let settings = run.settings
        let fresh = RenderedHead(stale).stored.freshened(
            with: head, facts: stale.facts, receipt: receipt, redirects: redirects,
            defaultTTL: settings.defaultTTL,
            types: settings.types)
        // Validators are of one resource: what another says of them means nothing (RFC 9110 §8.8).
        let named = EntryTags(key: run.key, urls: places).tags
        let isSamePlace = named == stale.tags.filter { URLName.name(inTag: $0) != nil }
        guard let fresh, isSamePlace else {
            hall.node.forget(stale)
            run.misunderstood()
            return settle()
        }
        let rendered = RenderedHead(fresh.head)
        let name = variant(fresh.facts.varies)
        guard
            let resident = run.makeFreshened(
                stale, name, tags: stale.tags, fresh.facts, rendered)
        else {
            hall.node.forget(stale)
            run.confirmed(stale, isShared: fresh.examination.isShareable, isStored: false)
            return settle()
        }
        let isStored = fresh.examination.notStored == nil
        if isStored {
            // What was confirmed may be another variant now; on disk that has another name.
            if stale.name != name { hall.node.forget(stale) }
            hall.node.keep(resident)
        } else {
            hall.node.forget(stale)
        }
        run.confirmed(
            resident, isShared: fresh.examination.isShareable, isStored: isStored)
        settle()
    }

    /// The readers get `problem`; what remains of the answer is read if it is little.
    ///
    /// Errors that are the client's to hear, such as 404, are ordinary and not worth a line.
    func drop(_ problem: Problem, _ length: UInt64?) {
        if problem.status >= 500, problem.retryAfterSeconds == nil {
            log("origin answer refused", why: problem.document.detail)
        }
        refuse(problem)
        if let length, length <= Self.droppedBytesMax { return }
        cancel()
    }

    func refuse(_ problem: Problem) {
        held = nil
        run.failed(problem)
        settle()
    }

    /// Nothing more comes from the origin; the connection is free or gone.
    private func end() {
        guard !isEnded else { return }
        isEnded = true
        hall.node.fills.originEnded(run)
        hall.ended(self)
    }

    /// From now on nobody joins this fetch.
    private func settle() {
        guard !isSettled else { return }
        isSettled = true
        hall.node.fills.remove(run)
    }
}
