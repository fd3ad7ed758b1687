import Ground
import NIOCore
import Wire

// MARK: - Obtaining a connection

extension OriginTransaction {
    /// Starts to look for a connection; fails if the client does not try the request at all.
    func start() {
        guard !stateMachine.isFinished else { return }
        if let failure = client.refusal(of: request) {
            return perform(stateMachine.refused(failure))
        }
        findConnection()
    }

    /// Looks for a connection; called again when the awaited one is available, or will not be.
    ///
    /// Without effect while the transaction has or opens a connection, or waits for a slot.
    func findConnection() {
        guard stateMachine.needsConnection, !isQueued else { return }
        switch client.sharingDecision(for: self) {
        case .join(let connection): requestAdmission(joining: connection)
        case .openOwn: requestAdmission(joining: nil)
        case .wait: perform(stateMachine.connectionAwaited(now: client.now()))
        case .refuse: perform(stateMachine.refused(.overloaded(.queue)))
        }
    }

    /// Joins a shared connection that has capacity, if admission control agrees; without effect if
    /// the transaction has found or started another one meanwhile.
    func connectionOffered(to connection: OriginConnection) {
        guard stateMachine.needsConnection else { return }
        guard isQueued else { return requestAdmission(joining: connection) }
        guard client.coordinator.leaveQueueForShared(id, request.origin) else { return }
        isQueued = false
        join(connection)
    }

    /// Requests admission and carries out the decision; `connection` is the one to join, if any.
    private func requestAdmission(joining connection: OriginConnection?) {
        let now = client.now()
        let admission = client.coordinator.requestAdmission(
            id, for: request.quotaHolders, at: request.origin, mayJoin: connection != nil, now: now)
        switch admission {
        case .join:
            isAdmitted = true
            guard let connection else { preconditionFailure("no connection was offered to join") }
            join(connection)
        case .useIdle:
            isAdmitted = true
            guard let connection = client.takeIdle(to: request.origin) else {
                client.coordinator.connectionOpened(request.origin)
                return slotAcquired(now)
            }
            useIdle(connection)
        case .open:
            isAdmitted = true
            slotAcquired(now)
        case .wait:
            isAdmitted = true
            isQueued = true
            client.openingStarted(self, hasSlot: false)
            perform(stateMachine.queued(now: now))
        case .refused(.queueFull):
            perform(stateMachine.refused(.overloaded(.queue)))
        case .refused(.quotaExhausted):
            perform(stateMachine.refused(.overloaded(.quota)))
        case .refused(.circuitOpen(let retryAfter)):
            perform(stateMachine.refused(.circuitOpen(request.origin, retryAfter: retryAfter)))
        }
    }

    /// Fails the transaction because the awaited connection could not be opened, unless it has
    /// another one or waits for a slot.
    func openingFailed(_ failure: OriginFailure) {
        guard stateMachine.needsConnection, !isQueued else { return }
        perform(stateMachine.refused(failure))
    }

    /// Sends the request on a connection that other transactions use too.
    private func join(_ connection: OriginConnection) {
        use(connection)
        perform(stateMachine.connectionReused(isShared: true, now: client.now()))
        client.streamCapacityChanged(connection)
    }

    /// Starts to open a connection in the slot that admission control has counted.
    private func slotAcquired(_ now: Instant) {
        holdsSlot = true
        client.openingStarted(self, hasSlot: true)
        perform(stateMachine.connectionSlotGranted(now: now))
    }

    /// Continues with the slot that admission control has granted.
    func slotGranted() {
        isQueued = false
        slotAcquired(client.now())
    }

    /// Continues with a connection of this loop that became free.
    func connectionAssigned(_ connection: OriginConnection) {
        isQueued = false
        useIdle(connection)
    }

    /// Uses an idle connection, or opens another one in its place if it speaks HTTP/2 and the
    /// request asks for a protocol switch.
    private func useIdle(_ connection: OriginConnection) {
        guard connection.isShared, !request.upgrade.isEmpty else { return reuse(connection) }
        connection.close()
        client.coordinator.connectionOpened(request.origin)
        slotAcquired(client.now())
    }

    /// Fails the transaction, which waits for a slot, because the circuit has opened.
    func circuitOpened(retryAfter: Interval) {
        isQueued = false
        perform(stateMachine.refused(.circuitOpen(request.origin, retryAfter: retryAfter)))
    }

