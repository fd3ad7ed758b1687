import Ground
import HTTPRules
import NIOCore
import Platform
import Serving
import Telemetry
import Wire

/// A request body on its way to an origin, or the client's bytes after a protocol switch.
///
/// Confined to the event loop of its handler.
final class Upload {
    /// Sender of the response, whose deadline the body determines meanwhile.
    private let response: ResponseSender
    /// The origin source that receives the body; `nil` before it has begun and after the end.
    var source: OriginSource?
    /// True after a protocol switch, when the body has no required end.
    let isTunnel: Bool
    /// Start of the body, moved forward by all pauses of the origin.
    private var startedAt: Instant
    /// Bytes received so far.
    private var bytes = 0
    /// Start of the origin's current pause; `nil` if it accepts bytes.
    private var pausedSince: Instant?

    /// Creates an upload that begins at `now`.
    init(of response: ResponseSender, at now: Instant) {
        self.response = response
        startedAt = now
        isTunnel = false
    }

    /// Creates the upload of the bytes that follow a protocol switch at `now`.
    init(of response: ResponseSender, switchedTo source: OriginSource, at now: Instant) {
        self.response = response
        self.source = source
        startedAt = now
        isTunnel = true
    }

    /// Idle time after which a tunnel is ended while the node is stopping.
    private static let drainIdleTimeout = Interval.seconds(1)

    /// Updates the deadline of the response after progress of the body.
    ///
    /// It is that of the complete body: `bodyTimeout`, extended in proportion to the bytes
    /// received; in a tunnel, that of the next byte in either direction.
    func updateDeadline(now: Instant) {
        let settings = response.settings
        if isTunnel {
            let idle = response.isDraining ? Self.drainIdleTimeout : settings.idleTimeout
            response.deadline = now + idle
        } else {
            let earned = Double(bytes) / Double(max(1, settings.bodyRateMin))
            response.deadline =
                startedAt + settings.bodyTimeout + .milliseconds(Int64(min(earned * 1e3, 1e12)))
        }
    }

    /// Forwards a piece of the body to the origin, or drops it once the fetch has ended.
    func received(_ piece: ByteBuffer, now: Instant) {
        guard let fetch = source else { return }
        bytes += piece.readableBytes
        fetch.send(piece)
        // The piece may have ended the fetch, and the upload with it.
        guard let source else { return }
        if source.isFull { pausedSince = pausedSince ?? now }
        updateDeadline(now: now)
    }

    /// Ends a pause of the origin, which accepts more.
    func resume() {
        let now = SystemClock.now()
        if let since = pausedSince {
            pausedSince = nil
            startedAt = startedAt + (now - since)
        }
        updateDeadline(now: now)
        response.writer?.resumeRequestBody()
    }
}

/// The body of the request while it is forwarded.
extension PendingResponse {
    /// Starts forwarding the body of the request, after 100 (Continue) if the client expects that.
    func beginUpload(expectsContinue: Bool) {
        let now = SystemClock.now()
        let upload = Upload(of: response, at: now)
        self.upload = upload
        upload.updateDeadline(now: now)
        response.writer?.beginRequestBody()
        if expectsContinue { response.writer?.send(interim: RequestHandler.continueResponse) }
    }

    /// Passes on the end of the request body, from which on the response has its own time limit;
    /// does nothing once the fetch has ended.
    func uploadEnded(_ trailers: Trailers, now: Instant) {
        guard let fetch = upload?.source else { return }
        upload = nil
        response.deadline = now + settings.waitTimeout
        fetch.endBody(trailers)
    }

    /// Handles a malformed body: refuses the request if no response was begun, otherwise aborts.
    func uploadRejected(_ problem: Problem) {
        context.counters.add(.requestsMalformed)
        if isAtHead { fail(with: problem) } else { abort() }
    }

    /// Resumes the body when the origin accepts more.
    func uploadResumed(for fetch: OriginSource) {
        if let upload, upload.source === fetch { upload.resume() }
    }

    /// Abandons a body that is incomplete at the end of the response, and cancels its fetch.
    ///
    /// The connection cannot be reused, because the rest would be taken for a request.
    func abandonUpload() {
        guard let left = upload else { return }
        upload = nil
        left.source.take()?.driver.cancel()
        response.closesAfterResponse = true
    }

    /// Forwards an interim response to the client whose request caused `run`, unless its response
    /// has begun or it uses HTTP/1.0.
    func relay(interim head: [UInt8], for run: ActiveFetch) {
        guard fetch === run, isAtHead, !request.isHTTP10 else { return }
        response.writer?.send(interim: ByteBuffer(bytes: head))
        response.writer?.flush()
    }

    // MARK: Protocol switches

    /// Records that the origin has switched protocols, for example to WebSocket: further bytes of
    /// the client go to `source`.
    func protocolSwitched(_ run: ActiveFetch, with source: OriginSource) {
        guard fetch === run else { return }
        upload = Upload(of: response, switchedTo: source, at: SystemClock.now())
        response.writer?.beginRequestBody()
    }

    /// Sends the 101 response and opens both directions: the origin's bytes are the response body
    /// and the client's bytes the request body, until either side closes.
    func beginTunnel(_ received: FetchedResponse, _ note: CacheHandling, now: Instant) {
        context.counters.add(.upgrades)
        // The connection persists, if not for HTTP.
        response.closesAfterResponse = false
        sendWholeHead(received, .none, note, now: now)
        response.closesAfterResponse = true
        upload?.updateDeadline(now: now)
        response.writer?.resumeRequestBody()
    }
}
