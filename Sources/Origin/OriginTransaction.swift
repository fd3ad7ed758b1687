import Ground
import HTTPRules
import NIOCore
import Wire

/// One request of a fetch to one origin, and its response; a redirect starts another transaction.
///
/// Invariants: the client lists the transaction until it is finished. It has a `transport` from the
/// moment its request is written; before, it may have `attempts`. `holdsSlot` is true while
/// admission control has counted a connection for it that has not been started.
final class OriginTransaction {
    let number: UInt64
    let request: OriginFetchRequest
    let client: OriginClient
    /// The fetch, which retains the transaction; released once the transaction is finished.
    private var fetch: OriginFetch?
    var stateMachine: TransactionStateMachine
    var transport: (any OriginTransport)?
    /// The peer's address; `nil` if only a proxy knows it.
    var address: IPAddress?
    /// True if the connection may carry other transactions too.
    var isConnectionShared = false
    /// Connections that are being opened, by the number of the attempt.
    var attempts: [Int: OriginConnection] = [:]
    /// True while a slot is counted for a connection that is not started.
    var holdsSlot = false
    /// True while the transaction waits for a slot in the queue of admission control.
    var isQueued = false
    /// True once admission control has admitted or queued the transaction, and must be told of its
    /// end.
    var isAdmitted = false
    /// The status of the final head; `nil` before it is received.
    private var status: UInt16?
    private var timer: Scheduled<Void>?
    private var timerDue = Instant.distantFuture
    /// When the request was written, the last time if it was sent again.
    private var requestedAt = Instant.zero
    /// True if the connection can carry another request after the complete response.
    private var isReusable = false
    private var outgoing: OutgoingBody
    /// True while a part of the body is being written; no notification of writability is sent
    /// meanwhile.
    private var isSending = false

    /// True once another protocol is spoken, in both directions.
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
        stateMachine = TransactionStateMachine(
            origin: request.origin, settings: settings, totalDeadline: totalDeadline,
            hasBody: !request.body.isEmpty, isSafeToRetry: request.isSafeToRetry)
    }

    var isFinished: Bool { stateMachine.isFinished }

    /// Stops the delivery of the response, and suspends the limits on the origin's silence.
    func pause() {
        guard !isPaused, !stateMachine.isFinished else { return }
        isPaused = true
        stateMachine.paused()
        armTimer()
    }

    /// Restarts the limits on the origin's silence, and delivers held data.
    func resume() {
        guard isPaused, !stateMachine.isFinished else { return }
        isPaused = false
        stateMachine.resumed(now: client.now())
        armTimer()
        transport?.deliverPending()
    }

    func waiveMinimumRate() {
        stateMachine.minimumRateWaived()
    }

    /// Ends the transaction without another callback, and closes its connection.
    func cancel() {
        guard !stateMachine.isFinished else { return }
        stateMachine.cancelled()
        finish(closing: true, status == nil ? .neutral : .succeeded, .abandoned)
    }
}

// MARK: - Events

extension OriginTransaction {
    /// Fails the transaction because the client shuts down.
    func shutDown() {
        perform(stateMachine.refused(.shuttingDown))
    }

    /// Records that a read brought bytes for the transaction, before they are parsed.
    func bytesReceived(_ count: Int) {
        stateMachine.bytesReceived(count, now: client.now())
    }

    /// Processes an event of the response; `isReusable`, used at its end, tells whether the
    /// connection can carry another.
    func responseEventReceived(_ step: ResponseEvent, isReusable: Bool) {
        switch step {
        case .needsMore: break
        case .interim(let head):
            let effect = stateMachine.interimResponseReceived(bytes: head.bytes.count)
            if case .fail = effect { return perform(effect) }
            fetch?.interimResponseReceived(head)
        case .head(let head): responseHeadReceived(head)
        case .body(let piece):
            let effect = stateMachine.bodyReceived(piece.readableBytes)
            if case .fail = effect { return perform(effect) }
            fetch?.bodyReceived(piece)
        case .trailers(let trailers): fetch?.trailersReceived(trailers)
        case .end:
            self.isReusable = isReusable && outgoing.isComplete
            perform(stateMachine.bodyEnded())
        case .refused(let failure): perform(stateMachine.responseRejected(failure))
        }
    }

    /// Processes the end of the connection's or stream's input, after all received data was
    /// delivered.
    func inputClosed(_ end: InputCloseReason) {
        perform(stateMachine.inputClosed(end, now: client.now()))
    }