    /// Processes the outcome of the TLS handshake on an attempt's connection.
    func attemptTLSCompleted(_ attempt: OriginConnection, _ result: Result<Void, TLSFailure>) {
        guard let number = self.number(of: attempt) else { return }
        switch result {
        case .success: perform(stateMachine.tlsEstablished(number, now: client.now()))
        case .failure(let failure):
            attempts[number] = nil
            attempt.transaction = nil
            perform(stateMachine.handshakeFailed(number, failure, now: client.now()))
        }
    }

    /// Returns the number of an attempt; `nil` if it was given up.
    private func number(of attempt: OriginConnection) -> Int? {
        attempts.first { $0.value === attempt }?.key
    }

    /// Processes the connection of an attempt, connected to `remote`; without effect for an attempt
    /// given up.
    func attemptSucceeded(_ attempt: OriginConnection, remote: ConnectTarget?) {
        guard let number = number(of: attempt) else { return }
        perform(
            stateMachine.attemptConnected(
                number, to: remote, addressGuard: client.addressGuard(for: request.origin),
                now: client.now()))
    }

    /// Processes the failure of an attempt; `isLocal` if this process lacks a resource for it,
    /// which fails the transaction if no other attempt is in progress.
    func attemptFailed(_ attempt: OriginConnection, reason: String, isLocal: Bool = false) {
        guard let number = number(of: attempt) else { return }
        attempts[number] = nil
        attempt.transaction = nil
        if isLocal, attempts.isEmpty {
            return perform(stateMachine.refused(.overloaded(.descriptors)))
        }
        perform(stateMachine.attemptFailed(number, reason: reason, now: client.now()))
    }
}

// MARK: - Attempts

extension OriginTransaction {
    /// Processes the outcome of the name look-up.
    func resolved(_ result: Result<[IPAddress], ResolveFailure>) {
        switch result {
        case .success(let addresses):
            perform(
                stateMachine.resolved(
                    addresses, addressGuard: client.addressGuard(for: request.origin),
                    now: client.now()))
        case .failure(let failure): perform(stateMachine.resolveFailed(failure))
        }
    }

    /// Connects by name, because a proxy resolves it.
    func resolutionDelegatedToProxy() {
        perform(stateMachine.resolutionDelegatedToProxy(now: client.now()))
    }

    /// Fails the transaction because too many names are being looked up.
    func lookupsExhausted() {
        perform(stateMachine.refused(.overloaded(.lookups)))
    }

    /// Starts attempt `number`, in the slot held or in a further one that is counted here.
    ///
    /// If no connection may be opened, the attempt fails, and so does the transaction if it has no
    /// other.
    func connect(to target: ConnectTarget, _ number: Int) {
        if !holdsSlot { client.coordinator.connectionOpened(request.origin) }
        holdsSlot = true
        guard let attempt = client.beginConnecting(for: request.origin) else {
            guard attempts.isEmpty else {
                client.coordinator.connectionClosed(request.origin)
                holdsSlot = false
                return perform(
                    stateMachine.attemptFailed(
                        number, reason: "no further connection", now: client.now()))
            }
            return perform(stateMachine.refused(.overloaded(.connections)))
        }
        holdsSlot = false
        attempts[number] = attempt
        attempt.transaction = self
        if case .address(let address) = target { attempt.address = address }
        client.connect(attempt, to: target)
    }

    /// Sends the request on a pooled connection; those that waited for this transaction to open one
    /// proceed.
    private func reuse(_ connection: OriginConnection) {
        use(connection)
        perform(stateMachine.connectionReused(isShared: connection.isShared, now: client.now()))
        client.streamCapacityChanged(connection)
        client.openingEnded(self)
    }

    /// Takes a connection, or a new stream of it, for the request.
    func use(_ connection: OriginConnection) {
        transport = connection.makeTransport(self)
        address = connection.address
        isConnectionShared = connection.isShared
    }

    /// Releases the connection or stream, and soon looks for another one to send the request again.
    func restart() {
        transport?.release(closing: true)
        transport = nil
        // Counts as a new arrival, which shows nothing about the origin yet.
        if isAdmitted {
            client.coordinator.transactionEnded(
                id, request.origin, .neutral, now: client.now(), releases: false)
        }
        isAdmitted = false
        schedule { [self] in findConnection() }
    }

    /// Closes the connections of all attempts in progress.
    func cancelAttempts() {
        let given = attempts.values
        attempts = [:]
        for attempt in given { attempt.close() }
    }

    /// Closes the pooled connection that turned out to be closed, and counts a slot for the next
    /// one; without effect if there is none.
    func abandonConnection() {
        guard let transport else { return }
        self.transport = nil
        transport.release(closing: true)
        client.coordinator.connectionOpened(request.origin)
        holdsSlot = true
    }
}
