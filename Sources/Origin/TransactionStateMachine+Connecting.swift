package import Ground
package import Wire

// MARK: - Towards a connection

extension TransactionStateMachine {
    /// There is no place for a connection to the origin; the fetch waits for one.
    package mutating func queued(now: Instant) -> TransactionEffect {
        guard state == .created else { return .wait }
        state = .queued
        stateDeadline = now + settings.queueLimit
        return .wait
    }

    /// The fetch waits for a connection that another one opens, or for room on those that there
    /// are: no less long than that other one may take.
    package mutating func connectionAwaited(now: Instant) -> TransactionEffect {
        guard state == .created || state == .queued else { return .wait }
        state = .queued
        stateDeadline = now + max(settings.connectLimit, settings.queueLimit)
        return .wait
    }

    /// A connection that was used before is there for the request; `isShared` if others use it too.
    package mutating func connectionReused(isShared: Bool = false, now: Instant)
        -> TransactionEffect
    {
        guard state == .created || state == .queued else { return .wait }
        self.isShared = isShared
        return beginRequest(now: now, attempt: nil)
    }

    /// A connection may be opened.
    package mutating func connectionSlotGranted(now: Instant) -> TransactionEffect {
        guard state == .created || state == .queued else { return .wait }
        return openNewConnection(now: now)
    }

    mutating func openNewConnection(now: Instant) -> TransactionEffect {
        state = .resolving
        isShared = false
        connectDeadline = min(now + settings.connectLimit, totalDeadline)
        stateDeadline = connectDeadline
        return .resolve
    }

    /// The client or its pool does not take the fetch.
    package mutating func refused(_ failure: OriginFailure) -> TransactionEffect {
        fail(failure)
    }

    /// The resolver answered, or the host is an address; only addresses that `addressGuard` allows
    /// are used.
    package mutating func resolved(
        _ addresses: [IPAddress], addressGuard: AddressGuard, now: Instant
    ) -> TransactionEffect {
        guard state == .resolving else { return .wait }
        let allowed = addressGuard.allowed(of: addresses)
        if allowed.isEmpty {
            guard let first = addresses.first,
                case .refused(let refusal) = addressGuard.evaluate(first)
            else { return fail(.nameNotFound(origin.host)) }
            return fail(.addressRefused(origin, first, refusal))
        }
        let order = HappyEyeballs.interleaved(allowed).prefix(settings.addressesTriedMax)
        return beginRace(HappyEyeballs(order.map { .address($0) }), now: now)
    }

    /// The forward proxy looks the name up, and guards what it finds.
    package mutating func resolutionDelegatedToProxy(now: Instant) -> TransactionEffect {
        guard state == .resolving else { return .wait }
        return beginRace(HappyEyeballs([.name]), now: now)
    }

    private mutating func beginRace(_ race: HappyEyeballs, now: Instant) -> TransactionEffect {
        state = .connecting
        self.race = race
        return perform(self.race.start(now: now))
    }

    /// The resolver failed.
    package mutating func resolveFailed(_ failure: ResolveFailure) -> TransactionEffect {
        guard state == .resolving else { return .wait }
        switch failure {
        case .nameNotFound: return fail(.nameNotFound(origin.host))
        case .failed(let reason): return fail(.resolverFailed(origin.host, reason: reason))
        }
    }

    /// An attempt succeeded; `remote` is the address the socket says it is connected to, or what
    /// the proxy was told.
    package mutating func attemptConnected(
        _ attempt: Int, to remote: ConnectTarget?, addressGuard: AddressGuard, now: Instant
    ) -> TransactionEffect {
        guard state == .connecting else { return .wait }
        switch remote {
        case nil:
            return fail(.connectFailed(origin, reason: "the connection has no remote address"))
        case .address(let address)?:
            if case .refused(let refusal) = addressGuard.evaluate(address) {
                return fail(.addressRefused(origin, address, refusal))
            }
        case .name?: break
        }
        guard origin.isSecure else { return beginRequest(now: now, attempt: attempt) }
        race.attemptConnected(attempt, now: now)
        return .startTLS(attempt: attempt)
    }

    /// TLS is agreed on over an attempt's connection.
    package mutating func tlsEstablished(_ attempt: Int, now: Instant) -> TransactionEffect {
        guard state == .connecting else { return .wait }
        return beginRequest(now: now, attempt: attempt)
    }

    /// TLS failed over an attempt's connection: a certificate that is not to be trusted is an
    /// answer; anything else may be of this address alone.
    package mutating func handshakeFailed(
        _ attempt: Int, _ failure: TLSFailure, now: Instant
    ) -> TransactionEffect {
        guard state == .connecting else { return .wait }
        guard !failure.isCertificateFailure else { return fail(.tls(origin, failure)) }
        let step = race.attemptFailed(attempt, reason: "", now: now)
        if case .allFailed = step { return fail(.tls(origin, failure)) }
        return perform(step)
    }

    /// An attempt failed.
    package mutating func attemptFailed(
        _ attempt: Int, reason: String, now: Instant
    ) -> TransactionEffect {
        guard state == .connecting else { return .wait }
        return perform(race.attemptFailed(attempt, reason: reason, now: now))
    }

    mutating func perform(_ step: HappyEyeballs.Step) -> TransactionEffect {
        switch step {
        case .wait: .wait
        case .connect(let target, let attempt, let givenUp):
            .connect(target, attempt: attempt, cancelling: givenUp)
        case .allFailed(let reason): fail(.connectFailed(origin, reason: reason))
        }
    }

    private mutating func beginRequest(now: Instant, attempt: Int?) -> TransactionEffect {
        mayBeStale = attempt == nil
        headBytes = 0
        interimResponses = 0
        state = .awaitingHead
        requestProgress = hasBody ? .awaitingCaller : .complete
        stateDeadline = now + settings.headLimit
        return .sendRequest(attempt: attempt)
    }
}
