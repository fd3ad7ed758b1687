import Platform
import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

/// A request body on its way to an origin.
struct Upload {
    /// The fetch that receives it; `nil` before that has begun.
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
    init(at now: Instant, isSwitched: Bool = false) {
        startedAt = now
        self.isTunnel = isSwitched
    }

    /// Returns the deadline for the complete body: `bodyTimeout`, extended in proportion to the
    /// bytes received; in a tunnel, the deadline for the next byte in either direction.
    func deadline(_ settings: NodeSettings, isDraining: Bool, now: Instant) -> Instant {
        if isTunnel { return now + (isDraining ? Self.drainIdleTimeout : settings.idleTimeout) }
        let earned = Double(bytes) / Double(max(1, settings.bodyRateMin))
        return startedAt + settings.bodyTimeout + .milliseconds(Int64(min(earned * 1e3, 1e12)))
    }

    /// Idle time after which a tunnel is ended while the node is stopping.
    private static let drainIdleTimeout = Interval.seconds(1)

    /// Counts body bytes.
    mutating func bytesReceived(_ count: Int) {
        bytes += count
    }

    /// Records that the origin accepts no more bytes for now.
    mutating func paused(at now: Instant) {
        pausedSince = pausedSince ?? now
    }

    /// Records the end of the origin's pause.
    mutating func resumed(at now: Instant) {
        guard let since = pausedSince else { return }
        pausedSince = nil
        startedAt = startedAt + (now - since)
    }
}

extension RequestHandler {
    /// Starts forwarding the body of the request in the parser.
    func beginUpload() {
        let now = SystemClock.now()
        upload = Upload(at: now)
        updateUploadDeadline(now: now)
        writer?.beginRequestBody()
        if parser.expectsContinue {
            writer?.send(interim: Self.continueResponse)
        }
    }

    /// Updates the deadline after progress of the body.
    func updateUploadDeadline(now: Instant) {
        deadline =
            upload?.deadline(settings, isDraining: isDraining, now: now) ?? deadline
    }

    /// True if the origin accepts more of the request body.
    var acceptsUpload: Bool { upload?.source?.isFull == false }

    /// Forwards a piece of the request body.
    func uploadReceived(_ piece: ByteBuffer, now: Instant) {
        guard let fetch = upload?.source else { return }
        upload?.bytesReceived(piece.readableBytes)
        fetch.send(piece)
        if upload?.source?.isFull == true { upload?.paused(at: now) }
        updateUploadDeadline(now: now)
    }

    /// Ends the forwarded request body.
    func uploadEnded(_ trailers: Trailers, now: Instant) {
        guard let fetch = upload?.source else { return }
        upload = nil
        deadline = now + settings.waitTimeout
        fetch.endBody(trailers)
    }

    /// Handles a malformed body: refuses the request if no response was begun, otherwise aborts.
    func uploadRejected(_ problem: Problem) {
        context.counters.add(.requestsMalformed)
        if case .awaitingHead? = pendingResponse?.stage { fail(with: problem) } else { abort() }
    }

    /// Resumes the body when the origin accepts more.
    func uploadResumed(for fetch: OriginSource) {
        guard upload?.source === fetch else { return }
        let now = SystemClock.now()
        upload?.resumed(at: now)
        updateUploadDeadline(now: now)
        writer?.resumeRequestBody()
    }

    /// Abandons a body that is incomplete at the end of the response; the connection cannot be
    /// reused, because the rest would be taken for a request.
    func abandonUpload() {
        guard let left = upload else { return }
        upload = nil
        left.source?.driver.cancel()
        closesAfterResponse = true
    }
}

extension RequestHandler {
    /// Forwards an interim response to the client whose request caused `run`.
    func relay(interim head: [UInt8], for run: ActiveFetch) {
        guard let pendingResponse, pendingResponse.fetch === run,
            case .awaitingHead = pendingResponse.stage,
            !pendingResponse.request.isHTTP10
        else { return }
        writer?.send(interim: ByteBuffer(bytes: head))
        writer?.flush()
    }
}
