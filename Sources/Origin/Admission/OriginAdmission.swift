package import Ground

/// Who may open a connection to which origin, who waits for one, and which origins are left alone:
/// one for all event loops of a node.
///
/// A *place* is a connection, open or being opened, idle ones included; an origin has so many.
/// Fetches for which there is no place wait in the order in which they came, whatever loop they are
/// on, those of clients with fewer connections first; those whose client has its share wait for it.
/// A connection that becomes free goes to a fetch that waits on its own loop before one on
/// another loop, which would have to open one anew, but passes over the first only so often.
package struct OriginAdmission: Sendable {
    /// Names a fetch that asks or waits: the number of its loop, and its own there.
    package struct TransactionID: Hashable, Sendable {
        package var loop: Int
        package var transaction: UInt64

        package init(loop: Int, fetch: UInt64) {
            self.loop = loop
            self.transaction = fetch
        }
    }

    /// What a fetch that arrives does.
    package enum Admission: Hashable, Sendable {
        /// Joins the others of its loop on the connection that it was offered.
        case join
        /// Takes an idle connection of its loop.
        case useIdle
        /// Opens a connection, for which it has a place now.
        case open
        /// Waits for ``Update/granted(_:)``. If a loop is named, that one is to close an idle
        /// connection to the origin, whose place it will get.
        case wait(closingIdleOnLoop: Int?)
        case refused(Refusal)
    }

    /// Why a fetch does not even wait.
    package enum Refusal: Hashable, Sendable {
        /// As many wait as are allowed.
        case queueFull
        /// As many wait as are allowed of one holder.
        case quotaExhausted
        /// The origin fails.
        case circuitOpen(retryAfter: Interval)
    }

    /// What is done with a connection that became free.
    package enum ReleaseDecision: Hashable, Sendable {
        /// Kept for a later fetch.
        case keep
        /// Given to a fetch that waits on the same loop.
        case assign(TransactionID)
        /// Closed, for one that waits on another loop.
        case close
    }

    /// What is told to fetches that wait.
    package enum Update: Hashable, Sendable {
        /// Has a place at the origin now, and opens a connection; if it has left meanwhile, the
        /// place is given back.
        case granted(TransactionID, OriginAuthority)
        /// Waits no more: the circuit opened.
        case refused(TransactionID, retryAfter: Interval)
    }

    /// How a fetch ended, as far as its origin is concerned.
    package enum Outcome: Hashable, Sendable {
        case succeeded
        case failed(CircuitBreaker.Failure)
        /// It says nothing of the origin.
        case neutral
    }

    /// A change of an origin's circuit, for the log.
    package enum CircuitChange: Hashable, Sendable {
        case opened(failures: Int, openInterval: Interval)
        case closed
    }

    /// Limits of an ``OriginAdmission``.
    package struct Settings: Hashable, Sendable {
        /// Connections to one origin.
        package var connectionsMax: Int
        /// Fetches that wait for one origin.
        package var queueMax: Int
        package var circuit: CircuitLimits
        /// Hundredths of both that one client, and fetches with bodies, may have.
        package var clientPercent: Int
        package var uploadPercent: Int

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

        fileprivate func quotaLimits(of placesMax: Int) -> QuotaTable.Limits {
            QuotaTable.Limits(
                slotsMax: placesMax, clientPercent: clientPercent, uploadPercent: uploadPercent)
        }
    }

    struct QueuedRequest: Sendable {
        let ticket: TransactionID
        let holders: [QuotaHolder]
        /// How often a later one was served before it.
        var bypassCount = 0
    }

    /// What is known of one origin.
    struct OriginState: Sendable {
        /// Places taken.
        var openConnections = 0
        /// Idle connections by loop; none of 0.
        var idleByLoop: [Int: Int] = [:]
        /// Idle connections that a loop was asked to close.
        var closingCount = 0
        var queue: [QueuedRequest] = []
        /// Whom the fetches belong to that have connections of their own, and those that wait.
        var quotas: QuotaTable
        var queueQuotas: QuotaTable
        /// Of those with connections, who belongs to anybody.
        var holders: [TransactionID: [QuotaHolder]] = [:]
        var circuit = CircuitBreaker()
        /// Fetches that try the origin while its circuit is half open.
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

    /// How often the first that waits may be passed over.
    static let bypassesMax = 8
    /// Origins without connections that are remembered because they failed.
    static let failedOriginsMax = 10_000

    package var settings: Settings
    var origins: [OriginAuthority: OriginState] = [:]
    /// Circuits opened since the start.
    package internal(set) var circuitOpenings: UInt64 = 0

    package init(settings: Settings) {
        self.settings = settings
    }
}

// MARK: - Fetches

extension OriginAdmission {
    /// How long no fetch goes to the origin because its circuit is open; nil if one may.
    package func remainingOpenInterval(at authority: OriginAuthority, now: Instant) -> Interval? {
        origins[authority]?.circuit.remainingOpenInterval(now: now)
    }

    /// A fetch wants a connection, as one of `holders`; `mayJoin` if one that others of its loop
    /// use has room for it.
    package mutating func requestAdmission(
        _ ticket: TransactionID, for holders: [QuotaHolder] = [], at authority: OriginAuthority,
        mayJoin: Bool = false, now: Instant
    ) -> Admission {
        var origin = origins[authority, default: OriginState(settings)]
        defer { store(origin, of: authority) }
        switch origin.circuit.admit(limits: settings.circuit, now: now) {
        case .refused(let retryAfter): return .refused(.circuitOpen(retryAfter: retryAfter))
        case .trial: origin.trials.append(ticket)
        case .allowed: break
        }
        let admission =
            mayJoin && origin.bypassQueue(of: ticket.loop)
            ? Admission.join : admit(ticket, holders, to: &origin)
        if case .refused = admission, origin.endTrial(ticket) { origin.circuit.trialAbandoned() }
        return admission
    }

    private func admit(
        _ ticket: TransactionID, _ holders: [QuotaHolder], to origin: inout OriginState
    ) -> Admission {
        let isEntitled = origin.quotas.hasQuota(for: holders)
        let hasPlace =
            origin.openConnections < settings.connectionsMax
            || origin.idleByLoop[ticket.loop] != nil
        if isEntitled, hasPlace, origin.nextEligible() == nil {
            origin.acquireQuota(ticket, holders)
            if origin.takeIdle(on: ticket.loop) { return .useIdle }
            origin.openConnections += 1
            return .open
        }
        guard origin.queue.count < settings.queueMax else { return .refused(.queueFull) }
        guard origin.queueQuotas.hasQuota(for: holders) else { return .refused(.quotaExhausted) }
        origin.queue.append(QueuedRequest(ticket: ticket, holders: holders))
        origin.queueQuotas.acquire(holders)
        guard isEntitled, origin.closingCount < origin.queue.count,
            let loop = origin.loopWithMostIdle
        else {
            return .wait(closingIdleOnLoop: nil)
        }
        // Not idle any more: no fetch takes it while it is being closed.
        _ = origin.takeIdle(on: loop)
        origin.closingCount += 1
        return .wait(closingIdleOnLoop: loop)
    }

    /// A connection that others of its loop use has room for a fetch that waits; true if it waits
    /// no more.
    package mutating func leaveQueueForShared(_ ticket: TransactionID, _ authority: OriginAuthority)
        -> Bool
    {
        guard var origin = origins[authority],
            let index = origin.queue.firstIndex(where: { $0.ticket == ticket }),
            origin.bypassQueue(of: ticket.loop, before: index)
        else { return false }
        _ = origin.dequeue(at: index)
        store(origin, of: authority)
        return true
    }

    /// A fetch waits no more, of its own accord.
    package mutating func requestCancelled(_ ticket: TransactionID, _ authority: OriginAuthority) {
        guard var origin = origins[authority],
            let index = origin.queue.firstIndex(where: { $0.ticket == ticket })
        else { return }
        _ = origin.dequeue(at: index)
        store(origin, of: authority)
    }

    /// The head of an answer came; tells if the circuit closes by that.
    package mutating func responseReceived(_ authority: OriginAuthority) -> CircuitChange? {
        guard var origin = origins[authority], !origin.circuit.hasNoHistory else { return nil }
        let closes = origin.circuit.responseReceived()
        if closes { origin.trials = [] }
        store(origin, of: authority)
        return closes ? .closed : nil
    }

    /// A fetch that was admitted is over; `releases` if ``released(_:on:)`` follows for its
    /// connection, or ``closed(_:wasAskedFor:)``, so that its share need not be passed on here.
    package mutating func transactionEnded(
        _ ticket: TransactionID, _ authority: OriginAuthority, _ outcome: Outcome, now: Instant,
        releases: Bool = true
    ) -> (change: CircuitChange?, news: [Update]) {
        var origin = origins[authority, default: OriginState(settings)]
        defer { store(origin, of: authority) }
        origin.releaseQuota(ticket)
        let isTrial = origin.endTrial(ticket)
        switch outcome {
        case .succeeded:
            origin.circuit.recordSuccess(now: now)
        case .neutral:
            if isTrial { origin.circuit.trialAbandoned() }
        case .failed(let failure):
            origin.lastFailure = now
            // While it is half open only the trials decide.
            if origin.circuit.state == .halfOpen, !isTrial { break }
            guard origin.circuit.recordFailure(failure, limits: settings.circuit, now: now),
                case .open(let until) = origin.circuit.state
            else { break }
            origin.trials = []
            circuitOpenings += 1
            let news = origin.queue.map {
                Update.refused($0.ticket, retryAfter: until - now)
            }
            origin.queue = []
            origin.queueQuotas = QuotaTable(origin.queueQuotas.limits)
            return (.opened(failures: origin.circuit.failures, openInterval: until - now), news)
        }
        guard !releases, let news = grantSlot(&origin, authority) else { return (nil, []) }
        return (nil, [news])
    }

    /// Fetches wait for a connection to the origin.
    package func isContended(_ authority: OriginAuthority) -> Bool {
        origins[authority]?.queue.isEmpty == false
    }
}

// MARK: - Connections

extension OriginAdmission {
    /// One more connection is opened without asking: a further attempt of a race, or in place of
    /// one that turned out closed.
    package mutating func connectionOpened(_ authority: OriginAuthority) {
        origins[authority, default: OriginState(settings)].openConnections += 1
    }

    /// A connection on `loop` has ended an answer and may carry another.
    package mutating func connectionReleased(_ authority: OriginAuthority, on loop: Int)
        -> ReleaseDecision
    {
        var origin = origins[authority, default: OriginState(settings)]
        defer { store(origin, of: authority) }
        // More than allowed, because the limit was lowered or attempts raced.
        guard origin.openConnections <= settings.connectionsMax else { return .close }
        guard let first = origin.nextEligible() else {
            origin.idleByLoop[loop, default: 0] += 1
            return .keep
        }
        let index =
            origin.queue[first].bypassCount < Self.bypassesMax
            ? origin.nextEligible(on: loop)
            : origin.queue[first].ticket.loop == loop ? first : nil
        guard let index else { return .close }
        origin.recordBypasses(before: index)
        let chosen = origin.dequeue(at: index)
        origin.acquireQuota(chosen.ticket, chosen.holders)
        return .assign(chosen.ticket)
    }

    /// An idle connection on `loop` is being closed, and not because the gate asked for that.
    package mutating func idleConnectionClosed(_ authority: OriginAuthority, on loop: Int) {
        guard var origin = origins[authority] else { return }
        _ = origin.takeIdle(on: loop)
        store(origin, of: authority)
    }

    /// A connection is gone, or a place was not used after all; `wasAskedFor` if the gate had asked
    /// a loop to close it.
    package mutating func connectionClosed(
        _ authority: OriginAuthority, wasRequested: Bool = false
    ) -> Update? {
        guard var origin = origins[authority] else { return nil }
        precondition(
            origin.openConnections > 0, "closed a connection to \(authority) that was not open")
        origin.openConnections -= 1
        if wasRequested { origin.closingCount = max(0, origin.closingCount - 1) }
        let news = grantSlot(&origin, authority)
        store(origin, of: authority)
        return news
    }

    /// A loop that was asked to close an idle connection had none left.
    package mutating func noIdleConnectionClosed(_ authority: OriginAuthority) {
        guard var origin = origins[authority] else { return }
        origin.closingCount = max(0, origin.closingCount - 1)
        store(origin, of: authority)
    }

    /// From now on other limits hold.
    package mutating func reconfigure(_ settings: Settings) -> [Update] {
        self.settings = settings
        var news: [Update] = []
        if settings.circuit.failures == nil {
            for authority in origins.keys {
                origins[authority]?.circuit = CircuitBreaker()
                origins[authority]?.trials = []
            }
        }
        for authority in origins.keys {
            origins[authority]?.quotas.limits = settings.quotaLimits(of: settings.connectionsMax)
            origins[authority]?.queueQuotas.limits = settings.quotaLimits(of: settings.queueMax)
        }
        for authority in origins.keys.sorted(by: { $0.description < $1.description }) {
            while let granted = origins[authority].flatMap({ origin -> Update? in
                var origin = origin
                let granted = grantSlot(&origin, authority)
                origins[authority] = origin
                return granted
            }) { news.append(granted) }
        }
        return news
    }

    private func grantSlot(_ origin: inout OriginState, _ authority: OriginAuthority) -> Update? {
        guard origin.openConnections < settings.connectionsMax, let first = origin.nextEligible()
        else {
            return nil
        }
        origin.openConnections += 1
        let chosen = origin.dequeue(at: first)
        origin.acquireQuota(chosen.ticket, chosen.holders)
        return .granted(chosen.ticket, authority)
    }

    private mutating func store(_ origin: OriginState, of authority: OriginAuthority) {
        origins[authority] = origin.isUnused ? nil : origin
        guard origins.count > Self.failedOriginsMax else { return }
        let idle = origins.filter { $0.value.openConnections == 0 && $0.value.queue.isEmpty }
        guard idle.count > Self.failedOriginsMax else { return }
        let order = idle.map { ($0.value.lastFailure, $0.key) }.sorted { $0.0 < $1.0 }
        for (_, name) in order.prefix(Self.failedOriginsMax / 10) { origins[name] = nil }
    }
}
