import Admin
import FoundationEssentials
import Ground
import HTTPRules
import NIOCore
import Origin
import Platform
import Store
import Telemetry
import Wire

/// A request of the node to itself, handled like a client's, so that the same keys, owners,
/// coalescing and limits apply.
///
/// Confined to its event loop, whose context retains it until it ends. Only the parts of the
/// response in ``Response`` are kept; interim responses and trailers are dropped, and output is
/// never held back.
final class InternalRequest: ResponseWriter, ClientConnection, @unchecked Sendable {
    /// The outcome of the request.
    struct Response {
        /// Status code; `nil` if the response was not complete.
        var status: UInt16?
        /// How the cache handled the request.
        var cachePart = CacheOutcome.generated
        /// Size of the complete body, in bytes.
        var bodyBytes: UInt64 = 0
        /// Beginning of the body, up to the requested limit.
        var body: [UInt8] = []
        /// True if the body is longer than `body`.
        var isBodyTruncated = false
        /// Head of the response, as in HTTP/1.1.
        var head: [UInt8] = []
    }

    private let context: EventLoopContext
    private let handler: RequestHandler
    /// Maximum bytes of the body that are kept.
    private let bodyBytesMax: Int
    private var response = Response()
    /// The completion closure; `nil` before the start and after the end.
    private var completion: ((Response) -> Void)?

    let plane = Plane.internalRequest
    var client: Client? { handler.response.client }
    var idleSince: Instant? { nil }
    var index = 0
    let queuedBytes = 0

    /// Creates a request that keeps at most `bodyBytesMax` bytes of the response body.
    init(on context: EventLoopContext, bodyBytesMax: Int) {
        self.context = context
        self.bodyBytesMax = bodyBytesMax
        handler = RequestHandler(on: context, plane: .internalRequest, protocolVersion: .http1)
    }

    /// Starts the request; on the loop.
    ///
    /// The completion closure is called once with the outcome, after this call has returned.
    func begin(_ question: InternalRequestHead, _ completion: @escaping (Response) -> Void) {
        self.completion = completion
        context.connections.add(self)
        handler.response.writer = self
        handler.response.client = Client(isSecure: question.isSecure)
        let head = question.head.span
        switch handler.parser.parse(head, from: 0) {
        case .head(let end) where end == head.count:
            handler.read(head, 0..<end)
            context.headBuffers.begin()
            handler.respond(head, now: SystemClock.now())
        case .head, .incomplete, .refused: finish(isComplete: false)
        }
    }

    /// Ends the request, after the handler has returned from its current call.
    private func finish(isComplete: Bool) {
        if !isComplete { response.status = nil }
        response.cachePart = handler.response.cacheResult
        context.loop.execute { [self] in
            guard let completion = self.completion.take() else { return }
            context.connections.remove(self)
            handler.connectionClosed()
            completion(response)
        }
    }

    // MARK: ResponseWriter

    func send(head: ByteBuffer) {
        response.head = Array(head.readableBytesView)
        response.status = handler.response.status
    }

    func send(interim: ByteBuffer) {}

    func send(body: ByteBuffer) {
        response.bodyBytes += UInt64(body.readableBytes)
        let room = bodyBytesMax - response.body.count
        response.body += body.readableBytesView.prefix(room)
        if body.readableBytes > room { response.isBodyTruncated = true }
    }

    func beginChunk(bytes: UInt64) {}
    func endChunk() {}
    func endChunks(trailers: [UInt8]) {}
    func responseEnded() { finish(isComplete: true) }
    func flush() {}
    func retain(_ entry: MemoryEntry) {}
    func beginRequestBody() {}
    func resumeRequestBody() {}
    func resumeRequests() {}
    func abort() { finish(isComplete: false) }

    // MARK: ClientConnection

    func ticked(_ now: Instant) { handler.ticked(now) }
    func drain() {}
    func settingsChanged(from old: NodeSettings) {}
    func close() { finish(isComplete: false) }
}

extension InternalRequest.Response {
    /// The outcome for a prefetch.
    var prefetchOutcome: PrefetchOutcome {
        guard let status else {
            return .failed(
                reason: "the response was aborted, or the URL cannot be requested",
                hostResponded: false)
        }
        switch status {
        case 200..<300:
            if cacheStatus?.detail == "stored" {
                return .failed(
                    reason: "its origin failed, and the stored response is stale",
                    hostResponded: false)
            }
            switch cachePart {
            case .hit, .disk, .stale: return .cached(bodyBytes: bodyBytes)
            case .generated, .miss, .peer, .revalidated, .collapsed, .bypassed:
                guard isStored else {
                    return .failed(
                        reason: "it responded with \(status), and the response cannot be stored")
                }
                return .fetched(bodyBytes: bodyBytes)
            }
        case 503:
            let seconds = field("retry-after").flatMap { Int64($0) }
            return .deferred(
                reason: failureText(status), retryAfter: seconds.map(Interval.seconds),
                isHostFault: !isNodeLimit)
        case 502 where affectsWholeOrigin, 504 where affectsWholeOrigin:
            return .deferred(reason: failureText(status), retryAfter: nil)
        default: return .failed(reason: failureText(status), hostResponded: status < 500)
        }
    }

