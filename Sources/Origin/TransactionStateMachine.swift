package import Ground
package import Wire

/// Decides the course of one fetch: addresses, time limits, the one retry, and what the end of
/// input means.
///
/// Every event takes the time and returns one effect for the shell. Once `finished`, every event
/// returns `.wait`, so that exactly one of `.finish` and `.fail` is returned, and none after
/// ``cancelled()``.
package struct TransactionStateMachine: Sendable {
    enum State: Hashable, Sendable {
        /// No connection is asked for, or no more. → queued, resolving, awaitingHead, finished
        case created
        /// Waits until the origin has a place for one more connection. → resolving, awaitingHead,
        /// finished
        case queued
        /// The resolver was asked. → connecting, finished
        case resolving
        /// Attempts of `race` are under way, TLS among what they do. → awaitingHead, finished
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
    /// The connection was used by an earlier fetch, and no byte came on it for this one.
    var mayBeStale = false
    /// The connection carries other fetches too.
    var isShared = false
    /// The request may be sent again.
    var isRepeatable: Bool
    /// Something of the request's body was.
    private var isBodySent = false
    let hasBody: Bool
    var requestProgress = RequestBodyProgress.complete
    var hasRetried = false
    private var isPaused = false
    /// Bytes that arrived since the request was sent, while awaiting the head.
    var headBytes = 0
    var interimResponses = 0
    var interimBytes = 0
    private var framing = BodyFraming.none
    private var bodyBytes: UInt64 = 0
    /// Bytes of the body that came since the window began that ends at `rateDeadline`.
    private var rateBytes = 0
    private var isMinimumRateWaived = false
    private var rateDeadline = Instant.distantFuture
    /// The end of the state's own limit; while paused it does not count.
    var stateDeadline = Instant.distantFuture
    var connectDeadline = Instant.distantFuture
    let totalDeadline: Instant

    /// A question to `origin`; the fetch that it is part of ends at `totalDeadline` at the latest.
    ///
    /// - Parameters:
    ///   - origin: whom it goes to.
    ///   - settings: limits.
    ///   - totalDeadline: when the fetch ends at the latest.
    ///   - hasBody: a body follows the request's head.
    ///   - isSafeToRetry: asking twice does no harm, as long as nothing of a body was sent.
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

    /// True once nothing can come any more.
    package var isFinished: Bool { state == .finished }

    /// True while no connection is used or opened for it, so that one may be.
    package var needsConnection: Bool { state == .created || state == .queued }

    /// The instant at which ``ticked(now:)`` is due.
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

/// How far a request is written.
package enum RequestBodyProgress: Hashable, Sendable {
    /// All that was given of the body is, and more is to be given: the origin owes nothing. →
    /// beingWritten, whole
    case awaitingCaller
    /// Something of it is not. → beingWritten, waitsForCaller, whole
    case writing
    /// The origin has it all, or wants no more of it.
    case complete
}

/// How a connection ended, as far as a question on it is concerned.
package enum InputCloseReason: Hashable, Sendable {
    /// As it should: with FIN, over TLS with close_notify.
    case orderly
    /// By a reset.
    case reset
    /// Over TLS without close_notify.
    case truncated
    /// By a fault of TLS.
    case tls(TLSFailure)
    /// By an error of HTTP/2, that the origin named or that was found here.
    case http2(HTTP2ErrorCode, byOrigin: Bool)
}

/// What the shell does next for a fetch.
package enum TransactionEffect: Hashable, Sendable {
    /// Nothing; the next event decides.
    case wait
    /// Ask the resolver for the origin's addresses.
    case resolve
    /// Connect to this target, in place of the attempt that is given up, if there is one.
    case connect(ConnectTarget, attempt: Int, cancelling: Int?)
    /// Agree on TLS over this attempt's connection.
    case startTLS(attempt: Int)
    /// The origin has not acted on the request: ask for another connection, as at the start.
    case restart
    /// Give up every other attempt and write the request on this one's connection; on the one taken
    /// from the pool if it is nil.
    case sendRequest(attempt: Int?)
    /// Everything arrived; `delimitedByClose` if only the connection's orderly end says so.
    case finish(delimitedByClose: Bool)
    /// Close the connection or give up the attempt, and say why.
    case fail(OriginFailure)
}

// MARK: - The request's body

extension TransactionStateMachine {
    /// Something of the request's body was given to the connection, or written by it; the limit on
    /// the origin's silence begins anew, and rests while the caller gives nothing.
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

// MARK: - The answer

extension TransactionStateMachine {
    /// A read brought bytes.
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

    /// The answer may come as slowly as it likes: it is a stream of events, which come when they
    /// happen.
    package mutating func minimumRateWaived() {
        isMinimumRateWaived = true
        rateDeadline = .distantFuture
    }

    /// The time begins in which a part of the body is due.
    private mutating func beginRateWindow(now: Instant) {
        guard settings.bodyRateMin > 0, !isMinimumRateWaived else { return }
        rateBytes = 0
        rateDeadline = now + settings.idleLimit
    }

    /// Bytes that are due within a window.
    private var rateBytesMin: Double {
        Double(settings.bodyRateMin) * Double(settings.idleLimit.nanoseconds) / 1e9
    }

    /// An interim (1xx) head arrived; another one follows (RFC 9110 §15.2).
    ///
    /// All of them together may be as large as one head: their number alone says little of what a
    /// client that does not read is to be kept of them.
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

    /// The final head arrived.
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

    /// Bytes of the body, without their chunk frames, were found.
    package mutating func bodyReceived(_ count: Int) -> TransactionEffect {
        bodyBytes += UInt64(count)
        guard bodyBytes > settings.bodyBytesMax else { return .wait }
        return fail(.bodyTooLarge(bytesMax: settings.bodyBytesMax))
    }

    /// The framing says that the body is whole.
    package mutating func bodyEnded() -> TransactionEffect {
        guard state == .readingBody else { return .wait }
        state = .finished
        return .finish(delimitedByClose: false)
    }

    /// The bytes are no valid answer.
    package mutating func responseRejected(_ failure: OriginFailure) -> TransactionEffect {
        fail(failure)
    }

    /// The connection, or the stream of it, ended; all bytes that came before were told.
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

    /// The origin has not acted on the request, which it refused on a connection of HTTP/2 (RFC
    /// 9113 §8.7): it is asked once more, whatever the method, unless a part of the body is gone.
    package mutating func streamRefused(now: Instant) -> TransactionEffect {
        guard state == .awaitingHead, !hasRetried, !isBodySent else {
            return inputClosed(.http2(.refusedStream, byOrigin: true), now: now)
        }
        hasRetried = true
        return restart()
    }

    private mutating func restart() -> TransactionEffect {
        state = .created
        stateDeadline = .distantFuture
        return .restart
    }

    /// The fault that ended the connection; nil if it is only over.
    private func closeFailure(of end: InputCloseReason) -> OriginFailure? {
        switch end {
        case .orderly, .reset, .truncated: nil
        case .tls(let failure): .tls(origin, failure)
        case .http2(let code, let byOrigin): .http2(code, byOrigin: byOrigin)
        }
    }

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
    /// The time of ``deadline`` may have come.
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

    /// The caller wants nothing for a while; the limits on the origin's silence stop.
    package mutating func paused() {
        isPaused = true
    }

    /// The caller wants more; the limits on the origin's silence begin anew.
    package mutating func resumed(now: Instant) {
        guard isPaused else { return }
        isPaused = false
        switch state {
        case .awaitingHead: stateDeadline = now + settings.headLimit
        case .readingBody:
            stateDeadline = now + settings.idleLimit
            // What came before does not count, nor does the time in which nobody read.
            beginRateWindow(now: now)
        case .created, .queued, .resolving, .connecting, .finished: break
        }
    }

    /// The caller wants nothing any more.
    package mutating func cancelled() {
        state = .finished
    }

    mutating func fail(_ failure: OriginFailure) -> TransactionEffect {
        guard state != .finished else { return .wait }
        state = .finished
        return .fail(failure)
    }
}
