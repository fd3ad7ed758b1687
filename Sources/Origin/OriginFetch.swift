package import Ground
package import HTTPRules
package import NIOCore
import Wire

/// Who is told what an origin answers; called on the client's loop, never before `fetch` returned.
///
/// Exactly one of ``originEnded(delimitedByClose:)`` and ``originFailed(_:)`` is called, as the
/// last call, unless the fetch is cancelled: then nothing more is called. Every method may pause,
/// resume or cancel the fetch.
package protocol OriginFetchDelegate: AnyObject {
    /// The final head arrived.
    ///
    /// - Parameters:
    ///   - head: the answer's head.
    ///   - bodyLength: the body's length in bytes; nil if only its end will tell.
    ///   - requestedAt: when the request was written: the `request_time` of RFC 9111 §4.2.3.
    ///   - answeredAt: when the head was whole: the `response_time` of RFC 9111 §4.2.3.
    func originAnswered(
        _ head: AnswerHead, bodyLength: UInt64?, requestedAt: Instant, answeredAt: Instant)
    /// A piece of the body, never empty; it holds on to at most twice its size of memory.
    func originSent(_ body: ByteBuffer)
    /// The answer is whole; `delimitedByClose` if only the connection's orderly end says so.
    func originEnded(delimitedByClose: Bool)
    /// There will be no answer, or no more of it; what came is not the whole.
    func originFailed(_ failure: OriginFailure)
}

/// One fetch of an ``OriginClient``; used only on the client's loop.
///
/// Invariants: `delegate` is nil once the fetch is finished. It has a `connection` from the moment
/// an attempt begins or an idle one is taken, until it finished or the attempt failed; that
/// connection's `fetch` is this one.
package final class OriginFetch {
    let number: UInt64
    let request: OriginFetchRequest
    private let client: OriginClient
    private var delegate: (any OriginFetchDelegate)?
    private var machine: FetchMachine
    private var connection: OriginConnection?
    private var timer: Scheduled<Void>?
    private var timerDue = Instant.distantFuture
    private var requestedAt = Instant.zero
    private var isReusable = false

    /// True between ``pause()`` and ``resume()``.
    package private(set) var isPaused = false

    init(
        number: UInt64, _ request: OriginFetchRequest, to delegate: any OriginFetchDelegate,
        client: OriginClient
    ) {
        self.number = number
        self.request = request
        self.client = client
        self.delegate = delegate
        machine = FetchMachine(
            origin: request.origin, settings: client.settings, now: client.now())
    }

    /// Nothing more is read from the origin until ``resume()``.
    ///
    /// At most one read that is under way is still handed over. If the origin closes the connection
    /// meanwhile, what the kernel holds of the body is taken from it and kept here.
    package func pause() {
        client.loop.assertInEventLoop()
        guard !isPaused, !machine.isFinished else { return }
        isPaused = true
        machine.paused()
        armTimer()
    }

    /// Reading goes on, with what was kept first.
    package func resume() {
        client.loop.assertInEventLoop()
        guard isPaused, !machine.isFinished else { return }
        isPaused = false
        machine.resumed(now: client.now())
        armTimer()
        connection?.advance()
    }

    /// The delegate is called no more and let go; the connection is closed.
    package func cancel() {
        client.loop.assertInEventLoop()
        guard !machine.isFinished else { return }
        machine.cancelled()
        leave(closing: true)
    }
}

// MARK: - Events

extension OriginFetch {
    func start() {
        guard !machine.isFinished else { return }
        if let failure = client.refusal(of: request) {
            return perform(machine.refused(failure))
        }
        if let connection = client.takeIdle(to: request.origin) {
            use(connection)
            return perform(machine.connectionReused(now: client.now()))
        }
        perform(machine.noConnectionIdle(now: client.now()))
    }

    func shutDown() {
        perform(machine.refused(.shutDown))
    }

    func attemptSucceeded(_ attempt: OriginConnection, remote: IPAddress?) {
        guard attempt === connection else { return }
        perform(
            machine.connected(
                to: remote, addressGuard: client.addressGuard, now: client.now()))
    }

    func attemptFailed(_ attempt: OriginConnection, reason: String) {
        guard attempt === connection else { return }
        detach()
        perform(machine.connectFailed(reason: reason, now: client.now()))
    }

    func bytesArrived(_ count: Int) {
        machine.bytesArrived(count, now: client.now())
    }

    /// What the connection's reader found in bytes for this fetch; `isReusable` is told with the
    /// end.
    func found(_ step: AnswerStep, isReusable: Bool) {
        switch step {
        case .needsMore: break
        case .interim: perform(machine.interimHeadArrived())
        case .head(let head): headArrived(head)
        case .body(let piece):
            machine.bodyArrived(piece.readableBytes)
            delegate?.originSent(piece)
        case .end:
            self.isReusable = isReusable
            perform(machine.bodyEnded())
        case .refused(let failure): perform(machine.answerRefused(failure))
        }
    }

    func inputClosed(orderly: Bool) {
        perform(machine.inputClosed(orderly: orderly, now: client.now()))
    }

    private func headArrived(_ head: ResponseHead) {
        let now = client.now()
        machine.headArrived(head.framing, now: now)
        armTimer()
        let length: UInt64? =
            switch head.framing {
            case .none: 0
            case .length(let length): length
            case .chunked, .untilClose: nil
            }
        delegate?.originAnswered(
            head.answer, bodyLength: length, requestedAt: requestedAt, answeredAt: now)
    }
}

// MARK: - Effects

extension OriginFetch {
    private func perform(_ effect: FetchEffect) {
        switch effect {
        case .wait: armTimer()
        case .resolve:
            detach()?.close()
            armTimer()
            client.resolve(for: self)
        case .connect(let address):
            detach()?.close()
            armTimer()
            connect(to: address)
        case .sendRequest:
            requestedAt = client.now()
            armTimer()
            connection?.send(request.bytes)
        case .finish(let delimitedByClose):
            leave(closing: !isReusable)?.originEnded(delimitedByClose: delimitedByClose)
        case .fail(let failure):
            leave(closing: true)?.originFailed(failure)
        }
    }

    func resolved(_ result: Result<[IPAddress], ResolveFailure>) {
        switch result {
        case .success(let addresses):
            perform(
                machine.resolved(
                    addresses, addressGuard: client.addressGuard, now: client.now()))
        case .failure(let failure): perform(machine.resolveFailed(failure))
        }
    }

    func lookupsExhausted() {
        perform(machine.refused(.overloaded(.lookups)))
    }

    private func connect(to address: IPAddress) {
        guard let attempt = client.beginConnecting(for: request.origin) else {
            return perform(machine.refused(.overloaded(.connections)))
        }
        use(attempt)
        client.connect(attempt, to: address)
    }

    private func use(_ connection: OriginConnection) {
        self.connection = connection
        connection.fetch = self
    }

    @discardableResult
    private func detach() -> OriginConnection? {
        guard let connection else { return nil }
        connection.fetch = nil
        self.connection = nil
        return connection
    }

    /// Lets go of everything; returns the delegate for its last call.
    @discardableResult
    private func leave(closing: Bool) -> (any OriginFetchDelegate)? {
        timer?.cancel()
        timer = nil
        client.fetchLeft(self)
        if let connection = detach() {
            if closing {
                connection.close()
            } else {
                client.release(connection)
            }
        }
        defer { delegate = nil }
        return delegate
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
