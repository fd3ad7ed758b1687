package import Ground
package import Wire

// MARK: - Obtaining a connection

extension TransactionStateMachine {
    /// Records that no slot is available and the fetch waits for one.
    package mutating func queued(now: Instant) -> TransactionEffect {
        guard state == .created else { return .wait }
        state = .queued
        stateDeadline = now + settings.queueLimit
        return .wait
    }

    /// Records that the fetch waits for a connection that another one opens, or for capacity on
    /// existing ones.
    ///
    /// The limit is no shorter than that of the other fetch.
    package mutating func connectionAwaited(now: Instant) -> TransactionEffect {
        guard state == .created || state == .queued else { return .wait }
        state = .queued
        stateDeadline = now + max(settings.connectLimit, settings.queueLimit)
        return .wait
    }

    /// Starts the request on a connection that was used before; `isShared` if others use it too.
    package mutating func connectionReused(isShared: Bool = false, now: Instant)
        -> TransactionEffect
    {
        guard state == .created || state == .queued else { return .wait }
        self.isShared = isShared
        return beginRequest(now: now, attempt: nil)
    }

    /// Starts to open a connection, for which a slot was granted.
    package mutating func connectionSlotGranted(now: Instant) -> TransactionEffect {
        guard state == .created || state == .queued else { return .wait }
        return openNewConnection(now: now)
    }

    /// Requests the addresses of the origin, and starts the connect limit.
    mutating func openNewConnection(now: Instant) -> TransactionEffect {
        state = .resolving
        isShared = false
        connectDeadline = min(now + settings.connectLimit, totalDeadline)
        stateDeadline = connectDeadline
        return .resolve
    }

    /// Fails the transaction because the client, its pool or admission control refuses it.
    package mutating func refused(_ failure: OriginFailure) -> TransactionEffect {
        fail(failure)
    }

    /// Starts connecting to those of `addresses` that `addressGuard` allows, in alternating
    /// families and up to a maximum number; fails if there is none.
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

    /// Starts connecting through a forward proxy that resolves and guards the name.
    package mutating func resolutionDelegatedToProxy(now: Instant) -> TransactionEffect {
        guard state == .resolving else { return .wait }
        return beginRace(HappyEyeballs([.name]), now: now)
    }

    /// Starts the first attempt of a race.
    private mutating func beginRace(_ race: HappyEyeballs, now: Instant) -> TransactionEffect {
        state = .connecting
        self.race = race
        return perform(self.race.start(now: now))
    }

    /// Fails the transaction because the name could not be resolved.
    package mutating func resolveFailed(_ failure: ResolveFailure) -> TransactionEffect {
        guard state == .resolving else { return .wait }
        switch failure {
        case .nameNotFound: return fail(.nameNotFound(origin.host))
        case .failed(let reason): return fail(.resolverFailed(origin.host, reason: reason))
        }
    }

    /// Records that an attempt has a connection, and checks its peer.
    ///
    /// - Parameters:
    ///   - attempt: the number of the attempt.
    ///   - remote: the address reported by the socket, or the target requested from the proxy;
    ///     `nil` if unknown, which fails the transaction.
    ///   - addressGuard: checks the address.
    ///   - now: the boot clock.
    /// - Returns: `.startTLS` for a secure origin, the start of the request for another, `.fail` if
    ///   the peer is refused or unknown, or `.wait` if the transaction is not connecting.
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

    /// Starts the request on the attempt that completed its TLS handshake.
    package mutating func tlsEstablished(_ attempt: Int, now: Instant) -> TransactionEffect {
        guard state == .connecting else { return .wait }
        return beginRequest(now: now, attempt: attempt)
    }

    /// Records that an attempt's TLS handshake failed.
    ///
    /// A rejected certificate fails the transaction; another failure may concern this address only.
    package mutating func handshakeFailed(
        _ attempt: Int, _ failure: TLSFailure, now: Instant
    ) -> TransactionEffect {
        guard state == .connecting else { return .wait }
        guard !failure.isCertificateFailure else { return fail(.tls(origin, failure)) }
        let step = race.attemptFailed(attempt, reason: "", now: now)
        if case .allFailed = step { return fail(.tls(origin, failure)) }
        return perform(step)
    }

    /// Records that an attempt failed, and starts the next one; fails the transaction after the
    /// last.
    package mutating func attemptFailed(
        _ attempt: Int, reason: String, now: Instant
    ) -> TransactionEffect {
        guard state == .connecting else { return .wait }
        return perform(race.attemptFailed(attempt, reason: reason, now: now))
    }

    /// Translates a step of the race into an effect; fails the transaction if every attempt has
    /// failed.
    mutating func perform(_ step: HappyEyeballs.Step) -> TransactionEffect {
        switch step {
        case .wait: .wait
        case .connect(let target, let attempt, let givenUp):
            .connect(target, attempt: attempt, cancelling: givenUp)
        case .allFailed(let reason): fail(.connectFailed(origin, reason: reason))
        }
    }

    /// Starts the head limit and sends the request on `attempt`, or on the pooled connection if it
    /// is `nil`.
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
