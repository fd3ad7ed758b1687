package import Ground
package import Wire

/// Decides the course of one fetch: addresses, time limits, the one retry, and what the end of
/// input means.
///
/// Every event takes the time and returns one effect for the shell. Once `finished`, every event
/// returns `.wait`, so that exactly one of `.finish` and `.fail` is returned, and none after
/// ``cancelled()``.
package struct FetchMachine: Sendable {
    private enum State: Hashable, Sendable {
        /// No connection is asked for. → resolving, connecting, awaitingHead, finished
        case created
        /// The resolver was asked. → connecting, finished
        case resolving
        /// An attempt is under way; the addresses after it are in `untried`. → awaitingHead,
        /// finished
        case connecting
        /// The request was sent. → readingBody, resolving (the retry), finished
        case awaitingHead
        /// The final head arrived. → finished
        case readingBody
        /// Ended, failed or cancelled.
        case finished
    }

    private let origin: OriginAuthority
    private let settings: OriginSettings
    private var state = State.created
    /// Addresses not yet tried; empty unless connecting.
    private var untried: ArraySlice<IPAddress> = []
    /// The connection was used by an earlier fetch, and no byte came on it for this one.
    private var mayBeStale = false
    private var retried = false
    private var isPaused = false
    /// Bytes that arrived since the request was sent, while awaiting the head.
    private var headBytes = 0
    private var interimAnswers = 0
    private var framing = BodyFraming.none
    private var bodyBytes: UInt64 = 0
    /// The end of the state's own limit; while paused it does not count.
    private var stateDeadline = Instant.distantFuture
    private var connectDeadline = Instant.distantFuture
    private let totalDeadline: Instant

    /// A fetch from `origin` that starts at `now`.
    package init(origin: OriginAuthority, settings: OriginSettings, now: Instant) {
        self.origin = origin
        self.settings = settings
        totalDeadline = now + settings.totalLimit
    }

    /// True once nothing can come any more.
    package var isFinished: Bool { state == .finished }

    /// The instant at which ``ticked(now:)`` is due.
    package var deadline: Instant {
        guard state != .finished else { return .distantFuture }
        let suspended = isPaused && (state == .awaitingHead || state == .readingBody)
        return suspended ? totalDeadline : min(stateDeadline, totalDeadline)
    }
}

/// What the shell does next for a fetch.
package enum FetchEffect: Hashable, Sendable {
    /// Nothing; the next event decides.
    case wait
    /// Ask the resolver for the origin's addresses.
    case resolve
    /// Give up an attempt that is under way, if any, and connect to this address.
    case connect(IPAddress)
    /// Write the request on the connection.
    case sendRequest
    /// Everything arrived; `delimitedByClose` if only the connection's orderly end says so.
    case finish(delimitedByClose: Bool)
    /// Close the connection or give up the attempt, and say why.
    case fail(OriginFailure)
}

// MARK: - Towards a connection

extension FetchMachine {
    /// An idle connection was taken from the pool.
    package mutating func connectionReused(now: Instant) -> FetchEffect {
        guard state == .created else { return .wait }
        return requestDue(now: now, mayBeStale: true)
    }

    /// The pool has no idle connection.
    package mutating func noConnectionIdle(now: Instant) -> FetchEffect {
        guard state == .created else { return .wait }
        return freshConnectionDue(now: now)
    }

    private mutating func freshConnectionDue(now: Instant) -> FetchEffect {
        state = .resolving
        connectDeadline = min(now + settings.connectLimit, totalDeadline)
        stateDeadline = connectDeadline
        return .resolve
    }

    /// The client or its pool does not take the fetch.
    package mutating func refused(_ failure: OriginFailure) -> FetchEffect {
        fail(failure)
    }

    /// The resolver answered, or the host is an address; only addresses that `addressGuard` allows
    /// are used.
    package mutating func resolved(
        _ addresses: [IPAddress], addressGuard: AddressGuard, now: Instant
    ) -> FetchEffect {
        guard state == .resolving else { return .wait }
        untried = addressGuard.allowed(of: addresses).prefix(settings.addressesTriedMax)
        if untried.isEmpty, let first = addresses.first,
            case .refused(let refusal) = addressGuard.judge(first)
        {
            return fail(.addressRefused(origin, first, refusal))
        }
        return tryNext(now: now) ?? fail(.nameNotFound(origin.host))
    }

    /// The resolver failed.
    package mutating func resolveFailed(_ failure: ResolveFailure) -> FetchEffect {
        guard state == .resolving else { return .wait }
        switch failure {
        case .nameNotFound: return fail(.nameNotFound(origin.host))
        case .failed(let reason): return fail(.resolverFailed(origin.host, reason: reason))
        }
    }

    /// The attempt succeeded; `remote` is the address the socket says it is connected to.
    package mutating func connected(
        to remote: IPAddress?, addressGuard: AddressGuard, now: Instant
    ) -> FetchEffect {
        guard state == .connecting else { return .wait }
        guard let remote else {
            return fail(.connectFailed(origin, reason: "the connection has no remote address"))
        }
        if case .refused(let refusal) = addressGuard.judge(remote) {
            return fail(.addressRefused(origin, remote, refusal))
        }
        return requestDue(now: now, mayBeStale: false)
    }

