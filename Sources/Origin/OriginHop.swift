import Ground
import HTTPRules
import NIOCore
import Wire

/// One question of a fetch to one origin, and its answer; a redirect makes another.
///
/// Invariants: it is known to its client until it is finished. It has a `carrier` from the moment
/// its request is written; before, there may be `attempts`. `holdsPlace` is true while the gate has
/// counted a connection for it that has not begun.
final class OriginHop {
    let number: UInt64
    let request: OriginFetchRequest
    let client: OriginClient
    /// Holds the hop; let go of once the hop is finished.
    private var fetch: OriginFetch?
    var machine: FetchMachine
    var carrier: (any OriginCarrier)?
    /// Where its connection leads; nil if only a proxy knows.
    var address: IPAddress?
    /// Its connection may carry others too.
    var isSharing = false
    var attempts: [Int: OriginConnection] = [:]
    var holdsPlace = false
    var isQueued = false
    var isAdmitted = false
    private var isAnswered = false
    private var timer: Scheduled<Void>?
    private var timerDue = Instant.distantFuture
    private var requestedAt = Instant.zero
    private var isReusable = false
    private var outgoing: OutgoingBody
    /// Something is being given to the connection; it is not asked for more meanwhile.
    private var isSending = false

    /// Another protocol is spoken, both ways.
    private var isSwitched = false

    private(set) var isPaused = false

    init(
        number: UInt64, _ request: OriginFetchRequest, of fetch: OriginFetch,
        client: OriginClient, totalDeadline: Instant
    ) {
        self.number = number
        self.request = request
        self.fetch = fetch
        self.client = client
        outgoing = OutgoingBody(request.body)
        var settings = client.settings
        settings.bodyBytesMax = request.bodyBytesMax ?? settings.bodyBytesMax
        settings.totalLimit = request.totalLimit ?? settings.totalLimit
        machine = FetchMachine(
            origin: request.origin, settings: settings, totalDeadline: totalDeadline,
            hasBody: !request.body.isEmpty, isSafeToRetry: request.isSafeToRetry)
    }

    var isFinished: Bool { machine.isFinished }

    func pause() {
        guard !isPaused, !machine.isFinished else { return }
        isPaused = true
        machine.paused()
        armTimer()
    }

    func resume() {
        guard isPaused, !machine.isFinished else { return }
        isPaused = false
        machine.resumed(now: client.now())
        armTimer()
        carrier?.advance()
    }

    func waiveRate() {
        machine.rateWaived()
    }

    /// Nothing more is told; the connection is closed.
    func cancel() {
        guard !machine.isFinished else { return }
        machine.cancelled()
        leave(closing: true, isAnswered ? .succeeded : .neutral)
    }
}

// MARK: - Events

extension OriginHop {
    func shutDown() {
        perform(machine.refused(.shutDown))
    }

    func bytesArrived(_ count: Int) {
        machine.bytesArrived(count, now: client.now())
    }

    /// What the connection's reader found in bytes for this hop; `isReusable` is told with the end.
    func found(_ step: AnswerStep, isReusable: Bool) {
        switch step {
        case .needsMore: break
        case .interim(let head):
            let effect = machine.interimHeadArrived(bytes: head.bytes.count)
            if case .fail = effect { return perform(effect) }
            fetch?.hopInterim(head)
        case .head(let head): headArrived(head)
        case .body(let piece):
            let effect = machine.bodyArrived(piece.readableBytes)
            if case .fail = effect { return perform(effect) }
            fetch?.hopSent(piece)
        case .trailers(let trailers): fetch?.hopTrailers(trailers)
        case .end:
            self.isReusable = isReusable && outgoing.isWhole
            perform(machine.bodyEnded())
        case .refused(let failure): perform(machine.answerRefused(failure))
        }
    }

    func inputClosed(_ end: InputEnd) {
        perform(machine.inputClosed(end, now: client.now()))
    }

    /// The origin has not acted on the request.
    func streamRefused() {
        perform(machine.streamRefused(now: client.now()))
    }

    var now: Instant { client.now() }

    /// Runs `task` soon, and not within the present call.
    func later(_ task: @escaping () -> Void) {
        client.loop.assumeIsolated().execute(task)
    }

    private func headArrived(_ head: ResponseHead) {
        let now = client.now()
        isAnswered = true
        client.exchange.answered(request.origin)
        let effect = machine.headArrived(head.framing, now: now)
        if case .fail = effect { return perform(effect) }
        // A refusal; the origin is not made to read what it does not want (RFC 9112 §9.5).
        if head.answer.status >= 400, outgoing.isOpen {
            outgoing.stop()
            machine.bodyMoved(.whole, now: now)
            // Whoever holds the rest back need not.
            fetch?.hopTakesMore()
        }
        if head.answer.status == 101 { switchProtocol(now) }
        armTimer()
        let length: UInt64? =
            switch head.framing {
            case .none: 0
            case .length(let length): length
            case .chunked, .untilClose: nil
            }
        fetch?.hopAnswered(
            head.answer, bodyLength: length, requestedAt: requestedAt, answeredAt: now)
    }

