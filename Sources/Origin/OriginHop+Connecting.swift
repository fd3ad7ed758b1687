import Ground
import NIOCore
import Wire

// MARK: - Towards a connection

extension OriginHop {
    func start() {
        guard !machine.isFinished else { return }
        if let failure = client.refusal(of: request) {
            return perform(machine.refused(failure))
        }
        look()
    }

    /// Looks for a connection; called again when the one that was waited for is there, or will not
    /// be.
    func look() {
        guard machine.wantsConnection, !isQueued else { return }
        switch client.advice(for: self) {
        case .join(let connection): arrive(joining: connection)
        case .ask: arrive(joining: nil)
        case .wait: perform(machine.connectionAwaited(now: client.now()))
        case .refuse: perform(machine.refused(.overloaded(.queue)))
        }
    }

    /// Another question's connection has room for this one, which may have found or begun one of
    /// its own since that was decided.
    func invited(to connection: OriginConnection) {
        guard machine.wantsConnection else { return }
        guard isQueued else { return arrive(joining: connection) }
        guard client.exchange.joined(ticket, request.origin) else { return }
        isQueued = false
        join(connection)
    }

    private func arrive(joining connection: OriginConnection?) {
        let now = client.now()
        let admission = client.exchange.arrived(
            ticket, for: request.holders, at: request.origin, mayJoin: connection != nil, now: now)
        switch admission {
        case .join:
            isAdmitted = true
            guard let connection else { preconditionFailure("joined what was not offered") }
            join(connection)
        case .useIdle:
            isAdmitted = true
            guard let connection = client.takeIdle(to: request.origin) else {
                client.exchange.opened(request.origin)
                return openingGranted(now)
            }
            take(connection)
        case .open:
            isAdmitted = true
            openingGranted(now)
        case .wait:
            isAdmitted = true
            isQueued = true
            client.opens(self, hasPlace: false)
            perform(machine.queued(now: now))
        case .refused(.queueFull):
            perform(machine.refused(.overloaded(.queue)))
        case .refused(.shareTaken):
            perform(machine.refused(.overloaded(.share)))
        case .refused(.circuitOpen(let retryAfter)):
            perform(machine.refused(.circuitOpen(request.origin, retryAfter: retryAfter)))
        }
    }

    /// The connection that was waited for is not to be had.
    func openingFailed(_ failure: OriginFailure) {
        guard machine.wantsConnection, !isQueued else { return }
        perform(machine.refused(failure))
    }

    private func join(_ connection: OriginConnection) {
        use(connection)
        perform(machine.connectionReused(isShared: true, now: client.now()))
        client.roomChanged(connection)
    }

    private func openingGranted(_ now: Instant) {
        holdsPlace = true
        client.opens(self, hasPlace: true)
        perform(machine.placeGranted(now: now))
    }

    /// The gate has a place for a connection.
    func placeGranted() {
        isQueued = false
        openingGranted(client.now())
    }

    /// A connection of this loop became free for the fetch that waits.
    func handedOver(_ connection: OriginConnection) {
        isQueued = false
        take(connection)
    }

    /// Uses a connection that was free, unless it speaks HTTP/2, in which no protocol is switched:
    /// then another one takes its place.
    private func take(_ connection: OriginConnection) {
        guard connection.isShared, !request.upgrade.isEmpty else { return reuse(connection) }
        connection.close()
        client.exchange.opened(request.origin)
        openingGranted(client.now())
    }

    func circuitOpened(retryAfter: Interval) {
        isQueued = false
        perform(machine.refused(.circuitOpen(request.origin, retryAfter: retryAfter)))
    }

    /// TLS is agreed on over an attempt's connection, or it failed.
    func attemptSecured(_ attempt: OriginConnection, _ result: Result<Void, TLSFailure>) {
        guard let number = self.number(of: attempt) else { return }
        switch result {
        case .success: perform(machine.secured(number, now: client.now()))
        case .failure(let failure):
            attempts[number] = nil
            attempt.hop = nil
            perform(machine.handshakeFailed(number, failure, now: client.now()))
        }
    }

    private func number(of attempt: OriginConnection) -> Int? {
        attempts.first { $0.value === attempt }?.key
    }

    func attemptSucceeded(_ attempt: OriginConnection, remote: ConnectTarget?) {
        guard let number = number(of: attempt) else { return }
        perform(
            machine.connected(
                number, to: remote, addressGuard: client.addressGuard(for: request.origin),
                now: client.now()))
    }

    /// `isOurs` if it failed for want of what this process may have.
    func attemptFailed(_ attempt: OriginConnection, reason: String, isOurs: Bool = false) {
        guard let number = number(of: attempt) else { return }
        attempts[number] = nil
        attempt.hop = nil
        if isOurs, attempts.isEmpty {
            return perform(machine.refused(.overloaded(.descriptors)))
        }
        perform(machine.connectFailed(number, reason: reason, now: client.now()))
    }
}

// MARK: - Attempts

extension OriginHop {
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

    func connect(to target: ConnectTarget, _ number: Int) {
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
        if case .address(let address) = target { attempt.address = address }
        client.connect(attempt, to: target)
    }

    private func reuse(_ connection: OriginConnection) {
        use(connection)
        perform(machine.connectionReused(isShared: connection.isShared, now: client.now()))
        client.roomChanged(connection)
        client.opensNoMore(self)
    }

    func use(_ connection: OriginConnection) {
        carrier = connection.carry(self)
        address = connection.address
        isSharing = connection.isShared
    }

    /// The request is to be sent anew, on whatever connection there is.
    func startOver() {
        carrier?.leave(closing: true)
        carrier = nil
        // Another arrival, which says nothing of the origin yet.
        if isAdmitted {
            client.exchange.ended(
                ticket, request.origin, .neutral, now: client.now(), releases: false)
        }
        isAdmitted = false
        later { [self] in look() }
    }

    func giveUpAttempts() {
        let given = attempts.values
        attempts = [:]
        for attempt in given { attempt.close() }
    }

    /// The connection taken from the pool turned out closed; its place is kept for the next one.
    func giveUpConnection() {
        guard let carrier else { return }
        self.carrier = nil
        carrier.leave(closing: true)
        client.exchange.opened(request.origin)
        holdsPlace = true
    }
}