    /// Sends the request again because the origin has not processed it; fails if it was sent again
    /// before, or if a part of its body was sent.
    func streamRefused() {
        perform(stateMachine.streamRefused(now: client.now()))
    }

    var now: Instant { client.now() }

    /// Runs `task` soon, but not within the present call.
    func schedule(_ task: @escaping () -> Void) {
        client.loop.assumeIsolated().execute(task)
    }

    /// Delivers the final head; after a refusal (status 400 or above) the rest of the request body
    /// is dropped, after a 101 both bodies carry the other protocol.
    private func responseHeadReceived(_ head: FramedResponseHead) {
        let now = client.now()
        status = head.head.status
        client.coordinator.responseReceived(request.origin)
        let effect = stateMachine.responseHeadReceived(head.framing, now: now)
        if case .fail = effect { return perform(effect) }
        // A refusal: the rest of the body is not sent, because the origin does not want it (RFC
        // 9112 §9.5).
        if head.head.status >= 400, outgoing.isOpen {
            outgoing.stop()
            stateMachine.requestBodyProgressed(.complete, now: now)
            // The caller need not hold back the rest.
            fetch?.becameWritable()
        }
        if head.head.status == 101 { switchProtocol(now) }
        armTimer()
        let length: UInt64? =
            switch head.framing {
            case .none: 0
            case .length(let length): length
            case .chunked, .untilClose: nil
            }
        fetch?.responseHeadReceived(
            head.head, bodyLength: length, requestedAt: requestedAt, respondedAt: now)
    }

    /// Switches to another protocol: bytes flow both ways and no response is due.
    ///
    /// The caller determines how long the connection may be idle.
    private func switchProtocol(_ now: Instant) {
        isSwitched = true
        outgoing = OutgoingBody(.upgraded)
        stateMachine.minimumRateWaived()
        stateMachine.requestBodyProgressed(.awaitingCaller, now: now)
    }
}

// MARK: - The request's body

extension OriginTransaction {
    /// True if the body is not complete and the transport accepts a piece of it now.
    var isWritable: Bool { acceptsBody && transport?.isWritable == true }
    /// True until the whole request body was supplied, or the rest is not needed.
    var acceptsBody: Bool { !stateMachine.isFinished && outgoing.isOpen }

    /// Writes or holds a piece of the request body; drops it unless ``acceptsBody``.
    func send(body piece: ByteBuffer) {
        guard acceptsBody else { return }
        outgoing.append(piece)
        sendQueuedBody()
    }

    /// Ends the request body; without effect unless ``acceptsBody``.
    ///
    /// After a protocol switch, this ends the transaction once everything is written.
    func endBody(_ trailers: Trailers) {
        guard acceptsBody else { return }
        outgoing.end(trailers)
        sendQueuedBody()
        if isSwitched, transport?.isFlushed == true { perform(stateMachine.bodyEnded()) }
    }

    /// Writes the queued body; before there is a connection, it stays queued.
    private func sendQueuedBody() {
        guard let transport else { return }
        sendQueuedBody { transport.write($0) }
    }

    /// Passes the queued body to `write`, and restarts the limit on the origin's silence if there
    /// is any.
    private func sendQueuedBody(_ write: (OutgoingBodyPart) -> Void) {
        let wasSending = isSending
        isSending = true
        defer { isSending = wasSending }
        let parts = outgoing.takePart()
        if !parts.isEmpty { stateMachine.requestBodyProgressed(.writing, now: client.now()) }
        write(parts)
        armTimer()
    }

    /// Reports that no written byte of a request with a body is pending: the origin's silence is
    /// limited from now on, unless the caller must supply more.
    ///
    /// After a protocol switch, the transaction ends if the caller has ended its side.
    func requestWritten() {
        guard isSwitched || !request.body.isEmpty, !stateMachine.isFinished else { return }
        // One side has ended, which ends the other.
        if isSwitched, outgoing.isComplete { return perform(stateMachine.bodyEnded()) }
        stateMachine.requestBodyProgressed(
            outgoing.isOpen ? .awaitingCaller : .complete, now: client.now())
        armTimer()
    }

    /// Notifies the fetch that it may send more, unless the body has ended or a part of it is just
    /// being written.
    func connectionBecameWritable() {
        guard !isSending, isWritable else { return }
        fetch?.becameWritable()
    }
}

