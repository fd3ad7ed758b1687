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

/// The origin's side of a `ActiveFetch`: asks, decides by the rules of its site what becomes of the
/// answer, and hands its bytes on.
///
/// Confined to its loop.
final class OriginSource: ResponseSource, OriginFetchDelegate {
    let driver: LookupDriver
    let fetch: ActiveFetch
    let siteRequest: SiteRequest
    unowned let context: EventLoopContext
    /// The door whose request caused the fetch, which alone is told of interim answers and gives
    /// the request's body.
    var handler: RequestHandler? { driver.handler }
    var originFetch: OriginFetch?
    /// What is held back of a request with a body, before it takes a connection.
    var deferredRequest: DeferredRequest?
    /// An answer that is held until its first bytes say what it is.
    var heldResponse: HeldResponse?
    /// An answer that goes to the readers.
    var acceptedResponse: AcceptedResponse?
    /// Those by way of which it comes.
    private(set) var redirects: [Redirect] = []
    /// The stored answer that is selected by the request, which the origin is asked about.
    private(set) var staleEntry: MemoryEntry?
    /// The stored answers that the origin is asked about: that one, or those that other requests
    /// select.
    private(set) var validationCandidates: [MemoryEntry] = []
    /// The answer goes to its reader unstored.
    private var isRelaying = false
    /// Bytes that arrived after the run was over; the connection can be used again.
    private var discardedBytes = 0

    /// What is needed of the head until the body's end.
    struct AcceptedResponse {
        let head: ResponseHead
        let cacheability: Cacheability
        let storageDecision: StorageDecision
        let nominated: FieldNames
        let entryKey: EntryKey?
        let variantIndex: VariantIndex?
        let tags: [[UInt8]]
        let timing: Freshness.ResponseTiming
    }

    /// Bytes of an answer that nobody wants which are still read, because a new connection would
    /// cost more.
    private static let discardedBytesMax = 64 << 10

    init(_ driver: LookupDriver, _ query: SiteRequest) {
        self.driver = driver
        self.siteRequest = query
        fetch = driver.fetch
        context = driver.context
    }

    func start() {
        staleEntry = siteRequest.mode == .whole ? fetch.staleEntry : nil
        if let staleEntry {
            validationCandidates = [staleEntry]
        } else if siteRequest.mode == .whole, !siteRequest.isImage {
            // Origins that make images of several types from one are known to forget Accept where
            // they are asked conditionally.
            validationCandidates = context.node.variants(of: siteRequest)
        }
        switch siteRequest.originRequest(
            validating: validationCandidates, for: fetch, through: context.node)
        {
        case .refused(let problem): driver.fail(problem)
        case .request(let request):
            context.counters.add(.originFetchesStarted)
            guard !siteRequest.body.isEmpty else { return startOriginFetch(request) }
            deferredRequest = DeferredRequest(request: request)
        }
    }

    // MARK: What the run asks for

    var isContended: Bool { fetch.phase == .relaying && originFetch?.isContended == true }

    func updateFlow() {
        if fetch.isPaused { originFetch?.pause() } else { originFetch?.resume() }
    }

    func cancel() {
        deferredRequest = nil
        heldResponse = nil
        recordOversize()
        originFetch?.cancel()
        context.counters.add(.originFetchesAbandoned)
    }

    // MARK: What the origin says

    func redirectReceived(
        _ head: ResponseHead, to url: [UInt8], requestedAt: Instant, respondedAt: Instant
    ) {
        context.counters.add(.originRedirects)
        context.counters.add(.originResponses(status: head.status))
        redirects.append(
            Redirect(
                head: head,
                timing: Freshness.ResponseTiming(
                    requestedAt: requestedAt, receivedAt: respondedAt,
                    receivedWall: SystemClock.wallTime()),
                url: url))
    }

    func requestStarting(_ origin: OriginAuthority, at address: IPAddress?) {
        // What the operator has named has a share of its own.
        guard siteRequest.policy.origin == nil,
            !context.node.fetches.reassign(fetch, to: fetch.holders(fetchingFrom: origin, address))
        else { return }
        discardResponse(.overloaded(.fetchShare), nil)
    }

    func originInterimResponseReceived(_ head: ResponseHead) {
        guard ResponseForwarder.forwardsInterim(head.status) else { return }
        var bytes: [UInt8] = []
        ResponseForwarder.appendInterim(
            head, rules: siteRequest.policy.responseFieldRules, to: &bytes)
        driver.relay(interim: bytes)
    }

