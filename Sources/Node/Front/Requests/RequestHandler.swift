import Admin
import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Wire

/// Answers the requests of one client, one after the other.
///
/// A hit is answered inside the read that brought it, without an allocation. Everything slower
/// becomes a ``QueuedRequest``, during which no further request comes. What carries requests and
/// answers is an ``ResponseWriter``.
///
/// Confined to its event loop.
final class RequestHandler: FetchReader {
    /// Which requests a door answers.
    enum Plane {
        case data
        case admin
        /// Of the node itself, which asks as a client would: answered as they are without a
        /// signature, and in no count of requests and no line of the log of them.
        case internalRequest
    }

    /// How requests and answers are carried (RFC 9110 §2.5).
    enum ProtocolVersion {
        case http1
        case http2
    }

    let context: EventLoopContext
    let plane: Plane
    let protocolVersion: ProtocolVersion
    /// Nil once the connection, or the stream, is gone.
    var writer: (any ResponseWriter)?
    var client: Client?
    /// Reads heads, and holds the one of the request that is being answered.
    var parser: RequestParser
    /// Where the request's head lies in the bytes that are being looked at.
    private(set) var headRange = 0..<0
    /// What a proxy in front says of the request; nil if none is believed.
    private(set) var forwarding: XForwardedFields?
    var isHeadRequest = false
    /// An answer waits for something, or its body for the client.
    var isResponding = false
    /// While ``isAnswering``: what it waits for must have come by this instant.
    var deadline = Instant.distantFuture
    /// The answer was broken off here.
    var isAborted = false
    /// The node is stopping.
    var isDraining = false
    /// The client asked for, or we decided on, this being the last answer.
    var closesAfterResponse = false
    /// Of the site that the request is for; nil for none.
    var siteCounters: SiteCounters?
    /// The key that the site was asked for, of a request that memory did not answer.
    var requestKey: [UInt8] = []
    /// What the request is called, unless ``givenID`` says it.
    var requestNumber: UInt64 = 0
    /// What its client calls it; empty if it does not, or not in a way that is taken over.
    var clientRequestID: [UInt8] = []
    /// Lines that this answer has beside its own.
    var extraFieldLines: [UInt8] = []
    /// Who asked wants to know how the answer came about, and may.
    var includesDecision = false
    /// The body of a request to a site, while it goes to the origin.
    var upload: Upload?
    /// The answer in progress, if it is not one that memory gave at once.
    var pendingResponse: PendingResponse?
    /// What an operator's answer waits for.
    var pendingPurge: PendingPurge?
    /// An operator's request is refused, later.
    var delayedRefusal: AdminAccessError?
    /// Room that is kept from one use to the next.
    var slices: [ByteBuffer] = []
    var scratch: [UInt8] = []

    /// When the request that is being answered was read.
    var startedAt = Instant.zero
    /// What the client is told as it happens.
    var eventStream: EventStream?

    /// How the cache takes part in the answer.
    var cacheResult = CacheResult.none
    // What the access log will say; `logged` is nil when there is no log or no request in progress.
    var logged: LoggedRequest?
    var responseStatus: UInt16 = 0
    var responseBodyBytes: UInt64 = 0

    var settings: NodeSettings { context.settings }

    init(on context: EventLoopContext, plane: Plane, protocolVersion: ProtocolVersion) {
        self.context = context
        self.plane = plane
        self.protocolVersion = protocolVersion
        parser = RequestParser(limits: context.settings.headLimits)
        slices.reserveCapacity(16)
    }

    /// Bytes of answers that are not on their way to the client.
    var queuedBytes: Int { writer?.queuedBytes ?? 0 }

    /// A fetch that this door waits for has something for it.
    func fetchAdvanced(by run: ActiveFetch) {
        guard let pendingResponse, pendingResponse.fetch === run else { return }
        proceed()
        writer?.flush()
    }

    /// Looks at the deadline of the answer in progress.
    func ticked(_ now: Instant) {
        guard isResponding, now >= deadline else { return }
        if delayedRefusal != nil { sendDelayedRefusal() } else { waitTimeoutReached() }
    }

    /// The connection, or the stream, is gone; whoever waited for something waits no more, and
    /// nothing is left for the next one.
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

    func cancelPendingResponse() {
        abandonUpload()
        guard let pendingResponse else { return }
        self.pendingResponse = nil
        leaveFetch(pendingResponse)
    }

    /// Ends in such a way that no client can take what it has for a whole answer.
    func abort() {
        cancelPendingResponse()
        if !isAborted, plane == .data { context.counters.add(.responsesAborted) }
        isAborted = true
        writer?.abort()
    }

    /// The parser holds a request whose head lies in `range` of `bytes`.
    @inline(__always)
    func read(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        headRange = range
        if context.hasForwardingProxies || forwarding != nil { readForwarding(bytes) }
    }

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

    /// The request came encrypted.
    var isSecure: Bool { forwarding?.isSecure ?? (client?.isSecure == true) }
    /// Where the authority that was asked for lies in the request's head.
    var requestedHost: Range<Int> { forwarding?.host ?? parser.host.range }
    /// Who asks; nil if a proxy says it in a way that nobody understands.
    var clientAddress: IPAddress? {
        guard let forwarding, forwarding.hasClientField else { return client?.address }
        return forwarding.client
    }
    /// Whose share of what is limited a request takes; nil for nobody's, as for what a proxy that
    /// speaks for others asks by itself.
    ///
    /// Those whom nobody can tell apart have one together.
    var shareHolder: QuotaHolder? {
        if let forwarding, !forwarding.hasClientField { return nil }
        return QuotaHolder(clientAt: clientAddress ?? client?.address)
    }

    /// Begins to read heads with the limits that hold now.
    func reconfigureLimits() {
        parser = RequestParser(limits: settings.headLimits)
    }
}

/// What the request that is being answered is called.
extension RequestHandler {
    /// The parser holds a request that nobody has named here.
    @inline(__always)
    func assignRequestID(_ bytes: Span<UInt8>) {
        assignGeneratedID()
        if parser.fields.contains(.xRequestID) { useClientRequestID(bytes) }
    }

    /// The same for what could not be read: nothing that it says is taken over.
    @inline(__always)
    func assignGeneratedID() {
        requestNumber = context.requestIDs.next()
        if !clientRequestID.isEmpty { clientRequestID.removeAll(keepingCapacity: true) }
    }

    /// Calls the request what its client calls it, if that is one name, and safe to repeat.
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

    var requestID: RequestID { RequestID(clientRequestID) ?? context.requestIDs.id(requestNumber) }

    /// What is asked for the sake of the request with this head.
    func cause(_ request: BufferedRequest) -> RequestCorrelation {
        RequestCorrelation(requestID, TraceContext(request.lines, in: request.head.span))
    }

    /// The lines that differ from one answer of an entry to the next, and the end of the head.
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
    /// `X-Request-Id` of a request that has its name from here.
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
    /// Writes the access line of the answer that has just ended.
    func log(isComplete: Bool) {
        guard let request = logged else { return }
        logged = nil
        context.log(
            AccessLine(
                request, remote: forwarding?.client.map { "\($0)" } ?? client?.remote ?? "-",
                milliseconds: SystemClock.wallMilliseconds(), status: responseStatus,
                bodyBytes: responseBodyBytes, outcome: cacheResult.text, isComplete: isComplete,
                duration: SystemClock.now() - request.startedAt))
    }
}
