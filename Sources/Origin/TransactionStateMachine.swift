package import Ground
package import Wire

/// The state machine of one transaction: addresses, time limits, the single retry, and the meaning
/// of the end of input.
///
/// An event returns at most one effect, which the caller performs. An event that no longer concerns
/// the state, and every one once finished, returns `.wait`; so exactly one of `.finish` and `.fail`
/// is returned, and none after ``cancelled()``. A value without I/O; times are of the boot clock.
package struct TransactionStateMachine: Sendable {
    enum State: Hashable, Sendable {
        /// No connection is requested, or no longer. → queued, resolving, awaitingHead, finished
        case created
        /// Waits for a slot or a shared connection. → resolving, awaitingHead, finished
        case queued
        /// The resolver was queried. → connecting, finished
        case resolving
        /// Attempts of `race` are in progress, including TLS handshakes. → awaitingHead, finished
        case connecting
        /// The request was sent. → readingBody, resolving or created (the retry), finished
        case awaitingHead
        /// The final head arrived. → finished
        case readingBody
        /// Ended, failed or cancelled.
        case finished
    }

    let origin: OriginAuthority
    let settings: OriginSettings
    var state = State.created
    var race = HappyEyeballs([])
    /// True if an earlier fetch used the connection, and it has received no byte for this one.
    var mayBeStale = false
    /// True if the connection carries other fetches too.
    var isShared = false
    /// True if the request may be sent again.
    var isRepeatable: Bool
    /// True if a part of the request body has been sent.
    private var isBodySent = false
    let hasBody: Bool
    var requestProgress = RequestBodyProgress.complete
    /// True once the request was sent again.
    var hasRetried = false
    private var isPaused = false
    /// Bytes received since the request was sent, while awaiting the head.
    var headBytes = 0
    var interimResponses = 0
    var interimBytes = 0
    private var framing = BodyFraming.none
    private(set) var bodyBytes: UInt64 = 0
    /// Body bytes received in the window that ends at `rateDeadline`.
    private var rateBytes = 0
    private var isMinimumRateWaived = false
    /// The end of the window in which a minimum of body bytes is due; the distant future without a
    /// minimum.
    private var rateDeadline = Instant.distantFuture
    /// The end of the state's own limit; ignored while paused.
    var stateDeadline = Instant.distantFuture
    /// The latest end of the look-up, all attempts and handshakes together.
    var connectDeadline = Instant.distantFuture
    let totalDeadline: Instant

    /// Creates the machine of a request to `origin`.
    ///
    /// - Parameters:
    ///   - origin: the origin.
    ///   - settings: the limits.
    ///   - totalDeadline: the latest end of the fetch that the transaction belongs to.
    ///   - hasBody: true if a body follows the request head.
    ///   - isSafeToRetry: true if the request may be sent twice, as long as no part of a body was
    ///     sent.
    package init(
        origin: OriginAuthority, settings: OriginSettings, totalDeadline: Instant,
        hasBody: Bool = false, isSafeToRetry: Bool = true
    ) {
        self.origin = origin
        self.settings = settings
        self.totalDeadline = totalDeadline
        self.hasBody = hasBody
        isRepeatable = isSafeToRetry
    }

    /// True once the transaction has ended, failed or been cancelled.
    package var isFinished: Bool { state == .finished }

    /// True while no connection is in use or being opened for the transaction.
    package var needsConnection: Bool { state == .created || state == .queued }

    /// The instant at which ``ticked(now:)`` is due; the distant future once finished.
    package var deadline: Instant {
        guard state != .finished else { return .distantFuture }
        switch state {
        case .awaitingHead, .readingBody:
            let isWaitedFor = !isPaused && requestProgress != .awaitingCaller
            return isWaitedFor ? min(stateDeadline, rateDeadline, totalDeadline) : totalDeadline
        case .connecting: return min(race.deadline, connectDeadline)
        default: return min(stateDeadline, totalDeadline)
        }
    }
}

/// The progress of writing a request.
package enum RequestBodyProgress: Hashable, Sendable {
    /// Everything supplied has been written and the caller must supply more: the limits on the
    /// origin's silence do not run. → writing, complete
    case awaitingCaller
    /// A part is not yet written. → writing, awaitingCaller, complete
    case writing
    /// The request is written in full, or the origin does not want the rest.
    case complete
}

/// How a connection's input ended, as far as one transaction is concerned.
package enum InputCloseReason: Hashable, Sendable {
    /// In order: with FIN, over TLS with close_notify.
    case orderly
    /// By a reset.
    case reset
    /// Over TLS without close_notify.
    case truncated
    /// By a TLS failure.
    case tls(TLSFailure)
    /// By an HTTP/2 error that the origin sent or this node detected.
    case http2(HTTP2ErrorCode, byOrigin: Bool)
}

