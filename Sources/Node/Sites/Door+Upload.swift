import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

/// A request's body on its way to an origin.
struct Upload {
    /// The fetch that takes it; nil before it has begun.
    var fetch: OriginSource?
    /// The connection speaks another protocol: there is no end that it must come to.
    let isSwitched: Bool
    /// When it began, and as much later as the origin has kept it waiting since.
    private var beganAt: Instant
    private var bytes = 0
    /// Since when the origin takes nothing of it; nil while it does.
    private var heldSince: Instant?

    init(at now: Instant, isSwitched: Bool = false) {
        beganAt = now
        self.isSwitched = isSwitched
    }

    /// By when it must be whole: its time, and a second more for so many bytes of it; between two
    /// that speak another protocol, by when anything must come in either direction.
    func deadline(_ settings: NodeSettings, isDraining: Bool, now: Instant) -> Instant {
        if isSwitched { return now + (isDraining ? Self.drainedRest : settings.idleTimeout) }
        let earned = Double(bytes) / Double(max(1, settings.bodyRateMin))
        return beganAt + settings.bodyTimeout + .milliseconds(Int64(min(earned * 1e3, 1e12)))
    }

    /// How long such a connection rests before it is ended, when the node is stopping.
    private static let drainedRest = Interval.seconds(1)

    mutating func arrived(_ count: Int) {
        bytes += count
    }

    /// The origin takes no more for now.
    mutating func held(at now: Instant) {
        heldSince = heldSince ?? now
    }

    mutating func goesOn(at now: Instant) {
        guard let since = heldSince else { return }
        heldSince = nil
        beganAt = beganAt + (now - since)
    }
}

extension Door {
    /// The body of the request that the parser holds follows, and goes to the origin as it comes.
    func beginUpload() {
        let now = SystemClock.now()
        upload = Upload(at: now)
        awaitUpload(now: now)
        outlet?.bodyWanted()
        if parser.expectsContinue {
            outlet?.send(interim: Self.goOnAndSend)
        }
    }

    /// More of it must come in time.
    func awaitUpload(now: Instant) {
        deadline =
            upload?.deadline(settings, isDraining: isDraining, now: now) ?? deadline
    }

    /// The origin takes what comes of the request's body.
    var takesUpload: Bool { upload?.fetch?.isFull == false }

    /// A piece of the request's body came.
    func uploadArrived(_ piece: ByteBuffer, now: Instant) {
        guard let fetch = upload?.fetch else { return }
        upload?.arrived(piece.readableBytes)
        fetch.send(piece)
        if upload?.fetch?.isFull == true { upload?.held(at: now) }
        awaitUpload(now: now)
    }

    /// The request's body is whole.
    func uploadEnded(_ trailers: Trailers, now: Instant) {
        guard let fetch = upload?.fetch else { return }
        upload = nil
        deadline = now + settings.waitTimeout
        fetch.endBody(trailers)
    }

    /// What came is no body.
    func uploadRefused(_ problem: Problem) {
        hall.counters.add(.requestsMalformed)
        if case .head? = waiting?.stage { fail(with: problem) } else { breakOff() }
    }

    /// The origin takes more of the body.
    func uploadGoesOn(for fetch: OriginSource) {
        guard upload?.fetch === fetch else { return }
        let now = SystemClock.now()
        upload?.goesOn(at: now)
        awaitUpload(now: now)
        outlet?.bodyGoesOn()
    }

    /// The answer is over before the request's body is: nothing more of the connection can be read
    /// as a request.
    func abandonUpload() {
        guard let left = upload else { return }
        upload = nil
        left.fetch?.driver.cancel()
        closesAfterAnswer = true
    }
}

extension Door {
    /// Passes an interim answer on to the client whose request caused `run`.
    func relay(interim head: [UInt8], for run: FillRun) {
        guard let waiting, waiting.run === run, case .head = waiting.stage,
            !waiting.request.isHTTP10
        else { return }
        outlet?.send(interim: ByteBuffer(bytes: head))
        outlet?.flush()
    }
}