    /// The problem that an error response describes.
    private var problem: ReceivedProblem {
        (try? JSONDecoder().decode(ReceivedProblem.self, from: Data(body)))
            ?? ReceivedProblem(ofText: body)
    }

    /// True if the request failed at a limit of this node.
    private var isNodeLimit: Bool {
        problem.name.map(PrefetchOutcome.nodeProblemNames.contains) ?? false
    }

    /// True if the failure affects all URLs of the origin.
    private var affectsWholeOrigin: Bool {
        problem.name.map(OriginFailure.originWideNames.contains) ?? false
    }

    /// True if the response is stored, by this node or by the peer that sent it.
    private var isStored: Bool {
        guard let cacheStatus else { return false }
        guard case .forwarded = cacheStatus.outcome else { return true }
        return cacheStatus.isStored || cacheStatus.detail == "peer"
    }

    /// How this node handled the request.
    private var cacheStatus: CacheStatus? {
        field("cache-status").flatMap { CacheStatus(lastMemberOf: Array($0.utf8)) }
    }

    /// Returns the value of the last field line with this name.
    ///
    /// - Parameter name: the name in lower case.
    /// - Returns: the value without leading spaces; `nil` if no line has this name.
    private func field(_ name: String) -> String? {
        for line in head.split(separator: 0x0A).reversed() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
                String(decoding: line[..<colon], as: UTF8.self).lowercased() == name
            else { continue }
            let value = line[(colon + 1)...].drop { $0 == 0x20 }
            return String(decoding: value.prefix { $0 != 0x0D }, as: UTF8.self)
        }
        return nil
    }

    /// Returns the reason for a failure with this status.
    private func failureText(_ status: UInt16) -> String {
        let sentence = problem.message
        return sentence.isEmpty
            ? "it responded with \(status)" : "it responded with \(status): \(sentence)"
    }
}

/// Head of the request that a client would send for a URL: to a site if one serves its host,
/// otherwise to the image API.
struct InternalRequestHead: Hashable {
    /// The head, including its empty line.
    let head: [UInt8]
    /// True for an `https` URL.
    let isSecure: Bool
    /// True if a site serves the request.
    let isForSite: Bool

    /// Creates the head of a request for `url`; returns `nil` if that is not an absolute URL.
    ///
    /// - Parameters:
    ///   - url: the URL to request, in any form; bytes that a target cannot contain are escaped.
    ///   - accept: value of the Accept field.
    ///   - sites: the configured sites, which decide whether the URL is requested from a site.
    init?(_ url: String, accept: String, sites: SiteTable) {
        let bytes = Array(url.utf8)
        guard let parts = AbsoluteURL(bytes), !parts.host.isEmpty else { return nil }
        let host = bytes[parts.host]
        guard host.allSatisfy(Self.isHostByte) else { return nil }
        var target = PercentEncoding.encoded(bytes[parts.target]) { 0x21...0x7E ~= $0 }
        if target.first != UInt8(ascii: "/") { target.insert(UInt8(ascii: "/"), at: 0) }
        isSecure = parts.isSecure
        isForSite = sites.find(bytes.span, at: parts.host, isSecure: isSecure) != nil
        var isForClients = isForSite
        if case .image = ImageTarget.parse(target.span, at: 0..<target.count) {
            isForClients = true
        }
        if !isForClients {
            let end = url.utf8.firstIndex(of: UInt8(ascii: "#")) ?? url.utf8.endIndex
            target =
                Array("/v1/image?url=".utf8)
                + PercentEncoding.encoded(url.utf8[..<end])
        }
        var head = Array("GET ".utf8) + target + Array(" HTTP/1.1\r\nHost: ".utf8)
        head += host
        head += Array("\r\nAccept: \(accept)\r\n\r\n".utf8)
        self.head = head
    }

    /// Returns true for a byte that may stand in a name, address or port.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"): true
        case UInt8(ascii: "~"): false
        default: PercentEncoding.isUnreserved(byte)
        }
    }
}
