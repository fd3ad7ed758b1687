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
        /// No connection is asked for. → queued, resolving, awaitingHead, finished
        case created
        /// Waits until the origin has a place for one more connection. → resolving, awaitingHead,
        /// finished
        case queued
        /// The resolver was asked. → connecting, finished
        case resolving
        /// Attempts of `race` are under way. → awaitingHead, finished
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
    private var race = ConnectRace([])
    /// The connection was used by an earlier fetch, and no byte came on it for this one.
    private var mayBeStale = false
    /// The request may be sent again.
    private var isRepeatable: Bool
    private let hasBody: Bool
    private var requestProgress = RequestProgress.whole
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

    /// The instant at which ``ticked(now:)`` is due.
    package var deadline: Instant {
        guard state != .finished else { return .distantFuture }
        switch state {
        case .awaitingHead, .readingBody:
            let isWaitedFor = !isPaused && requestProgress != .waitsForCaller
            return isWaitedFor ? min(stateDeadline, totalDeadline) : totalDeadline
        case .connecting: return min(race.deadline, connectDeadline)
        default: return min(stateDeadline, totalDeadline)
        }
    }
}

/// How far a request is written.
package enum RequestProgress: Hashable, Sendable {
    /// All that was given of the body is, and more is to be given: the origin owes nothing. →
    /// beingWritten, whole
    case waitsForCaller
    /// Something of it is not. → beingWritten, waitsForCaller, whole
    case beingWritten
    /// The origin has it all, or wants no more of it.
    case whole
}

/// What the shell does next for a fetch.
package enum FetchEffect: Hashable, Sendable {
    /// Nothing; the next event decides.
    case wait
    /// Ask the resolver for the origin's addresses.
    case resolve
    /// Connect to this target, in place of the attempt that is given up, if there is one.
    case connect(ConnectTarget, attempt: Int, givingUp: Int?)
    /// Give up every other attempt and write the request on this one's connection; on the one taken
    /// from the pool if it is nil.
    case sendRequest(attempt: Int?)
    /// Everything arrived; `delimitedByClose` if only the connection's orderly end says so.
    case finish(delimitedByClose: Bool)
    /// Close the connection or give up the attempt, and say why.
    case fail(OriginFailure)
}

// MARK: - Towards a connection

extension FetchMachine {
    /// There is no place for a connection to the origin; the fetch waits for one.
    package mutating func queued(now: Instant) -> FetchEffect {
        guard state == .created else { return .wait }
        state = .queued
        stateDeadline = now + settings.queueLimit
        return .wait
    }

    /// A connection that was used before is there for the request.
    package mutating func connectionReused(now: Instant) -> FetchEffect {
        guard state == .created || state == .queued else { return .wait }
        return requestDue(now: now, attempt: nil)
    }

    /// A connection may be opened.
    package mutating func placeGranted(now: Instant) -> FetchEffect {
        guard state == .created || state == .queued else { return .wait }
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
        let allowed = addressGuard.allowed(of: addresses)
        if allowed.isEmpty {
            guard let first = addresses.first,
                case .refused(let refusal) = addressGuard.judge(first)
            else { return fail(.nameNotFound(origin.host)) }
            return fail(.addressRefused(origin, first, refusal))
        }
        let order = ConnectRace.interleaved(allowed).prefix(settings.addressesTriedMax)
        return begin(ConnectRace(order.map { .address($0) }), now: now)
    }

    /// The forward proxy looks the name up, and guards what it finds.
    package mutating func resolutionLeftToProxy(now: Instant) -> FetchEffect {
        guard state == .resolving else { return .wait }
        return begin(ConnectRace([.name]), now: now)
    }

    private mutating func begin(_ race: ConnectRace, now: Instant) -> FetchEffect {
        state = .connecting
        self.race = race
        return perform(self.race.started(now: now))
    }

    /// The resolver failed.
    package mutating func resolveFailed(_ failure: ResolveFailure) -> FetchEffect {
        guard state == .resolving else { return .wait }
        switch failure {
        case .nameNotFound: return fail(.nameNotFound(origin.host))
        case .failed(let reason): return fail(.resolverFailed(origin.host, reason: reason))
        }
    }