/// The action that the caller performs next for a transaction.
package enum TransactionEffect: Hashable, Sendable {
    /// Nothing; wait for the next event.
    case wait
    /// Resolve the origin's name.
    case resolve
    /// Connect to this target, and cancel the attempt `cancelling` if it is not `nil`.
    case connect(ConnectTarget, attempt: Int, cancelling: Int?)
    /// Start the TLS handshake on this attempt's connection.
    case startTLS(attempt: Int)
    /// Request another connection, as at the start: the origin has not processed the request.
    case restart
    /// Cancel every other attempt and write the request on this one's connection, or on the pooled
    /// connection if it is `nil`.
    case sendRequest(attempt: Int?)
    /// Everything arrived; `delimitedByClose` if only the orderly close of the connection shows it.
    case finish(delimitedByClose: Bool)
    /// Close the connection or cancel the attempts, and report the failure.
    case fail(OriginFailure)
}

// MARK: - The request's body

extension TransactionStateMachine {
    /// Records the progress of the request body, once the request is sent; without effect before.
    ///
    /// This restarts the limit on the origin's silence, which is suspended while the caller has to
    /// supply more. Once a part is being written, the request is not sent again.
    package mutating func requestBodyProgressed(_ progress: RequestBodyProgress, now: Instant) {
        switch state {
        case .awaitingHead: stateDeadline = now + settings.headLimit
        case .readingBody: stateDeadline = now + settings.idleLimit
        case .created, .queued, .resolving, .connecting, .finished: return
        }
        requestProgress = progress
        if progress == .writing {
            isRepeatable = false
            isBodySent = true
        }
    }
}

// MARK: - The response

extension TransactionStateMachine {
    /// Records that a read brought bytes: the connection is not stale, the limit on silence within
    /// a body restarts, and the bytes count towards its minimum rate.
    package mutating func bytesReceived(_ count: Int, now: Instant) {
        switch state {
        case .awaitingHead:
            headBytes += count
            mayBeStale = false
        case .readingBody:
            stateDeadline = now + settings.idleLimit
            rateBytes += count
        case .created, .queued, .resolving, .connecting, .finished:
            break
        }
    }

    /// Exempts the response from the minimum rate, for a stream of events that arrive as they
    /// happen.
    package mutating func minimumRateWaived() {
        isMinimumRateWaived = true
        rateDeadline = .distantFuture
    }

    /// Starts the window in which a minimum of body bytes is due.
    private mutating func beginRateWindow(now: Instant) {
        guard settings.bodyRateMin > 0, !isMinimumRateWaived else { return }
        rateBytes = 0
        rateDeadline = now + settings.idleLimit
    }

    /// Minimum number of body bytes within a window.
    private var rateBytesMin: Double {
        Double(settings.bodyRateMin) * Double(settings.idleLimit.nanoseconds) / 1e9
    }

    /// Records an interim (1xx) head; another one follows (RFC 9110 §15.2).
    ///
    /// All of them together may be as large as one head: their number alone does not bound what is
    /// buffered for a client that does not read.
    package mutating func interimResponseReceived(bytes: Int) -> TransactionEffect {
        guard state == .awaitingHead else { return .wait }
        interimResponses += 1
        interimBytes += bytes
        if interimBytes > settings.headBytesMax {
            return fail(.headTooLarge(bytesMax: settings.headBytesMax))
        }
        guard interimResponses > settings.interimResponsesMax else { return .wait }
        return fail(.tooManyInterimResponses(max: settings.interimResponsesMax))
    }

    /// Records the final head and starts the limits on the body; fails if its Content-Length
    /// exceeds the maximum size.
    package mutating func responseHeadReceived(_ framing: BodyFraming, now: Instant)
        -> TransactionEffect
    {
        guard state == .awaitingHead else { return .wait }
        if case .length(let length) = framing, length > settings.bodyBytesMax {
            return fail(.bodyTooLarge(bytesMax: settings.bodyBytesMax))
        }
        self.framing = framing
        state = .readingBody
        stateDeadline = now + settings.idleLimit
        beginRateWindow(now: now)
        return .wait
    }

    /// Counts body bytes, without chunk framing; fails if they exceed the maximum size.
    package mutating func bodyReceived(_ count: Int) -> TransactionEffect {
        bodyBytes += UInt64(count)
        guard bodyBytes > settings.bodyBytesMax else { return .wait }
        return fail(.bodyTooLarge(bytesMax: settings.bodyBytesMax))
    }

    /// Finishes the transaction because the framing shows that the body is complete.
    package mutating func bodyEnded() -> TransactionEffect {
        guard state == .readingBody else { return .wait }
        state = .finished
        return .finish(delimitedByClose: false)
    }

    /// Fails the transaction because the bytes are not a valid response.
    package mutating func responseRejected(_ failure: OriginFailure) -> TransactionEffect {
        fail(failure)
    }

