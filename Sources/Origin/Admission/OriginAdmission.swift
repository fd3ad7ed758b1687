package import Ground

/// Admission control for origins: who may open a connection, who waits for one, and which origins
/// are in an open circuit; one value for all event loops of a node.
///
/// A *slot* is a connection, open or being opened, idle ones included; each origin has a fixed
/// number of them. Fetches without a slot wait in order of arrival, across all loops, those of
/// clients with fewer connections first; a fetch whose client has used up its quota waits for that
/// client's connections. A connection that becomes free goes to a fetch that waits on its own loop
/// before one on another loop, which would have to open a new one, but bypasses the first in the
/// queue only a limited number of times. A value without a lock; see ``OriginCoordinator``.
package struct OriginAdmission: Sendable {
    /// The identity of a transaction that requests admission: its loop and its number there.
    package struct TransactionID: Hashable, Sendable {
        /// Number of the event loop, as assigned by the ``OriginCoordinator``.
        package var loop: Int
        /// Number of the transaction on its loop.
        package var transaction: UInt64

        /// Creates an identity from its parts.
        package init(loop: Int, transaction: UInt64) {
            self.loop = loop
            self.transaction = transaction
        }
    }

    /// The decision about a fetch that requests a connection.
    package enum Admission: Hashable, Sendable {
        /// The fetch joins others of its loop on the shared connection that is available.
        case join
        /// The fetch takes an idle connection of its loop.
        case useIdle
        /// The fetch opens a connection, for which a slot has been counted.
        case open
        /// The fetch waits for ``Update/granted(_:_:)``.
        ///
        /// If a loop is named, it closes an idle connection to the origin to free its slot.
        case wait(closingIdleOnLoop: Int?)
        /// The fetch fails.
        case refused(Refusal)
    }

    /// The reason why a fetch may not even wait.
    package enum Refusal: Hashable, Sendable {
        /// The origin's queue is full.
        case queueFull
        /// One of the fetch's holders has its full share of the queue.
        case quotaExhausted
        /// The origin's circuit is open.
        case circuitOpen(retryAfter: Interval)
    }

    /// The decision about a connection that became free.
    package enum ReleaseDecision: Hashable, Sendable {
        /// Keep the connection idle.
        case keep
        /// Assign the connection to a request that waits on the same loop.
        case assign(TransactionID)
        /// Close the connection, so that a request on another loop gets its slot.
        case close
    }

    /// A notification for a waiting fetch.
    package enum Update: Hashable, Sendable {
        /// The fetch has a slot and opens a connection; if it has ended meanwhile, the slot is
        /// returned.
        case granted(TransactionID, OriginAuthority)
        /// The fetch waits no longer because the circuit opened.
        case refused(TransactionID, retryAfter: Interval)
    }

    /// The outcome of a fetch as far as its origin is concerned.
    package enum Outcome: Hashable, Sendable {
        /// A complete response arrived.
        case succeeded
        /// The origin failed.
        case failed(CircuitBreaker.Failure)
        /// The outcome does not concern the origin.
        case neutral
    }

    /// A change of an origin's circuit, for the log.
    package enum CircuitChange: Hashable, Sendable {
        /// The circuit opened after this many failures, for this interval.
        case opened(failures: Int, openInterval: Interval)
        /// The circuit closed.
        case closed
    }

    /// Limits of an ``OriginAdmission``.
    package struct Settings: Hashable, Sendable {
        /// Maximum number of connections to one origin.
        package var connectionsMax: Int
        /// Maximum number of requests that wait for one origin.
        package var queueMax: Int
        /// The thresholds of every origin's circuit.
        package var circuit: CircuitLimits
        /// Percentage of the connections and of the queue that one client may have.
        package var clientPercent: Int
        /// Percentage of the connections and of the queue that requests with bodies may have.
        package var uploadPercent: Int

        /// Creates settings from their parts.
        package init(
            connectionsMax: Int, queueMax: Int, circuit: CircuitLimits, clientPercent: Int = 100,
            uploadPercent: Int = 100
        ) {
            self.connectionsMax = connectionsMax
            self.queueMax = queueMax
            self.circuit = circuit
            self.clientPercent = clientPercent
            self.uploadPercent = uploadPercent
        }

        func quotaLimits(of placesMax: Int) -> QuotaTable.Limits {
            QuotaTable.Limits(
                slotsMax: placesMax, clientPercent: clientPercent, uploadPercent: uploadPercent)
        }
    }

    /// A transaction that waits for a connection, with the holders whose quotas it counts against.
    struct QueuedRequest: Sendable {
        let id: TransactionID
        let holders: [QuotaHolder]
        /// How often a later request was served before this one.
        var bypassCount = 0
    }

    /// The admission state of one origin.
    struct OriginState: Sendable {
        /// Slots in use.
        var openConnections = 0
        /// Number of idle connections by loop; no entry is 0.
        var idleByLoop: [Int: Int] = [:]
        /// Idle connections whose closing was requested of a loop.
        var closingCount = 0
        var queue: [QueuedRequest] = []
        /// Quota of the fetches that have connections of their own.
        var quotas: QuotaTable
        /// Quota of the requests in the queue.
        var queueQuotas: QuotaTable
        /// The holders of each fetch with a connection; fetches without holders are absent.
        var holders: [TransactionID: [QuotaHolder]] = [:]
        var circuit = CircuitBreaker()
        /// Trial fetches while the circuit is half open.
        var trials: [TransactionID] = []
        var lastFailure = Instant.zero

        init(_ settings: Settings) {
            quotas = QuotaTable(settings.quotaLimits(of: settings.connectionsMax))
            queueQuotas = QuotaTable(settings.quotaLimits(of: settings.queueMax))
        }

        var isUnused: Bool {
            openConnections == 0 && queue.isEmpty && holders.isEmpty && circuit.hasNoHistory
        }
    }

    /// Maximum number of times a waiting request may be bypassed.
    static let bypassesMax = 8
    /// Maximum number of origins remembered for their failures alone, without connections.
    static let failedOriginsMax = 10_000

    /// The limits in force.
    package var settings: Settings
    var origins: [OriginAuthority: OriginState] = [:]
    /// Number of circuits opened since the start.
    package internal(set) var circuitOpenings: UInt64 = 0

    /// Creates an admission control without history.
    package init(settings: Settings) {
        self.settings = settings
    }
}

