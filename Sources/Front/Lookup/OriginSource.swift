import Ground
import HTTPRules
import Logging
import NIOCore
import Origin
import Peering
import Platform
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// The origin source of an ``ActiveFetch``: fetches, applies the rules of the site to the response,
/// and delivers its bytes.
///
/// Confined to its loop.
final class OriginSource: ResponseSource, OriginFetchDelegate {
    let driver: LookupDriver
    let fetch: ActiveFetch
    /// The request in the form in which the origin receives it.
    let siteRequest: SiteRequest
    unowned let context: EventLoopContext
    /// The response whose request caused the fetch; it alone receives interim responses and sends a
    /// request body.
    private var requester: PendingResponse? { driver.requester }
    /// The exchange with the origin; `nil` before it starts.
    var originFetch: OriginFetch?
    /// A request whose body is collected before it takes a connection.
    var deferredRequest: DeferredRequest?
    /// A response held until its first bytes show its format.
    var heldResponse: HeldResponse?
    /// The response being delivered to the readers.
    var acceptedResponse: AcceptedResponse?
    /// Redirects followed so far.
    private(set) var redirects: [Redirect] = []
    /// The stored responses that are validated.
    private let revalidation: Revalidation
    /// The stored response to validate that the request selects; `nil` if there is none.
    var staleEntry: MemoryEntry? { revalidation.staleEntry }
    /// True once the response is passed through to its one reader.
    private var isRelaying = false
    /// Bytes discarded after the fetch was closed to readers, so that the connection can be reused.
    private var discardedBytes = 0

    /// Maximum bytes of an unwanted response that are read, because a new connection would cost
    /// more.
    private static let discardedBytesMax = 64 << 10

    /// Creates a source that has not started.
    init(_ driver: LookupDriver, _ query: SiteRequest) {
        self.driver = driver
        self.siteRequest = query
        fetch = driver.fetch
        context = driver.context
        revalidation = Revalidation(driver.fetch, query, name: driver.name)
    }

    /// Starts the request to the origin, or defers it if it has a body; fails the fetch if the
    /// request is refused.
    func start() {
        switch siteRequest.originRequest(
            validating: revalidation.candidates, for: fetch, through: context.node)
        {
        case .refused(let problem): driver.fail(problem)
        case .request(let request):
            context.counters.add(.originFetchesStarted)
            guard !siteRequest.body.isEmpty else { return startOriginFetch(request) }
            deferredRequest = DeferredRequest(request: request)
        }
    }

    // MARK: Requests of the fetch

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