    func originResponseReceived(
        _ head: ResponseHead, bodyLength: UInt64?, requestedAt: Instant, respondedAt: Instant
    ) {
        let receipt = Freshness.ResponseTiming(
            requestedAt: requestedAt, receivedAt: respondedAt, receivedWall: SystemClock.wallTime())
        context.counters.add(.originResponses(status: head.status))
        if head.isEventStream { originFetch?.waiveMinimumRate() }
        if head.status == 101 { handler?.protocolSwitched(fetch, with: self) }
        invalidate(by: head)
        let head = siteRequest.policy.forwarded(head, to: siteRequest)
        guard siteRequest.mode != .verbatim else { return passThrough(head, bodyLength, receipt) }
        if siteRequest.mode == .part,
            head.status == 206 || StatusRules.isRequestSpecific(head.status)
        {
            recordStorability(from: head, receipt)
            return passThrough(head, bodyLength, receipt)
        }
        if head.status == 304 {
            if !validationCandidates.isEmpty { return freshen(with: head, receipt) }
            // Nothing was asked about: whoever asked makes of it what he can.
            if siteRequest.policy.imageRules == nil {
                return passThrough(head, bodyLength, receipt)
            }
        }
        if StatusRules.isFailure(head.status), serveStaleOnError(status: head.status) {
            return discardResponse(bodyLength)
        }
        accept(head, bodyLength, receipt)
    }

    func originBodyReceived(_ body: ByteBuffer) {
        context.counters.add(.originReceivedBytes, body.readableBytes)
        siteRequest.counters?.add(.originBytes, body.readableBytes)
        if heldResponse != nil { return holdUntilRecognised(body) }
        guard driver.isClosedToReaders else { return fetch.bodyReceived(body) }
        discardedBytes += body.readableBytes
        if discardedBytes > Self.discardedBytesMax { driver.cancel() }
    }

    func originTrailersReceived(_ trailers: Trailers) {
        // Only who asked is given them, and only if it reads them (RFC 9110 §6.5.1).
        guard siteRequest.acceptsTrailers else { return }
        fetch.trailersReceived(
            siteRequest.policy.responseFieldRules.trailers(trailers.lines, in: trailers.bytes.span))
    }

    func originResponseEnded(delimitedByClose: Bool) {
        context.counters.add(.originFetchesOK)
        defer { driver.end() }
        if heldResponse != nil { heldBodyEnded() }
        guard !driver.isClosedToReaders else { return }
        guard let acceptedResponse else {
            if isRelaying { _ = fetch.completed(name: nil) { _ in nil } }
            return driver.closeToReaders()
        }
        let plan = siteRequest.policy
        // Of images the format says whether that was the end.
        let ending = delimitedByClose && plan.imageRules != nil ? fetch.completeness : .complete
        if ending == .truncated {
            fetch.failed(.incompleteImage)
            return driver.closeToReaders()
        }
        let entry = fetch.completed(
            name: name(at: acceptedResponse.entryKey), tags: acceptedResponse.tags,
            place: acceptedResponse.entryKey
        ) { size in
            guard ending == .complete else { return nil }
            let stored = plan.storedHead(
                acceptedResponse.head, size: size, acceptedResponse.cacheability,
                received: acceptedResponse.timing.receivedWallTime)
            return (
                plan.metadata(
                    acceptedResponse.cacheability, size: size, stored, of: acceptedResponse.head),
                RenderedHead(stored)
            )
        }
        if let entry {
            insertEntry(
                entry, acceptedResponse.variantIndex, acceptedResponse.nominated,
                acceptedResponse.entryKey)
        }
        recordOversize()
        driver.closeToReaders()
    }

    /// What an answer is called on disk that stands at `place`, or under the key that was asked
    /// for; nil without a disk.
    func name(at place: EntryKey?) -> EntryName? {
        driver.name.map { name in place.map { EntryName(ofKey: $0.key) } ?? name }
    }

    func originFetchFailed(_ failure: OriginFailure) {
        context.count(failure)
        heldResponse = nil
        // What this node did not even try is counted, and said once for the origin: a storm of
        // misses must not become one of lines.
        log("origin fetch failed", why: "\(failure)", at: failure.isReportedOnce ? .debug : .info)
        if siteRequest.isBackground { context.pauseBackground(siteRequest, now: SystemClock.now()) }
        if !serveStaleOnError(status: nil) {
            fetch.failed(
                .originFailed(
                    failure, isValidation: staleEntry?.metadata.flags.contains(.mustRevalidate)))
        }
        driver.finish()
    }

    func log(_ what: Logger.Message, why: String, at level: Logger.Level = .info) {
        context.node.logger.log(
            level: level, what,
            metadata: fetch.correlation.metadata([
                "url": "\(String(decoding: siteRequest.key, as: UTF8.self))", "why": "\(why)",
            ]))
    }