// MARK: - Fetches

extension OriginAdmission {
    /// Returns the time for which the open circuit of the origin refuses fetches; `nil` if it
    /// refuses none now.
    package func remainingOpenInterval(at authority: OriginAuthority, now: Instant) -> Interval? {
        origins[authority]?.circuit.remainingOpenInterval(now: now)
    }

    /// Decides how a fetch gets a connection.
    ///
    /// - Parameters:
    ///   - id: the transaction that requests one.
    ///   - holders: whose quotas its connection counts against.
    ///   - authority: the origin.
    ///   - mayJoin: true if a shared connection of its loop has capacity for it.
    ///   - now: the boot clock.
    /// - Returns: the connection that the fetch uses, or that it waits, or the reason why it fails.
    package mutating func requestAdmission(
        _ id: TransactionID, for holders: [QuotaHolder] = [], at authority: OriginAuthority,
        mayJoin: Bool = false, now: Instant
    ) -> Admission {
        var origin = origins[authority, default: OriginState(settings)]
        defer { store(origin, of: authority) }
        switch origin.circuit.admit(limits: settings.circuit, now: now) {
        case .refused(let retryAfter): return .refused(.circuitOpen(retryAfter: retryAfter))
        case .trial: origin.trials.append(id)
        case .allowed: break
        }
        let admission =
            mayJoin && origin.bypassQueue(of: id.loop)
            ? Admission.join : admit(id, holders, to: &origin)
        if case .refused = admission, origin.endTrial(id) { origin.circuit.trialAbandoned() }
        return admission
    }

