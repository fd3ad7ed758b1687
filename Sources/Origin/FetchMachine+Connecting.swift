package import Ground
package import Wire

// MARK: - Towards a connection

extension FetchMachine {
    /// There is no place for a connection to the origin; the fetch waits for one.
    package mutating func queued(now: Instant) -> FetchEffect {
        guard state == .created else { return .wait }
        state = .queued
        stateDeadline = now + settings.queueLimit
        return .wait
    }

    /// The fetch waits for a connection that another one opens, or for room on those that there
    /// are: no less long than that other one may take.
    package mutating func connectionAwaited(now: Instant) -> FetchEffect {
        guard state == .created || state == .queued else { return .wait }
        state = .queued
        stateDeadline = now + max(settings.connectLimit, settings.queueLimit)
        return .wait
    }

    /// A connection that was used before is there for the request; `isShared` if others use it too.
    package mutating func connectionReused(isShared: Bool = false, now: Instant) -> FetchEffect {
        guard state == .created || state == .queued else { return .wait }
        self.isShared = isShared
        return requestDue(now: now, attempt: nil)
    }

    /// A connection may be opened.
    package mutating func placeGranted(now: Instant) -> FetchEffect {
        guard state == .created || state == .queued else { return .wait }
        return freshConnectionDue(now: now)
    }

    mutating func freshConnectionDue(now: Instant) -> FetchEffect {
        state = .resolving
        isShared = false
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
        guard origin.isSecure else { return requestDue(now: now, attempt: attempt) }
        race.connected(attempt, now: now)
        return .startTLS(attempt: attempt)
    }

    /// TLS is agreed on over an attempt's connection.
    package mutating func secured(_ attempt: Int, now: Instant) -> FetchEffect {
        guard state == .connecting else { return .wait }
        return requestDue(now: now, attempt: attempt)
    }

    /// TLS failed over an attempt's connection: a certificate that is not to be trusted is an
    /// answer; anything else may be of this address alone.
    package mutating func handshakeFailed(
        _ attempt: Int, _ failure: TLSFailure, now: Instant
    ) -> FetchEffect {
        guard state == .connecting else { return .wait }
        guard !failure.isOfCertificate else { return fail(.tls(origin, failure)) }
        let step = race.failed(attempt, reason: "", now: now)
        if case .lost = step { return fail(.tls(origin, failure)) }
        return perform(step)
    }

    /// An attempt failed.
    package mutating func connectFailed(
        _ attempt: Int, reason: String, now: Instant
    ) -> FetchEffect {
        guard state == .connecting else { return .wait }
        return perform(race.failed(attempt, reason: reason, now: now))
    }

    mutating func perform(_ step: ConnectRace.Step) -> FetchEffect {
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
