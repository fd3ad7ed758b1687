import Ground
import HTTPRules
import NIOCore
import Wire

/// One question of a fetch to one origin, and its answer; a redirect makes another.
///
/// Invariants: it is known to its client until it is finished. It has a `connection` from the
/// moment its request is written; before, there may be `attempts`. `holdsPlace` is true while the
/// gate has counted a connection for it that has not begun.
final class OriginHop {
    let number: UInt64
    let request: OriginFetchRequest
    private let client: OriginClient
    /// Holds the hop; let go of once the hop is finished.
    private var fetch: OriginFetch?
    private var machine: FetchMachine
    private var connection: OriginConnection?
    private var attempts: [Int: OriginConnection] = [:]
    private var holdsPlace = false
    private var isQueued = false
    private var isAdmitted = false
    private var isAnswered = false
    private var timer: Scheduled<Void>?
    private var timerDue = Instant.distantFuture
    private var requestedAt = Instant.zero
    private var isReusable = false
    private var outgoing: OutgoingBody
    /// Something is being given to the connection; it is not asked for more meanwhile.
    private var isSending = false

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
        connection?.advance()
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
    func start() {
        guard !machine.isFinished else { return }
        if let failure = client.refusal(of: request) {
            return perform(machine.refused(failure))
        }
        let now = client.now()
        switch client.exchange.arrived(ticket, at: request.origin, now: now) {
        case .useIdle:
            isAdmitted = true
            if let connection = client.takeIdle(to: request.origin) {
                return reuse(connection)
            }
            client.exchange.opened(request.origin)
            holdsPlace = true
            perform(machine.placeGranted(now: now))
        case .open:
            isAdmitted = true
            holdsPlace = true
            perform(machine.placeGranted(now: now))
        case .wait:
            isAdmitted = true
            isQueued = true
            perform(machine.queued(now: now))
        case .refused(.queueFull):
            perform(machine.refused(.overloaded(.queue)))
        case .refused(.circuitOpen(let retryAfter)):
            perform(machine.refused(.circuitOpen(request.origin, retryAfter: retryAfter)))
        }
    }

    func shutDown() {
        perform(machine.refused(.shutDown))
    }

    /// The gate has a place for a connection.
    func placeGranted() {
        isQueued = false
        holdsPlace = true
        perform(machine.placeGranted(now: client.now()))
    }

    /// A connection of this loop became free for the fetch that waits.
    func handedOver(_ connection: OriginConnection) {
        isQueued = false
        reuse(connection)
    }

    func circuitOpened(retryAfter: Interval) {
        isQueued = false
        perform(machine.refused(.circuitOpen(request.origin, retryAfter: retryAfter)))
    }

    func attemptSucceeded(_ attempt: OriginConnection, remote: ConnectTarget?) {
        guard let number = attempts.first(where: { $0.value === attempt })?.key else { return }
        perform(
            machine.connected(
                number, to: remote, addressGuard: client.addressGuard(for: request.origin),
                now: client.now()))
    }

    /// `isOurs` if it failed for want of what this process may have.
    func attemptFailed(_ attempt: OriginConnection, reason: String, isOurs: Bool = false) {
        guard let number = attempts.first(where: { $0.value === attempt })?.key else { return }
        attempts[number] = nil
        attempt.hop = nil
        if isOurs, attempts.isEmpty {
            return perform(machine.refused(.overloaded(.descriptors)))
        }
        perform(machine.connectFailed(number, reason: reason, now: client.now()))
    }

    func bytesArrived(_ count: Int) {
        machine.bytesArrived(count, now: client.now())
    }

