import Ground
import HTTPRules
import Origin
import Platform
import Telemetry
import Wire

/// The kind of requests that a port and its connections serve.
package enum Plane {
    /// Requests of clients.
    case data
    /// Requests of operators.
    case admin
    /// Requests of the node itself, handled like a client's, but without signatures, and excluded
    /// from request metrics and the access log.
    case internalRequest
}

/// The HTTP version that transports requests and responses (RFC 9110 §2.5).
enum HTTPVersion {
    case http1
    case http2
}

/// Handler of one client's requests, one after the other.
///
/// A hit is served within the read that brought the request, without an allocation. Everything
/// slower becomes a ``PendingResponse``, during which no further request is processed. A
/// ``ResponseSender`` sends the responses.
///
/// Confined to its event loop.
final class RequestHandler {
    /// Context of the handler's loop.
    let context: EventLoopContext
    let plane: Plane
    /// Sender of the responses.
    let response: ResponseSender
    /// Parser of request heads; holds the head of the request in progress.
    var parser: RequestParser
    /// Range of the request's head in the bytes being processed.
    private(set) var headRange = 0..<0
    /// The X-Forwarded-* fields of a trusted proxy; `nil` if there is none.
    private var forwarding: XForwardedFields?
    /// The response in progress, unless memory serves it.
    var pendingResponse: PendingResponse?
    /// Handler of operators' requests; `nil` for another plane.
    let admin: AdminHandler?
    /// The purge that a request with the method PURGE waits for.
    var pendingPurge: PendingPurge?
    /// Buffer for keys and signed texts.
    var scratch: [UInt8] = []

    var settings: NodeSettings { context.settings }

    /// Creates a handler without a client.
    init(on context: EventLoopContext, plane: Plane, protocolVersion: HTTPVersion) {
        self.context = context
        self.plane = plane
        response = ResponseSender(on: context, plane: plane, protocolVersion: protocolVersion)
        parser = RequestParser(limits: context.settings.headLimits)
        admin = plane == .admin ? AdminHandler(response) : nil
    }

    // MARK: The response in progress

    /// Forgets the response in progress, which has ended.
    func ended(_ waiting: PendingResponse) {
        if pendingResponse === waiting { pendingResponse = nil }
    }

    /// The body of a request to a site while it is forwarded.
    var upload: Upload? { pendingResponse?.upload }
    /// True if a request body is forwarded and the origin accepts more of it.
    var acceptsUpload: Bool { upload?.source?.isFull == false }

    /// Continues the response in progress as far as the fetch and the client permit.
    func proceed() {
        if let pendingResponse { pendingResponse.proceed() } else { response.proceed() }
    }

    /// Checks the deadline of the response in progress.
    func ticked(_ now: Instant) {
        guard response.isResponding, now >= response.deadline else { return }
        if let admin { admin.deadlineReached() } else { pendingResponse?.deadlineReached() }
    }

    /// Cancels everything in progress after the connection or stream has ended, and resets the
    /// state for the next one.
    func connectionClosed() {
        cancelPendingResponse()
        response.connectionClosed()
        forwarding = nil
        admin?.connectionClosed()
        pendingPurge = nil
    }

    /// Cancels the response in progress, whether it waits for a fetch or is sent from an entry.
    func cancelPendingResponse() {
        pendingResponse?.cancel()
        response.entryBody = nil
    }

    /// Aborts the response, so that the client does not take it for complete.
    func abort() {
        cancelPendingResponse()
        response.abort()
    }

    // MARK: The request

    /// Prepares the request in the parser, whose head lies in `range` of `bytes`: records the
    /// range, and reads the X-Forwarded-* fields of a trusted proxy.
    @inline(__always)
    func read(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        headRange = range
        if context.hasForwardingProxies || forwarding != nil { readForwarding(bytes) }
    }

    /// Reads the X-Forwarded-* fields if the connection comes from a trusted proxy.
    @inline(never)
    private func readForwarding(_ bytes: Span<UInt8>) {
        let proxies = settings.forwardedFrom
        guard plane == .data, let address = response.client?.address?.unmapped,
            proxies.contains(where: { $0.contains(address) })
        else {
            forwarding = nil
            return
        }
        forwarding = XForwardedFields(parser.fields.copy(), in: bytes, proxies: proxies)
    }

    /// True if the request was encrypted between the client and this node or a trusted proxy.
    var isSecure: Bool { forwarding?.isSecure ?? (response.client?.isSecure == true) }
    /// Range of the requested authority in the request's head.
    var requestedHost: Range<Int> { forwarding?.host ?? parser.host.range }
    /// Address of the client; `nil` if a proxy names it in an unintelligible form.
    var clientAddress: IPAddress? {
        guard let forwarding, forwarding.hasClientField else { return response.client?.address }
        return forwarding.client
    }
    /// Holder of the quotas that the request uses; `nil` for a loopback client, and for a trusted
    /// proxy's own request.
    ///
    /// Clients that a proxy does not distinguish share one.
    var quotaHolder: QuotaHolder? {
        if let forwarding, !forwarding.hasClientField { return nil }
        return QuotaHolder(clientAt: clientAddress ?? response.client?.address)
    }

    /// Applies the current limits to further heads.
    func reconfigureLimits() {
        parser = RequestParser(limits: settings.headLimits)
    }

    /// Prepares the log line of the request in the parser.
    func beginLog(_ bytes: Span<UInt8>, now: Instant) {
        let request = LoggedRequest(
            parser, bytes, over: response.protocolVersion, on: plane, as: response.requestID, now)
        response.beginLog(request, forwardedFor: forwarding?.client)
    }

    /// Refuses a request that is malformed or late; this is the last response of the connection.
    ///
    /// - Parameters:
    ///   - problem: the problem to send.
    ///   - request: the request head, if only its body is at fault; otherwise `nil`.
    func reject(_ problem: Problem, of request: BufferedRequest? = nil) {
        response.startedAt = SystemClock.now()
        if let request {
            identifyAndLog(request)
        } else {
            response.assignGeneratedID()
            if context.hasAccessLog {
                response.beginLog(
                    LoggedRequest(
                        unreadableOn: plane, as: response.requestID, response.startedAt),
                    forwardedFor: forwarding?.client)
            }
        }
        response.isHTTP10 = parser.isHTTP10
        response.cacheResult = .generated
        (response.status, response.bodyBytes) = (0, 0)
        response.resetSite()
        response.sendProblem(problem)
    }

    /// Assigns the ID of a buffered request and prepares its log line.
    private func identifyAndLog(_ request: BufferedRequest) {
        let head = request.head.span
        // Parsed before, but limits may have changed since.
        guard case .head = parser.parse(head, from: 0) else { return response.assignGeneratedID() }
        read(head, 0..<request.head.count)
        response.isHeadRequest = parser.method == .head
        response.assignRequestID(parser.fields, head)
        if context.hasAccessLog { beginLog(head, now: response.startedAt) }
    }
}