    /// An attempt succeeded; `remote` is the address the socket says it is connected to, or what
    /// the proxy was told.
    package mutating func connected(
        _ attempt: Int, to remote: ConnectTarget?, addressGuard: AddressGuard, now: Instant
    ) -> FetchEffect {
        guard state == .connecting else { return .wait }
        switch remote {
        case nil:
            return fail(.connectFailed(origin, reason: "the connection has no remote address"))
        case .address(let address)?:
            if case .refused(let refusal) = addressGuard.judge(address) {
                return fail(.addressRefused(origin, address, refusal))
            }
        case .name?: break
        }
        return requestDue(now: now, attempt: attempt)
    }

    /// An attempt failed.
    package mutating func connectFailed(
        _ attempt: Int, reason: String, now: Instant
    ) -> FetchEffect {
        guard state == .connecting else { return .wait }
        return perform(race.failed(attempt, reason: reason, now: now))
    }

    private mutating func perform(_ step: ConnectRace.Step) -> FetchEffect {
        switch step {
        case .wait: .wait
        case .connect(let target, let attempt, let givenUp):
            .connect(target, attempt: attempt, givingUp: givenUp)
        case .lost(let reason): fail(.connectFailed(origin, reason: reason))
        }
    }

    private mutating func requestDue(now: Instant, attempt: Int?) -> FetchEffect {
        mayBeStale = attempt == nil
        headBytes = 0
        interimAnswers = 0
        state = .awaitingHead
        requestProgress = hasBody ? .waitsForCaller : .whole
        stateDeadline = now + settings.headLimit
        return .sendRequest(attempt: attempt)
    }
}

// MARK: - The request's body

extension FetchMachine {
    /// Something of the request's body was given to the connection, or written by it; the limit on
    /// the origin's silence begins anew, and rests while the caller gives nothing.
    package mutating func bodyMoved(_ progress: RequestProgress, now: Instant) {
        switch state {
        case .awaitingHead: stateDeadline = now + settings.headLimit
        case .readingBody: stateDeadline = now + settings.idleLimit
        case .created, .queued, .resolving, .connecting, .finished: return
        }
        requestProgress = progress
        if progress == .beingWritten { isRepeatable = false }
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
        case .created, .queued, .resolving, .connecting, .finished:
            break
        }
    }

    /// An interim (1xx) head arrived; another one follows (RFC 9110 §15.2).
    package mutating func interimHeadArrived() -> FetchEffect {
        guard state == .awaitingHead else { return .wait }
        interimAnswers += 1
        guard interimAnswers > settings.interimAnswersMax else { return .wait }
        return fail(.tooManyInterimAnswers(max: settings.interimAnswersMax))
    }

    /// The final head arrived.
    package mutating func headArrived(_ framing: BodyFraming, now: Instant) -> FetchEffect {
        guard state == .awaitingHead else { return .wait }
        if case .length(let length) = framing, length > settings.bodyBytesMax {
            return fail(.bodyTooLarge(bytesMax: settings.bodyBytesMax))
        }
        self.framing = framing
        state = .readingBody
        stateDeadline = now + settings.idleLimit
        return .wait
    }

    /// Bytes of the body, without their chunk frames, were found.
    package mutating func bodyArrived(_ count: Int) -> FetchEffect {
        bodyBytes += UInt64(count)
        guard bodyBytes > settings.bodyBytesMax else { return .wait }
        return fail(.bodyTooLarge(bytesMax: settings.bodyBytesMax))
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
        case .awaitingHead where mayBeStale && !retried && isRepeatable:
            // The origin closed an idle connection just as it was taken, and the request is safe to
            // send again (RFC 9112 §9.3.1).
            retried = true
            return freshConnectionDue(now: now)
        case .awaitingHead: return fail(.closedBeforeAnswer(bytesReceived: headBytes))
        case .readingBody: return endOfBody(orderly: orderly)
        case .created, .queued, .resolving, .connecting, .finished: return .wait
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
        case .queued: return fail(.overloaded(.queueTime))
        case .connecting where now < connectDeadline: return perform(race.ticked(now: now))
        case .connecting: return fail(.timedOut(.connecting, limit: settings.connectLimit))
        case .resolving: return fail(.timedOut(.resolving, limit: settings.connectLimit))
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
        case .created, .queued, .resolving, .connecting, .finished: break
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