    /// What the connection's reader found in bytes for this hop; `isReusable` is told with the end.
    func found(_ step: AnswerStep, isReusable: Bool) {
        switch step {
        case .needsMore: break
        case .interim(let head):
            let effect = machine.interimHeadArrived()
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

    func inputClosed(orderly: Bool) {
        perform(machine.inputClosed(orderly: orderly, now: client.now()))
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
}

// MARK: - The request's body

extension OriginHop {
    var takesMore: Bool { wantsBody && connection?.takesMore == true }
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
    }

    /// What is given before there is a connection waits for it.
    private func passBody() {
        guard let connection else { return }
        pass { connection.write($0) }
    }

    private func pass(_ write: ([ByteBuffer]) -> Void) {
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
        guard !request.body.isEmpty, !machine.isFinished else { return }
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
    private var ticket: OriginGate.Ticket {
        OriginGate.Ticket(loop: client.number, fetch: number)
    }

    private func perform(_ effect: FetchEffect) {
        switch effect {
        case .wait: armTimer()
        case .resolve:
            giveUpConnection()
            armTimer()
            client.resolve(for: self)
        case .connect(let target, let attempt, let givenUp):
            if let givenUp { attempts.removeValue(forKey: givenUp)?.close() }
            armTimer()
            connect(to: target, attempt)
        case .sendRequest(let attempt):
            if let attempt, let won = attempts.removeValue(forKey: attempt) { use(won) }
            giveUpAttempts()
            requestedAt = client.now()
            armTimer()
            pass { connection?.send(request, $0) }
            connectionTakesMore()
        case .finish(let delimitedByClose):
            leave(closing: !isReusable, .succeeded)?
                .hopEnded(delimitedByClose: delimitedByClose)
        case .fail(let failure):
            if case .connectFailed = failure { client.distrust(request.origin) }
            leave(closing: true, failure.countsAgainstOrigin ? .failed : .neutral)?
                .hopFailed(failure)
        }
    }

    func resolved(_ result: Result<[IPAddress], ResolveFailure>) {
        switch result {
        case .success(let addresses):
            perform(
                machine.resolved(
                    addresses, addressGuard: client.addressGuard(for: request.origin),
                    now: client.now()))
        case .failure(let failure): perform(machine.resolveFailed(failure))
        }
    }

    func leftToProxy() {
        perform(machine.resolutionLeftToProxy(now: client.now()))
    }

    func lookupsExhausted() {
        perform(machine.refused(.overloaded(.lookups)))
    }

    private func connect(to target: ConnectTarget, _ number: Int) {
        if !holdsPlace { client.exchange.opened(request.origin) }
        holdsPlace = true
        guard let attempt = client.beginConnecting(for: request.origin) else {
            guard attempts.isEmpty else {
                client.exchange.closed(request.origin)
                holdsPlace = false
                return perform(
                    machine.connectFailed(
                        number, reason: "no further connection", now: client.now()))
            }
            return perform(machine.refused(.overloaded(.connections)))
        }
        holdsPlace = false
        attempts[number] = attempt
        attempt.hop = self
        client.connect(attempt, to: target)
    }

    private func reuse(_ connection: OriginConnection) {
        use(connection)
        perform(machine.connectionReused(now: client.now()))
    }

    private func use(_ connection: OriginConnection) {
        self.connection = connection
        connection.hop = self
    }

    private func giveUpAttempts() {
        let given = attempts.values
        attempts = [:]
        for attempt in given { attempt.close() }
    }

    /// The connection taken from the pool turned out closed; its place is kept for the next one.
    private func giveUpConnection() {
        guard let connection else { return }
        connection.hop = nil
        self.connection = nil
        connection.close()
        client.exchange.opened(request.origin)
        holdsPlace = true
    }

    /// Lets go of everything; returns the fetch for its last call.
    @discardableResult
    private func leave(closing: Bool, _ outcome: OriginGate.Outcome) -> OriginFetch? {
        timer?.cancel()
        timer = nil
        client.hopLeft(self)
        giveUpAttempts()
        if isQueued { client.exchange.left(ticket, request.origin) }
        if holdsPlace { client.exchange.closed(request.origin) }
        isQueued = false
        holdsPlace = false
        if isAdmitted {
            client.exchange.ended(ticket, request.origin, outcome, now: client.now())
        }
        if let connection {
            connection.hop = nil
            self.connection = nil
            if closing { connection.close() } else { client.release(connection) }
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
