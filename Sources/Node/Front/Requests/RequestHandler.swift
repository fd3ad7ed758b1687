import Admin
import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Wire

/// Handler of one client's requests, one after the other.
///
/// A hit is served within the read that brought the request, without an allocation. Everything
/// slower becomes a ``PendingResponse``, during which no further request is processed. A
/// ``ResponseWriter`` transports the responses.
///
/// Confined to its event loop.
final class RequestHandler: FetchReader {
    /// The kind of requests that a handler serves.
    enum Plane {
        /// Requests of clients.
        case data
        /// Requests of operators.
        case admin
        /// Requests of the node itself, handled like a client's, but without signatures, and
        /// excluded from request metrics and the access log.
        case internalRequest
    }

    /// The HTTP version that transports requests and responses (RFC 9110 §2.5).
    enum ProtocolVersion {
        case http1
        case http2
    }

    /// Context of the handler's loop.
    let context: EventLoopContext
    let plane: Plane
    let protocolVersion: ProtocolVersion
    /// The writer; `nil` after the connection or stream has ended.
    var writer: (any ResponseWriter)?
    /// The client; `nil` without a connection or stream.
    var client: Client?
    /// Parser of request heads; holds the head of the request in progress.
    var parser: RequestParser
    /// Range of the request's head in the bytes being processed.
    private(set) var headRange = 0..<0
    /// The X-Forwarded-* fields of a trusted proxy; `nil` if there is none.
    private(set) var forwarding: XForwardedFields?
    /// True if the request is a HEAD.
    var isHeadRequest = false
    /// True while a response waits for data or for the client.
    var isResponding = false
    /// Instant by which what the response waits for must arrive, while ``isResponding``.
    var deadline = Instant.distantFuture
    /// True if the node has aborted the response.
    var isAborted = false
    /// True once the connection must close after the response in progress, because the node is
    /// stopping.
    var isDraining = false
    /// True if this is the last response, as the client requested or the node decided.
    var closesAfterResponse = false
    /// Counters of the request's site; `nil` if it is for none.
    var siteCounters: SiteCounters?
    /// Key of a site's request that memory could not serve.
    var requestKey: [UInt8] = []
    /// Number of the request, from which its ID is made unless ``clientRequestID`` is set.
    var requestNumber: UInt64 = 0
    /// Request ID sent by the client; empty if there is none, or it is not safe to repeat.
    var clientRequestID: [UInt8] = []
    /// Field lines to add to this response.
    var extraFieldLines: [UInt8] = []
    /// True if the request carries the token for the Nuthatch-Decision field.
    var includesDecision = false
    /// The body of a request to a site while it is forwarded.
    var upload: Upload?
    /// The response in progress, unless it was sent at once.
    var pendingResponse: PendingResponse?
    /// The purge that an admin request waits for.
    var pendingPurge: PendingPurge?
    /// Refusal of an admin request, to be sent at ``deadline``.
    var delayedRefusal: AdminAccessError?
    /// Pieces of the body to write next; kept for its capacity.
    var slices: [ByteBuffer] = []
    /// Buffer for keys and signed texts.
    var scratch: [UInt8] = []

    /// When the request's head was read.
    var startedAt = Instant.zero
    /// The event stream being sent to the client.
    var eventStream: EventStream?

    /// How the cache contributed to the response.
    var cacheResult = CacheOutcome.generated
    // For the access log; `logged` is `nil` without a log, or without a request in progress.
    var logged: LoggedRequest?
    var responseStatus: UInt16 = 0
    var responseBodyBytes: UInt64 = 0

    var settings: NodeSettings { context.settings }

    /// Creates a handler without a client.
    init(on context: EventLoopContext, plane: Plane, protocolVersion: ProtocolVersion) {
        self.context = context
        self.plane = plane
        self.protocolVersion = protocolVersion
        parser = RequestParser(limits: context.settings.headLimits)
        slices.reserveCapacity(16)
    }

    /// Output bytes that were not accepted by the socket.
    var queuedBytes: Int { writer?.queuedBytes ?? 0 }

    /// Continues after an event of the fetch.
    func fetchAdvanced(by run: ActiveFetch) {
        guard let pendingResponse, pendingResponse.fetch === run else { return }
        proceed()
        writer?.flush()
    }

    /// Checks the deadline of the response in progress.
    func ticked(_ now: Instant) {
        guard isResponding, now >= deadline else { return }
        if delayedRefusal != nil { sendDelayedRefusal() } else { deadlineReached() }
    }

    /// Cancels everything in progress after the connection or stream has ended, and resets the
    /// state for the next one.
    func connectionClosed() {
        cancelPendingResponse()
        if logged != nil { log(isComplete: false) }
        if isResponding, !isAborted, client?.isAborted != true, plane == .data {
            context.counters.add(.responsesClientClosed)
        }
        isAborted = false
        writer = nil
        client = nil
        forwarding = nil
        pendingPurge = nil
        delayedRefusal = nil
        eventStream = nil
        isResponding = false
        extraFieldLines.removeAll(keepingCapacity: true)
        resetSite()
    }