    /// Processes the end of the connection's or stream's input; all earlier bytes have been
    /// reported.
    ///
    /// It completes a body that only an orderly close delimits. On a stale connection the request
    /// is sent again, once, if it is safe to repeat. Otherwise the transaction fails.
    package mutating func inputClosed(_ end: InputCloseReason, now: Instant) -> TransactionEffect {
        switch state {
        case .awaitingHead where mayBeStale && !hasRetried && isRepeatable:
            // The origin closed an idle connection just as it was taken, and the request is safe to
            // send again (RFC 9112 §9.3.1).
            hasRetried = true
            return isShared ? restart() : openNewConnection(now: now)
        case .awaitingHead:
            return fail(closeFailure(of: end) ?? .closedBeforeResponse(bytesReceived: headBytes))
        case .readingBody: return bodyInputClosed(end)
        case .created, .queued, .resolving, .connecting, .finished: return .wait
        }
    }

    /// Retries a request that the origin refused on HTTP/2 without processing it (RFC 9113 §8.7).
    ///
    /// Once, with any method, unless a part of the body was sent.
    package mutating func streamRefused(now: Instant) -> TransactionEffect {
        guard state == .awaitingHead, !hasRetried, !isBodySent else {
            return inputClosed(.http2(.refusedStream, byOrigin: true), now: now)
        }
        hasRetried = true
        return restart()
    }

    /// Starts over with the search for a connection.
    private mutating func restart() -> TransactionEffect {
        state = .created
        stateDeadline = .distantFuture
        return .restart
    }

    /// Returns the protocol failure that ended the connection; `nil` if it was merely closed.
    private func closeFailure(of end: InputCloseReason) -> OriginFailure? {
        switch end {
        case .orderly, .reset, .truncated: nil
        case .tls(let failure): .tls(origin, failure)
        case .http2(let code, let byOrigin): .http2(code, byOrigin: byOrigin)
        }
    }

    /// Completes a body that an orderly close delimits; otherwise fails, because the body is
    /// incomplete.
    private mutating func bodyInputClosed(_ end: InputCloseReason) -> TransactionEffect {
        if let failure = closeFailure(of: end) { return fail(failure) }
        switch framing {
        case .untilClose where end == .orderly:
            state = .finished
            return .finish(delimitedByClose: true)
        case .untilClose where end == .truncated:
            return fail(.closedWithoutNotify(received: bodyBytes))
        case .untilClose: return fail(.reset(received: bodyBytes))
        case .length(let expected):
            return fail(.truncated(expected: expected, received: bodyBytes))
        case .chunked, .none: return fail(.truncated(expected: nil, received: bodyBytes))
        }
    }
}

// MARK: - Time and the caller

extension TransactionStateMachine {
    /// Processes what is due at ``deadline``: an expired limit, the next connection attempt, or the
    /// check of the minimum rate; without effect before.
    package mutating func ticked(now: Instant) -> TransactionEffect {
        guard now >= deadline else { return .wait }
        guard now < totalDeadline else {
            return fail(.timedOut(.total, limit: settings.totalLimit))
        }
        switch state {
        case .created, .finished: return .wait
        case .queued: return fail(.overloaded(.queueTime))
        case .connecting where now < connectDeadline: return perform(race.ticked(now: now))
        case .connecting:
            let phase = race.isHandshaking ? TransactionPhase.handshaking : .connecting
            return fail(.timedOut(phase, limit: settings.connectLimit))
        case .resolving: return fail(.timedOut(.resolving, limit: settings.connectLimit))
        case .awaitingHead: return fail(.timedOut(.awaitingHead, limit: settings.headLimit))
        case .readingBody where now >= stateDeadline:
            return fail(.timedOut(.readingBody, limit: settings.idleLimit))
        case .readingBody:
            guard Double(rateBytes) >= rateBytesMin else {
                return fail(.timedOut(.readingSlowly, limit: settings.idleLimit))
            }
            beginRateWindow(now: now)
            return .wait
        }
    }

    /// Suspends the limits on the origin's silence, because the caller accepts no data for a while.
    package mutating func paused() {
        isPaused = true
    }

    /// Restarts the limits on the origin's silence, because the caller accepts data again.
    package mutating func resumed(now: Instant) {
        guard isPaused else { return }
        isPaused = false
        switch state {
        case .awaitingHead: stateDeadline = now + settings.headLimit
        case .readingBody:
            stateDeadline = now + settings.idleLimit
            // Earlier bytes do not count, and neither does the time of the pause.
            beginRateWindow(now: now)
        case .created, .queued, .resolving, .connecting, .finished: break
        }
    }

    /// Ends the transaction on behalf of the caller, without an effect.
    package mutating func cancelled() {
        state = .finished
    }

    /// Fails the transaction; without effect if it is finished.
    mutating func fail(_ failure: OriginFailure) -> TransactionEffect {
        guard state != .finished else { return .wait }
        state = .finished
        return .fail(failure)
    }
}