    /// The attempt failed.
    package mutating func connectFailed(reason: String, now: Instant) -> FetchEffect {
        guard state == .connecting else { return .wait }
        return tryNext(now: now) ?? fail(.connectFailed(origin, reason: reason))
    }

    /// Each attempt may use an equal share of what is left, so that one dead address does not use
    /// all of it.
    private mutating func tryNext(now: Instant) -> FetchEffect? {
        guard let address = untried.popFirst() else { return nil }
        let left = max(0, (connectDeadline - now).nanoseconds)
        stateDeadline = now + Interval(nanoseconds: left / Int64(untried.count + 1))
        state = .connecting
        return .connect(address)
    }

    private mutating func requestDue(now: Instant, mayBeStale: Bool) -> FetchEffect {
        self.mayBeStale = mayBeStale
        untried = []
        headBytes = 0
        interimAnswers = 0
        state = .awaitingHead
        stateDeadline = now + settings.headLimit
        return .sendRequest
    }
}

// MARK: - The answer

extension FetchMachine {
    /// A read brought bytes.
    package mutating func bytesArrived(_ count: Int, now: Instant) {
        switch state {
        case .awaitingHead:
            headBytes += count
            mayBeStale = false
        case .readingBody:
            stateDeadline = now + settings.idleLimit
        case .created, .resolving, .connecting, .finished:
            break
        }
    }

    /// An interim (1xx) head arrived and is skipped (RFC 9110 §15.2).
    package mutating func interimHeadArrived() -> FetchEffect {
        guard state == .awaitingHead else { return .wait }
        interimAnswers += 1
        guard interimAnswers > settings.interimAnswersMax else { return .wait }
        return fail(.tooManyInterimAnswers(max: settings.interimAnswersMax))
    }

    /// The final head arrived.
    package mutating func headArrived(_ framing: BodyFraming, now: Instant) {
        guard state == .awaitingHead else { return }
        self.framing = framing
        state = .readingBody
        stateDeadline = now + settings.idleLimit
    }

    /// Bytes of the body, without their chunk frames, were found.
    package mutating func bodyArrived(_ count: Int) {
        bodyBytes += UInt64(count)
    }

    /// The framing says that the body is whole.
    package mutating func bodyEnded() -> FetchEffect {
        guard state == .readingBody else { return .wait }
        state = .finished
        return .finish(delimitedByClose: false)
    }

    /// The bytes are no valid answer.
    package mutating func answerRefused(_ failure: OriginFailure) -> FetchEffect {
        fail(failure)
    }

    /// The connection ended, `orderly` or by a reset; all bytes that came before were told.
    package mutating func inputClosed(orderly: Bool, now: Instant) -> FetchEffect {
        switch state {
        case .awaitingHead where mayBeStale && !retried:
            // The origin closed an idle connection just as it was taken; GET is safe to send again
            // (RFC 9112 §9.3.1).
            retried = true
            return freshConnectionDue(now: now)
        case .awaitingHead: return fail(.closedBeforeAnswer(bytesReceived: headBytes))
        case .readingBody: return endOfBody(orderly: orderly)
        case .created, .resolving, .connecting, .finished: return .wait
        }
    }

    private mutating func endOfBody(orderly: Bool) -> FetchEffect {
        switch framing {
        case .untilClose where orderly:
            state = .finished
            return .finish(delimitedByClose: true)
        case .untilClose: return fail(.reset(received: bodyBytes))
        case .length(let expected):
            return fail(.truncated(expected: expected, received: bodyBytes))
        case .chunked, .none: return fail(.truncated(expected: nil, received: bodyBytes))
        }
    }
}

// MARK: - Time and the caller

extension FetchMachine {
    /// The time of ``deadline`` may have come.
    package mutating func ticked(now: Instant) -> FetchEffect {
        guard now >= deadline else { return .wait }
        guard now < totalDeadline else {
            return fail(.timedOut(.total, limit: settings.totalLimit))
        }
        switch state {
        case .created, .finished: return .wait
        case .connecting:
            return tryNext(now: now)
                ?? fail(.timedOut(.connecting, limit: settings.connectLimit))
        case .resolving: return fail(.timedOut(.connecting, limit: settings.connectLimit))
        case .awaitingHead: return fail(.timedOut(.awaitingHead, limit: settings.headLimit))
        case .readingBody: return fail(.timedOut(.readingBody, limit: settings.idleLimit))
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
        case .readingBody: stateDeadline = now + settings.idleLimit
        case .created, .resolving, .connecting, .finished: break
        }
    }

    /// The caller wants nothing any more.
    package mutating func cancelled() {
        state = .finished
    }

    private mutating func fail(_ failure: OriginFailure) -> FetchEffect {
        guard state != .finished else { return .wait }
        state = .finished
        return .fail(failure)
    }
}