    /// Takes an idle connection or a slot for a fetch, or queues it, and counts it against its
    /// quotas.
    ///
    /// The decision to wait may name a loop that must close an idle connection.
    private func admit(
        _ id: TransactionID, _ holders: [QuotaHolder], to origin: inout OriginState
    ) -> Admission {
        let isEntitled = origin.quotas.hasQuota(for: holders)
        let hasSlot =
            origin.openConnections < settings.connectionsMax
            || origin.idleByLoop[id.loop] != nil
        if isEntitled, hasSlot, origin.nextEligible() == nil {
            origin.acquireQuota(id, holders)
            if origin.takeIdle(on: id.loop) { return .useIdle }
            origin.openConnections += 1
            return .open
        }
        guard origin.queue.count < settings.queueMax else { return .refused(.queueFull) }
        guard origin.queueQuotas.hasQuota(for: holders) else { return .refused(.quotaExhausted) }
        origin.queue.append(QueuedRequest(id: id, holders: holders))
        origin.queueQuotas.acquire(holders)
        guard isEntitled, origin.closingCount < origin.queue.count,
            let loop = origin.loopWithMostIdle
        else {
            return .wait(closingIdleOnLoop: nil)
        }
        // No longer idle: no fetch takes it while it is being closed.
        _ = origin.takeIdle(on: loop)
        origin.closingCount += 1
        return .wait(closingIdleOnLoop: loop)
    }

    /// Removes a waiting fetch from the queue because a shared connection of its loop has capacity.
    ///
    /// - Returns: false if the fetch must keep waiting, or does not wait.
    package mutating func leaveQueueForShared(_ id: TransactionID, _ authority: OriginAuthority)
        -> Bool
    {
        guard var origin = origins[authority],
            let index = origin.queue.firstIndex(where: { $0.id == id }),
            origin.bypassQueue(of: id.loop, before: index)
        else { return false }
        _ = origin.dequeue(at: index)
        store(origin, of: authority)
        return true
    }

    /// Removes a fetch that gives up from the queue; without effect if it does not wait.
    package mutating func requestCancelled(_ id: TransactionID, _ authority: OriginAuthority) {
        guard var origin = origins[authority],
            let index = origin.queue.firstIndex(where: { $0.id == id })
        else { return }
        _ = origin.dequeue(at: index)
        store(origin, of: authority)
    }

    /// Records that a response head arrived, which closes a half-open circuit; returns that change,
    /// or `nil` if the circuit stays as it is.
    package mutating func responseReceived(_ authority: OriginAuthority) -> CircuitChange? {
        guard var origin = origins[authority], !origin.circuit.hasNoHistory else { return nil }
        let closes = origin.circuit.responseReceived()
        if closes { origin.trials = [] }
        store(origin, of: authority)
        return closes ? .closed : nil
    }

    /// Records the end of an admitted fetch.
    ///
    /// - Parameters:
    ///   - id: the transaction.
    ///   - authority: its origin.
    ///   - outcome: what the fetch shows about the origin.
    ///   - now: the boot clock.
    ///   - releases: true if ``connectionReleased(_:on:)`` or ``connectionClosed(_:wasRequested:)``
    ///     follows for its connection, so that the freed quota is not passed on here.
    /// - Returns: the change of the circuit, if any, and the notifications for waiting fetches.
    package mutating func transactionEnded(
        _ id: TransactionID, _ authority: OriginAuthority, _ outcome: Outcome, now: Instant,
        releases: Bool = true
    ) -> (change: CircuitChange?, updates: [Update]) {
        var origin = origins[authority, default: OriginState(settings)]
        defer { store(origin, of: authority) }
        origin.releaseQuota(id)
        let isTrial = origin.endTrial(id)
        switch outcome {
        case .succeeded:
            origin.circuit.recordSuccess(now: now)
        case .neutral:
            if isTrial { origin.circuit.trialAbandoned() }
        case .failed(let failure):
            origin.lastFailure = now
            // While the circuit is half open, only trials count.
            if origin.circuit.state == .halfOpen, !isTrial { break }
            guard origin.circuit.recordFailure(failure, limits: settings.circuit, now: now),
                case .open(let until) = origin.circuit.state
            else { break }
            origin.trials = []
            circuitOpenings += 1
            let updates = origin.queue.map {
                Update.refused($0.id, retryAfter: until - now)
            }
            origin.queue = []
            origin.queueQuotas = QuotaTable(origin.queueQuotas.limits)
            return (.opened(failures: origin.circuit.failures, openInterval: until - now), updates)
        }
        guard !releases, let updates = grantSlot(&origin, authority) else { return (nil, []) }
        return (nil, [updates])
    }

    /// Returns true if requests wait for a connection to the origin.
    package func isContended(_ authority: OriginAuthority) -> Bool {
        origins[authority]?.queue.isEmpty == false
    }
}

// MARK: - Connections
