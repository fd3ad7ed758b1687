import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

/// Requests that would have their connection speak another protocol, such as WebSocket.
///
/// Once the origin has switched, what it sends is the answer's body, and what the client sends is
/// the request's, until either ends.
extension RequestHandler {
    /// Answers the request that the parser holds, which has the field Upgrade; false if it is one
    /// like any other.
    func handleUpgrade(_ bytes: Span<UInt8>, _ plan: SitePolicy, now: Instant) -> Bool {
        switch plan.upgrade(BufferedRequest(copying: parser, bytes, headRange), parser.framing) {
        case .none: return false
        case .forwarded(let protocols): passSite(bytes, plan, upgrade: protocols, now: now)
        case .refused:
            context.counters.add(.upgradesRefused)
            rejectSiteRequest(.upgradeRefused(plan.settings.upgrades))
        }
        return true
    }

    /// The origin has switched, for `run`: what the client sends from now on goes to `fetch`.
    func protocolSwitched(_ run: ActiveFetch, with fetch: OriginSource) {
        guard let pendingResponse, pendingResponse.fetch === run else { return }
        upload = Upload(at: SystemClock.now(), isSwitched: true)
        upload?.source = fetch
        writer?.beginRequestBody()
    }

    /// Tells the client that the origin has switched, and opens both directions.
    func beginTunnel(
        _ waiting: PendingResponse, _ response: FetchedResponse, _ note: CacheHandling, now: Instant
    ) {
        context.counters.add(.upgrades)
        // What the head says of the connection is that it goes on, if not with HTTP.
        closesAfterResponse = false
        sendWholeHead(response, .none, note, now: now)
        closesAfterResponse = true
        waiting.stage = .streaming(.init(from: 0, end: nil, isChunked: false))
        updateUploadDeadline(now: now)
        writer?.resumeRequestBody()
    }
}

extension SitePolicy {
    /// What becomes of a request that has the field Upgrade, and whose body is framed so.
    fileprivate func upgrade(_ request: BufferedRequest, _ framing: BodyFraming) -> Upgrade {
        Upgrade(
            request.lines, in: request.head.span, isHTTP10: request.isHTTP10,
            hasBody: framing != .none && framing != .length(0), allowed: settings.upgrades)
    }
}