    // MARK: Decisions

    /// Gives the stale answer instead of an error, if it may be given (RFC 5861 §4).
    private func serveStaleOnError(status: UInt16?) -> Bool {
        guard acceptedResponse == nil, let staleEntry,
            driver.serveStaleOnError(staleEntry, status: status)
        else { return false }
        if siteRequest.isBackground { context.pauseBackground(siteRequest, now: SystemClock.now()) }
        driver.closeToReaders()
        return true
    }

    /// The answer as it came, for the one who asked.
    private func passThrough(
        _ head: ResponseHead, _ length: UInt64?, _ receipt: Freshness.ResponseTiming
    ) {
        if siteRequest.isHead { freshenByHead(head, receipt) }
        let passedHead = siteRequest.policy.passThroughHead(
            head, takesTrailers: siteRequest.acceptsTrailers, received: receipt.receivedWallTime)
        guard fetch.openWindow() else { return discardResponse(.overloaded(.memory), length) }
        // Age is the origin's; nothing is added to it.
        let facts = EntryMetadata(
            size: length ?? 0, bornAt: receipt.receivedAt, freshUntil: receipt.receivedAt,
            flags: .isDated, lastModified: nil, date: receipt.receivedWallTime, entityTag: .empty)
        var passed = FetchedResponse(
            metadata: facts, head: RenderedHead(passedHead),
            sizeBytes: siteRequest.isHead ? declaredLength(head) : length, isKept: false)
        passed.isPassedThrough = true
        isRelaying = true
        fetch.responseHeadReceived(passed, isShared: false, isStored: false)
    }

    /// What Content-Length says, also where no body follows (RFC 9110 §8.6).
    private func declaredLength(_ head: ResponseHead) -> UInt64? {
        guard let value = head.first(.contentLength) else { return nil }
        return UInt64(String(decoding: head.bytes[value.range], as: UTF8.self))
    }

    /// What a request that may have changed something makes unfit to be used (RFC 9111 §4.4).
    private func invalidate(by head: ResponseHead) {
        for key in siteRequest.policy.invalidatedKeys(by: head, siteRequest) {
            context.node.invalidate(key)
        }
    }

    /// The readers get `problem`; what remains of the answer is read if it is little.
    ///
    /// Errors that are the client's to hear, such as 404, are ordinary and not worth a line.
    func discardResponse(
        _ problem: Problem, _ length: UInt64?, nominated: FieldNames = FieldNames()
    ) {
        if problem.status >= 500, problem.retryAfterSeconds == nil {
            log("origin answer refused", why: problem.document.detail)
        }
        heldResponse = nil
        fetch.failed(problem, nominated: nominated)
        discardResponse(length)
    }

    /// What remains of the answer is read if it is little.
    func discardResponse(_ length: UInt64?) {
        driver.closeToReaders()
        if let length, length <= Self.discardedBytesMax { return }
        driver.cancel()
    }
}

/// The body of a request on its way to the origin.
extension OriginSource {
    /// A request and the first of its body: a client that takes its time for that holds no
    /// connection meanwhile.
    struct DeferredRequest {
        let request: OriginFetchRequest
        /// One buffer, however small the pieces are that it came in.
        var body = ByteBuffer()

        static let bytesMax = 64 << 10
    }

    /// Pieces of the request's body are to wait.
    var isFull: Bool { originFetch.map { $0.acceptsBody && !$0.isWritable } ?? false }

    func send(_ piece: ByteBuffer) {
        guard deferredRequest != nil else {
            originFetch?.send(body: piece)
            return
        }
        deferredRequest?.body.writeImmutableBuffer(piece)
        if deferredRequest?.body.readableBytes ?? 0 > DeferredRequest.bytesMax {
            sendDeferredRequest()
        }
    }

    func endBody(_ trailers: Trailers) {
        sendDeferredRequest()
        let section = siteRequest.policy.requestFieldRules.trailers(
            trailers.lines, in: trailers.bytes.span)
        originFetch?.endBody(trailers: Trailers(section) ?? Trailers())
    }

    private func sendDeferredRequest() {
        guard let deferredRequest else { return }
        self.deferredRequest = nil
        startOriginFetch(deferredRequest.request)
        originFetch?.send(body: deferredRequest.body)
    }

    func originBecameWritable() {
        handler?.uploadResumed(for: self)
    }

    func startOriginFetch(_ request: OriginFetchRequest) {
        originFetch = context.origin.fetch(request, to: self)
    }
}
