import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

/// A request's body on its way to an origin.
struct Upload {
    /// The fetch that takes it; nil before it has begun.
    var source: OriginSource?
    /// The connection speaks another protocol: there is no end that it must come to.
    let isTunnel: Bool
    /// When it began, and as much later as the origin has kept it waiting since.
    private var startedAt: Instant
    private var bytes = 0
    /// Since when the origin takes nothing of it; nil while it does.
    private var pausedSince: Instant?

    init(at now: Instant, isSwitched: Bool = false) {
        startedAt = now
        self.isTunnel = isSwitched
    }

    /// By when it must be whole: its time, and a second more for so many bytes of it; between two
    /// that speak another protocol, by when anything must come in either direction.
    func deadline(_ settings: NodeSettings, isDraining: Bool, now: Instant) -> Instant {
        if isTunnel { return now + (isDraining ? Self.drainIdleTimeout : settings.idleTimeout) }
        let earned = Double(bytes) / Double(max(1, settings.bodyRateMin))
        return startedAt + settings.bodyTimeout + .milliseconds(Int64(min(earned * 1e3, 1e12)))
    }

    /// How long such a connection rests before it is ended, when the node is stopping.
    private static let drainIdleTimeout = Interval.seconds(1)

    mutating func bytesReceived(_ count: Int) {
        bytes += count
    }

    /// The origin takes no more for now.
    mutating func paused(at now: Instant) {
        pausedSince = pausedSince ?? now
    }

    mutating func resumed(at now: Instant) {
        guard let since = pausedSince else { return }
        pausedSince = nil
        startedAt = startedAt + (now - since)
    }
}

extension RequestHandler {
    /// The body of the request that the parser holds follows, and goes to the origin as it comes.
    func beginUpload() {
        let now = SystemClock.now()
        upload = Upload(at: now)
        updateUploadDeadline(now: now)
        writer?.beginRequestBody()
        if parser.expectsContinue {
            writer?.send(interim: Self.continueResponse)
        }
    }

    /// More of it must come in time.
    func updateUploadDeadline(now: Instant) {
        deadline =
            upload?.deadline(settings, isDraining: isDraining, now: now) ?? deadline
    }

    /// The origin takes what comes of the request's body.
    var acceptsUpload: Bool { upload?.source?.isFull == false }

    /// A piece of the request's body came.
    func uploadReceived(_ piece: ByteBuffer, now: Instant) {
        guard let fetch = upload?.source else { return }
        upload?.bytesReceived(piece.readableBytes)
        fetch.send(piece)
        if upload?.source?.isFull == true { upload?.paused(at: now) }
        updateUploadDeadline(now: now)
    }

    /// The request's body is whole.
    func uploadEnded(_ trailers: Trailers, now: Instant) {
        guard let fetch = upload?.source else { return }
        upload = nil
        deadline = now + settings.waitTimeout
        fetch.endBody(trailers)
    }

    /// What came is no body.
    func uploadRejected(_ problem: Problem) {
        context.counters.add(.requestsMalformed)
        if case .awaitingHead? = pendingResponse?.stage { fail(with: problem) } else { abort() }
    }

    /// The origin takes more of the body.
    func uploadResumed(for fetch: OriginSource) {
        guard upload?.source === fetch else { return }
        let now = SystemClock.now()
        upload?.resumed(at: now)
        updateUploadDeadline(now: now)
        writer?.resumeRequestBody()
    }

    /// The answer is over before the request's body is: nothing more of the connection can be read
    /// as a request.
    func abandonUpload() {
        guard let left = upload else { return }
        upload = nil
        left.source?.driver.cancel()
        closesAfterResponse = true
    }
}

extension RequestHandler {
    /// Passes an interim answer on to the client whose request caused `run`.
    func relay(interim head: [UInt8], for run: ActiveFetch) {
        guard let pendingResponse, pendingResponse.fetch === run,
            case .awaitingHead = pendingResponse.stage,
            !pendingResponse.request.isHTTP10
        else { return }
        writer?.send(interim: ByteBuffer(bytes: head))
        writer?.flush()
    }
}