    /// Cancels the response in progress and leaves its fetch.
    func cancelPendingResponse() {
        abandonUpload()
        guard let pendingResponse else { return }
        self.pendingResponse = nil
        leaveFetch(pendingResponse)
    }

    /// Aborts the response, so that the client does not take it for complete.
    func abort() {
        cancelPendingResponse()
        if !isAborted, plane == .data { context.counters.add(.responsesAborted) }
        isAborted = true
        writer?.abort()
    }

    /// Prepares the request in the parser, whose head lies in `range` of `bytes`.
    @inline(__always)
    func read(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        headRange = range
        if context.hasForwardingProxies || forwarding != nil { readForwarding(bytes) }
    }

    /// Reads the X-Forwarded-* fields if the connection comes from a trusted proxy.
    @inline(never)
    private func readForwarding(_ bytes: Span<UInt8>) {
        let proxies = settings.forwardedFrom
        guard plane == .data, let address = client?.address?.unmapped,
            proxies.contains(where: { $0.contains(address) })
        else {
            forwarding = nil
            return
        }
        forwarding = XForwardedFields(parser.fields.copy(), in: bytes, proxies: proxies)
    }

    /// True if the request was encrypted between the client and this node or a trusted proxy.
    var isSecure: Bool { forwarding?.isSecure ?? (client?.isSecure == true) }
    /// Range of the requested authority in the request's head.
    var requestedHost: Range<Int> { forwarding?.host ?? parser.host.range }
    /// Address of the client; `nil` if a proxy names it in an unintelligible form.
    var clientAddress: IPAddress? {
        guard let forwarding, forwarding.hasClientField else { return client?.address }
        return forwarding.client
    }
    /// Holder of the quotas that the request uses; `nil` for a trusted proxy's own request.
    ///
    /// Clients that cannot be distinguished share one.
    var shareHolder: QuotaHolder? {
        if let forwarding, !forwarding.hasClientField { return nil }
        return QuotaHolder(clientAt: clientAddress ?? client?.address)
    }

    /// Applies the current limits to further heads.
    func reconfigureLimits() {
        parser = RequestParser(limits: settings.headLimits)
    }
}

/// The ID of the request in progress.
extension RequestHandler {
    /// Assigns an ID to the request in the parser, the client's own if it is acceptable.
    @inline(__always)
    func assignRequestID(_ bytes: Span<UInt8>) {
        assignGeneratedID()
        if parser.fields.contains(.xRequestID) { useClientRequestID(bytes) }
    }

    /// Assigns a generated ID, also to a request that could not be parsed.
    @inline(__always)
    func assignGeneratedID() {
        requestNumber = context.requestIDs.next()
        if !clientRequestID.isEmpty { clientRequestID.removeAll(keepingCapacity: true) }
    }

    /// Adopts the ID sent by the client if there is exactly one and it is safe to repeat.
    @inline(never)
    private func useClientRequestID(_ bytes: Span<UInt8>) {
        var given: Range<Int>?
        for index in 0..<parser.fields.count {
            let line = parser.fields[index]
            guard line.id == .xRequestID else { continue }
            guard given == nil else { return }
            given = line.value.range
        }
        guard let given, RequestID.isSafe(bytes, at: given) else { return }
        for index in given { clientRequestID.append(bytes[index]) }
    }

    /// ID of the request in progress.
    var requestID: RequestID { RequestID(clientRequestID) ?? context.requestIDs.id(requestNumber) }

    /// Returns the correlation to pass on with fetches for the request with this head.
    func cause(_ request: BufferedRequest) -> RequestCorrelation {
        RequestCorrelation(requestID, TraceContext(request.lines, in: request.head.span))
    }

    /// Appends the lines that differ between responses of one entry, and the end of the head.
    @inline(__always)
    func appendTail(
        _ facts: EntryMetadata, _ note: CacheHandling, to writer: inout HeadWriter, now: Instant
    ) {
        if clientRequestID.isEmpty {
            writer.append(context.requestIDs.prefixDigits, HexDigits(requestNumber))
        } else {
            writer.append("X-Request-Id: ")
            writer.append(clientRequestID)
            writer.append("\r\n")
        }
        writer.appendTail(facts, handling: note, date: context.dateLine, connectionOption, now: now)
    }
}

extension HeadWriter {
    /// Appends `X-Request-Id` with a generated ID.
    @inline(__always)
    mutating func append(_ run: HexDigits, _ number: HexDigits) {
        append("X-Request-Id: ")
        append(digits: run.high)
        append(digits: run.low)
        append(digits: number.high)
        append(digits: number.low)
        append("\r\n")
    }
}

extension RequestHandler {
    /// Logs the response that has ended.
    func log(isComplete: Bool) {
        guard let request = logged else { return }
        logged = nil
        context.log(
            AccessLine(
                request, remote: forwarding?.client.map { "\($0)" } ?? client?.remote ?? "-",
                milliseconds: SystemClock.wallMilliseconds(), status: responseStatus,
                bodyBytes: responseBodyBytes, outcome: cacheResult.logText, isComplete: isComplete,
                duration: SystemClock.now() - request.startedAt))
    }
}
