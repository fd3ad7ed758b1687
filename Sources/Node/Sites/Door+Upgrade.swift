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
extension Door {
    /// Answers the request that the parser holds, which has the field Upgrade; false if it is one
    /// like any other.
    func answersUpgrade(_ bytes: Span<UInt8>, _ plan: SitePlan, now: Instant) -> Bool {
        switch plan.upgrade(PendingRequest(copying: parser, bytes, headRange), parser.framing) {
        case .none: return false
        case .forwarded(let protocols): passSite(bytes, plan, upgrade: protocols, now: now)
        case .refused:
            hall.counters.add(.upgradesRefused)
            refuseSite(.upgradeRefused(plan.settings.upgrades))
        }
        return true
    }

    /// The origin has switched, for `run`: what the client sends from now on goes to `fetch`.
    func switched(_ run: FillRun, with fetch: OriginSource) {
        guard let waiting, waiting.run === run else { return }
        upload = Upload(at: SystemClock.now(), isSwitched: true)
        upload?.fetch = fetch
        outlet?.bodyWanted()
    }

    /// Tells the client that the origin has switched, and opens both directions.
    func beginSwitched(_ waiting: Waiting, _ answer: FillAnswer, _ note: CacheNote, now: Instant) {
        hall.counters.add(.upgrades)
        // What the head says of the connection is that it goes on, if not with HTTP.
        closesAfterAnswer = false
        sendWholeHead(answer, .none, note, now: now)
        closesAfterAnswer = true
        waiting.stage = .transfer(.init(from: 0, end: nil, isChunked: false))
        awaitUpload(now: now)
        outlet?.bodyGoesOn()
    }
}

extension SitePlan {
    /// What becomes of a request that has the field Upgrade, and whose body is framed so.
    fileprivate func upgrade(_ request: PendingRequest, _ framing: BodyFraming) -> Upgrade {
        Upgrade(
            request.lines, in: request.head.span, isHTTP10: request.isHTTP10,
            hasBody: framing != .none && framing != .length(0), allowed: settings.upgrades)
    }
}