    /// From now on bytes go both ways, none of which is owed: whoever asked says how long the
    /// connection may rest.
    private func switchProtocol(_ now: Instant) {
        isSwitched = true
        outgoing = OutgoingBody(.switched)
        machine.rateWaived()
        machine.bodyMoved(.waitsForCaller, now: now)
    }
}

// MARK: - The request's body

extension OriginHop {
    var takesMore: Bool { wantsBody && carrier?.takesMore == true }
    var wantsBody: Bool { !machine.isFinished && outgoing.isOpen }

    func send(body piece: ByteBuffer) {
        guard wantsBody else { return }
        outgoing.add(piece)
        passBody()
    }

    func endBody(_ trailers: Trailers) {
        guard wantsBody else { return }
        outgoing.end(trailers)
        passBody()
        if isSwitched, carrier?.isWritten == true { perform(machine.bodyEnded()) }
    }

    /// What is given before there is a connection waits for it.
    private func passBody() {
        guard let carrier else { return }
        pass { carrier.write($0) }
    }

    private func pass(_ write: (OutgoingParts) -> Void) {
        let wasSending = isSending
        isSending = true
        defer { isSending = wasSending }
        let parts = outgoing.take()
        if !parts.isEmpty { machine.bodyMoved(.beingWritten, now: client.now()) }
        write(parts)
        armTimer()
    }

    /// All that was given to the connection is with the kernel.
    func requestWritten() {
        guard isSwitched || !request.body.isEmpty, !machine.isFinished else { return }
        // One side has ended, and so does the other.
        if isSwitched, outgoing.isWhole { return perform(machine.bodyEnded()) }
        machine.bodyMoved(outgoing.isOpen ? .waitsForCaller : .whole, now: client.now())
        armTimer()
    }

    /// The connection takes more again.
    func connectionTakesMore() {
        guard !isSending, takesMore else { return }
        fetch?.hopTakesMore()
    }
}

// MARK: - Effects

extension OriginHop {
    var ticket: OriginGate.Ticket {
        OriginGate.Ticket(loop: client.number, fetch: number)
    }

    func perform(_ effect: FetchEffect) {
        switch effect {
        case .wait: armTimer()
        case .resolve:
            giveUpConnection()
            armTimer()
            client.resolve(for: self)
        case .startTLS(let attempt):
            armTimer()
            if let connection = attempts[attempt] { client.secure(connection) }
        case .startOver: startOver()
        case .connect(let target, let attempt, let givenUp):
            if let givenUp { attempts.removeValue(forKey: givenUp)?.close() }
            armTimer()
            connect(to: target, attempt)
        case .sendRequest(let attempt):
            let won = attempt.flatMap { attempts.removeValue(forKey: $0) }
            if let won { use(won) }
            giveUpAttempts()
            fetch?.hopReached(request.origin, at: address)
            guard !machine.isFinished else { return }
            requestedAt = client.now()
            armTimer()
            pass { carrier?.send(request, $0) }
            connectionTakesMore()
            if let won, request.upgrade.isEmpty { client.opened(won, by: self) }
        case .finish(let delimitedByClose):
            leave(closing: !isReusable, .succeeded)?
                .hopEnded(delimitedByClose: delimitedByClose)
        case .fail(let failure):
            switch failure {
            case .connectFailed: client.distrust(request.origin)
            case .timedOut(.awaitingHead, limit: _), .timedOut(.readingBody, limit: _):
                carrier?.foundSilent()
            case .tls(let origin, let failure): client.exchange.failed(origin, failure)
            default: break
            }
            leave(closing: true, outcome(failure), failure)?.hopFailed(failure)
        }
    }

    /// What a failure says of the origin: before the request is sent, that of a connection.
    private func outcome(_ failure: OriginFailure) -> OriginGate.Outcome {
        // What is said in another protocol, and how that ends, is none of its answers.
        guard failure.countsAgainstOrigin, !isSwitched else { return .neutral }
        return .failed(carrier == nil ? .connection : .answer(path: request.pathHash))
    }

    /// Lets go of everything; returns the fetch for its last call.
    @discardableResult
    private func leave(
        closing: Bool, _ outcome: OriginGate.Outcome, _ failure: OriginFailure? = nil
    ) -> OriginFetch? {
        timer?.cancel()
        timer = nil
        client.hopLeft(self, failure)
        // Before its connection is there for another of the same client.
        if isAdmitted {
            client.exchange.ended(
                ticket, request.origin, outcome, now: client.now(),
                releases: !closing && !isSharing)
        }
        giveUpAttempts()
        if isQueued { client.exchange.left(ticket, request.origin) }
        if holdsPlace { client.exchange.closed(request.origin) }
        isQueued = false
        holdsPlace = false
        if let carrier {
            self.carrier = nil
            carrier.leave(closing: closing)
        }
        defer { fetch = nil }
        return fetch
    }

    /// Keeps a timer that is due no later than the machine's deadline; one that comes early is
    /// armed again.
    private func armTimer() {
        let deadline = machine.deadline
        guard deadline != .distantFuture else { return }
        if timer != nil, timerDue <= deadline { return }
        timer?.cancel()
        timerDue = deadline
        timer = client.schedule(at: deadline) { [weak self] in
            guard let self else { return }
            timer = nil
            perform(machine.ticked(now: client.now()))
        }
    }
}