    // MARK: Events of the origin fetch

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
                    receivedWallTime: SystemClock.wallTime()),
                url: url))
    }

    /// Charges the fetch to the origin contacted now; fails it if a quota is exhausted.
    func requestStarting(_ origin: OriginAuthority, at address: IPAddress?) {
        // An origin named by the operator has its own quota.
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
            requestedAt: requestedAt, receivedAt: respondedAt,
            receivedWallTime: SystemClock.wallTime())
        context.counters.add(.originResponses(status: head.status))
        if head.isEventStream { originFetch?.waiveMinimumRate() }
        if head.status == 101 { requester?.protocolSwitched(fetch, with: self) }
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
            if !revalidation.candidates.isEmpty {
                revalidation.freshen(with: head, receipt, by: redirects)
                return driver.closeToReaders()
            }
            // The node did not validate: the requester interprets the 304.
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
        // Trailers go only to a requester that accepts them (RFC 9110 §6.5.1).
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
        // The format of an image shows whether its end was reached.
        let ending = delimitedByClose && plan.imageRules != nil ? fetch.completeness : .complete
        if ending == .truncated {
            fetch.failed(.incompleteImage)
            return driver.closeToReaders()
        }
        let (place, evaluated) = (acceptedResponse.placement, acceptedResponse.evaluated)
        let entry = fetch.completed(
            name: place.name(primary: driver.name), tags: acceptedResponse.tags, place: place.key
        ) { size in
            guard ending == .complete else { return nil }
            let stored = evaluated.storedHead(size: size, under: plan)
            return (
                plan.metadata(evaluated.cacheability, size: size, stored, of: evaluated.head),
                RenderedHead(stored)
            )
        }
        if let entry {
            context.node.entries.insert(
                entry, at: place, of: siteRequest.primaryKey, isOffered: plan.settings.usesPeers)
        }
        recordOversize()
        driver.closeToReaders()
    }

    func originFetchFailed(_ failure: OriginFailure) {
        context.counters.add(failure)
        heldResponse = nil
        // A fetch refused by this node is counted, and logged once per origin elsewhere, so that
        // many misses do not produce as many log lines.
        log("origin fetch failed", why: "\(failure)", at: failure.isReportedOnce ? .debug : .info)
        if siteRequest.isBackground { context.pauseBackground(siteRequest, now: SystemClock.now()) }
        if !serveStaleOnError(status: nil) {
            fetch.failed(
                .originFailed(
                    failure, isValidation: staleEntry?.metadata.flags.contains(.mustRevalidate)))
        }
        driver.finish()
    }

    /// Logs an event of this fetch.
    func log(_ what: Logger.Message, why: String, at level: Logger.Level = .info) {
        context.node.logger.log(
            level: level, what,
            metadata: fetch.correlation.metadata([
                "url": "\(String(decoding: siteRequest.key, as: UTF8.self))", "why": "\(why)",
            ]))
    }

    // MARK: Decisions

    /// Serves the stale response instead of an error, if permitted (RFC 5861 §4); returns false if
    /// it is not, or if a response was accepted before.
    ///
    /// After a failed background fetch, further ones of the key are suspended.
    private func serveStaleOnError(status: UInt16?) -> Bool {
        guard acceptedResponse == nil, let staleEntry,
            driver.serveStaleOnError(staleEntry, status: status)
        else { return false }
        if siteRequest.isBackground { context.pauseBackground(siteRequest, now: SystemClock.now()) }
        driver.closeToReaders()
        return true
    }

    /// Passes the response on to its one reader, unstored and as the origin has selected it.
    private func passThrough(
        _ head: ResponseHead, _ length: UInt64?, _ receipt: Freshness.ResponseTiming
    ) {
        if siteRequest.isHead { revalidation.freshenByHead(head, receipt, by: redirects) }
        let passedHead = siteRequest.policy.passThroughHead(
            head, takesTrailers: siteRequest.acceptsTrailers, received: receipt.receivedWallTime)
        guard fetch.openWindow() else { return discardResponse(.overloaded(.memory), length) }
        // Age was set by the origin; nothing is added to it.
        let facts = EntryMetadata(
            size: length ?? 0, generatedAt: receipt.receivedAt, freshUntil: receipt.receivedAt,
            flags: .isDated, lastModified: nil, date: receipt.receivedWallTime, entityTag: .empty)
        var passed = FetchedResponse(
            metadata: facts, head: RenderedHead(passedHead),
            sizeBytes: siteRequest.isHead ? declaredLength(head) : length, isKept: false)
        passed.isPassedThrough = true
        isRelaying = true
        fetch.responseHeadReceived(passed, isShared: false, isStored: false)
    }

    /// Returns the value of Content-Length, also if no body follows (RFC 9110 §8.6).
    private func declaredLength(_ head: ResponseHead) -> UInt64? {
        guard let value = head.first(.contentLength) else { return nil }
        return UInt64(String(decoding: head.bytes[value.range], as: UTF8.self))
    }

    /// Invalidates the keys that a successful unsafe request affects (RFC 9111 §4.4).
    private func invalidate(by head: ResponseHead) {
        for key in siteRequest.policy.invalidatedKeys(by: head, siteRequest) {
            context.purges.invalidate(key)
        }
    }

    /// Fails the fetch with `problem`; the rest of a response with a small body of `length` bytes
    /// is read and discarded, any other response is cancelled.
    ///
    /// Client errors such as 404 and temporary overload are not logged.
    func discardResponse(
        _ problem: Problem, _ length: UInt64?, nominated: FieldNames = FieldNames()
    ) {
        if problem.status >= 500, problem.retryAfterSeconds == nil {
            log("origin response refused", why: problem.document.detail)
        }
        heldResponse = nil
        fetch.failed(problem, nominated: nominated)
        discardResponse(length)
    }

    /// Closes the fetch to readers; the rest of a response with a small body of `length` bytes is
    /// read and discarded, any other response is cancelled.
    func discardResponse(_ length: UInt64?) {
        driver.closeToReaders()
        if let length, length <= Self.discardedBytesMax { return }
        driver.cancel()
    }
}

/// Forwarding of request bodies to the origin.
extension OriginSource {
    /// True if further pieces of the request body must wait.
    var isFull: Bool { originFetch.map { $0.acceptsBody && !$0.isWritable } ?? false }

    /// Sends a piece of the request body, or collects it while the request is deferred.
    func send(_ piece: ByteBuffer) {
        guard let isFull = deferredRequest?.append(piece) else {
            originFetch?.send(body: piece)
            return
        }
        if isFull { sendDeferredRequest() }
    }

    /// Ends the request body, after sending the request if it is still deferred.
    func endBody(_ trailers: Trailers) {
        sendDeferredRequest()
        let section = siteRequest.policy.requestFieldRules.trailers(
            trailers.lines, in: trailers.bytes.span)
        originFetch?.endBody(trailers: Trailers(section) ?? Trailers())
    }

    /// Sends the deferred request, if there is one, with the body collected so far.
    private func sendDeferredRequest() {
        guard let deferredRequest else { return }
        self.deferredRequest = nil
        startOriginFetch(deferredRequest.request)
        originFetch?.send(body: deferredRequest.body)
    }

    func originBecameWritable() {
        requester?.uploadResumed(for: self)
    }

    /// Starts the exchange with the origin.
    func startOriginFetch(_ request: OriginFetchRequest) {
        originFetch = context.origin.fetch(request, to: self)
    }
}

/// A request and the beginning of its body; a client that sends it slowly occupies no connection
/// meanwhile.
struct DeferredRequest {
    let request: OriginFetchRequest
    /// The body in one buffer, however small its pieces were.
    private(set) var body = ByteBuffer()

    /// Size of the collected body, in bytes, above which the request is sent before the body ends.
    private static let bytesMax = 64 << 10

    /// Creates the request without bytes of its body.
    init(request: OriginFetchRequest) {
        self.request = request
    }

    /// Appends a piece of the body; returns true if the request is to be sent.
    mutating func append(_ piece: ByteBuffer) -> Bool {
        body.writeImmutableBuffer(piece)
        return body.readableBytes > Self.bytesMax
    }
}