// MARK: - Effects

extension OriginTransaction {
    var id: OriginAdmission.TransactionID {
        OriginAdmission.TransactionID(loop: client.loopNumber, transaction: number)
    }

    /// Carries out an effect of the state machine.
    func perform(_ effect: TransactionEffect) {
        switch effect {
        case .wait: armTimer()
        case .resolve:
            abandonConnection()
            armTimer()
            client.resolve(for: self)
        case .startTLS(let attempt):
            armTimer()
            if let connection = attempts[attempt] { client.startTLS(connection) }
        case .restart: restart()
        case .connect(let target, let attempt, let givenUp):
            if let givenUp { attempts.removeValue(forKey: givenUp)?.close() }
            armTimer()
            connect(to: target, attempt)
        case .sendRequest(let attempt):
            let won = attempt.flatMap { attempts.removeValue(forKey: $0) }
            if let won { use(won) }
            cancelAttempts()
            fetch?.requestStarting(request.origin, at: address)
            guard !stateMachine.isFinished else { return }
            requestedAt = client.now()
            armTimer()
            sendQueuedBody { transport?.send(request, $0) }
            connectionBecameWritable()
            if let won, request.upgrade.isEmpty { client.connectionOpened(won, by: self) }
        case .finish(let delimitedByClose):
            finish(closing: !isReusable, .succeeded, .complete)?
                .transactionEnded(delimitedByClose: delimitedByClose)
        case .fail(let failure):
            switch failure {
            case .connectFailed: client.expireAddresses(request.origin)
            case .timedOut(.awaitingHead, limit: _), .timedOut(.readingBody, limit: _):
                transport?.responseTimedOut()
            case .tls(let origin, let failure): client.coordinator.tlsFailed(origin, failure)
            default: break
            }
            finish(closing: true, admissionOutcome(failure), .failed(failure))?
                .transactionFailed(failure)
        }
    }

    /// Returns what a failure shows about the origin; before the request is sent, a failure of the
    /// connection.
    private func admissionOutcome(_ failure: OriginFailure) -> OriginAdmission.Outcome {
        // How a switched protocol ends is not a response of the origin.
        guard failure.isOriginFailure, !isSwitched else { return .neutral }
        return .failed(transport == nil ? .connection : .response(path: request.pathHash))
    }

    /// Releases all resources and reports `outcome` to admission control; returns the fetch for its
    /// last callback.
    ///
    /// With `closing`, the connection is closed or the stream reset; otherwise it can carry another
    /// request.
    @discardableResult
    private func finish(
        closing: Bool, _ outcome: OriginAdmission.Outcome, _ ending: OriginTraffic.Ending
    ) -> OriginFetch? {
        timer?.cancel()
        timer = nil
        var failure: OriginFailure?
        if case .failed(let reason) = ending { failure = reason }
        client.transactionEnded(self, failure)
        // Before its connection becomes available to another fetch of the same client.
        let (now, status, bodyBytes) = (client.now(), status, stateMachine.bodyBytes)
        if isAdmitted {
            client.coordinator.transactionEnded(
                id, request.origin, outcome, now: now, releases: !closing && !isConnectionShared
            ) { [isSwitched] in
                // How a switched protocol ends is not a response of the origin.
                let ending = isSwitched ? .abandoned : ending
                $0.record(ending, status: status, bodyBytes: bodyBytes, now: now)
            }
        } else if let failure, !failure.isAnonymous {
            client.coordinator.transactionRefused(request.origin) { $0.record(ending, now: now) }
        }
        cancelAttempts()
        if isQueued { client.coordinator.requestCancelled(id, request.origin) }
        if holdsSlot { client.coordinator.connectionClosed(request.origin) }
        isQueued = false
        holdsSlot = false
        if let transport {
            self.transport = nil
            transport.release(closing: closing)
        }
        defer { fetch = nil }
        return fetch
    }

    /// Keeps a timer that is due no later than the machine's deadline; one that fires early is
    /// armed again.
    private func armTimer() {
        let deadline = stateMachine.deadline
        guard deadline != .distantFuture else { return }
        if timer != nil, timerDue <= deadline { return }
        timer?.cancel()
        timerDue = deadline
        timer = client.loop.schedule(at: deadline, now: client.now()) { [weak self] in
            guard let self else { return }
            timer = nil
            perform(stateMachine.ticked(now: client.now()))
        }
    }
}
