import Ground

extension OriginAdmission {
    /// Counts a connection opened without a request for admission: a further attempt of a race, or
    /// a replacement for a connection that turned out to be closed.
    package mutating func connectionOpened(_ authority: OriginAuthority) {
        origins[authority, default: OriginState(settings)].openConnections += 1
    }

    /// Decides what happens to a connection on `loop` that has completed a response and may carry
    /// another.
    ///
    /// A request that it is assigned to leaves the queue; a connection that is kept counts as idle.
    package mutating func connectionReleased(_ authority: OriginAuthority, on loop: Int)
        -> ReleaseDecision
    {
        var origin = origins[authority, default: OriginState(settings)]
        defer { store(origin, of: authority) }
        // Over the limit because it was lowered, or because attempts raced.
        guard origin.openConnections <= settings.connectionsMax else { return .close }
        guard let first = origin.nextEligible() else {
            origin.idleByLoop[loop, default: 0] += 1
            return .keep
        }
        let index =
            origin.queue[first].bypassCount < Self.bypassesMax
            ? origin.nextEligible(on: loop)
            : origin.queue[first].id.loop == loop ? first : nil
        guard let index else { return .close }
        origin.recordBypasses(before: index)
        let chosen = origin.dequeue(at: index)
        origin.acquireQuota(chosen.id, chosen.holders)
        return .assign(chosen.id)
    }

    /// Stops counting an idle connection that `loop` closes on its own account, not on request;
    /// ``connectionClosed(_:wasRequested:)`` returns its slot later.
    package mutating func idleConnectionClosed(_ authority: OriginAuthority, on loop: Int) {
        guard var origin = origins[authority] else { return }
        _ = origin.takeIdle(on: loop)
        store(origin, of: authority)
    }

    /// Records that a connection is closed, or that a granted slot was not used.
    ///
    /// - Parameters:
    ///   - authority: the origin.
    ///   - wasRequested: true if ``Admission/wait(closingIdleOnLoop:)`` had requested the closing.
    /// - Returns: the notification for the request that gets the slot.
    package mutating func connectionClosed(
        _ authority: OriginAuthority, wasRequested: Bool = false
    ) -> Update? {
        guard var origin = origins[authority] else { return nil }
        precondition(
            origin.openConnections > 0, "closed a connection to \(authority) that was not open")
        origin.openConnections -= 1
        if wasRequested { origin.closingCount = max(0, origin.closingCount - 1) }
        let updates = grantSlot(&origin, authority)
        store(origin, of: authority)
        return updates
    }

    /// Records that a loop had no idle connection left, although it was requested to close one.
    package mutating func noIdleConnectionClosed(_ authority: OriginAuthority) {
        guard var origin = origins[authority] else { return }
        origin.closingCount = max(0, origin.closingCount - 1)
        store(origin, of: authority)
    }

    /// Adopts other limits; returns the notifications for requests that get a slot.
    ///
    /// If the circuit breaker is disabled, every circuit closes and its history is dropped.
    package mutating func reconfigure(_ settings: Settings) -> [Update] {
        self.settings = settings
        var updates: [Update] = []
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
            }) { updates.append(granted) }
        }
        return updates
    }

    /// Counts a slot for the next request in the queue that has quota, and removes it from the
    /// queue; `nil` if no slot is free or no request can use it.
    func grantSlot(_ origin: inout OriginState, _ authority: OriginAuthority) -> Update? {
        guard origin.openConnections < settings.connectionsMax, let first = origin.nextEligible()
        else {
            return nil
        }
        origin.openConnections += 1
        let chosen = origin.dequeue(at: first)
        origin.acquireQuota(chosen.id, chosen.holders)
        return .granted(chosen.id, authority)
    }

    /// Stores the state of an origin, or removes it if it is unused.
    ///
    /// Of too many origins without connections, those whose failures are the oldest are forgotten.
    mutating func store(_ origin: OriginState, of authority: OriginAuthority) {
        origins[authority] = origin.isUnused ? nil : origin
        guard origins.count > Self.failedOriginsMax else { return }
        let idle = origins.filter { $0.value.openConnections == 0 && $0.value.queue.isEmpty }
        guard idle.count > Self.failedOriginsMax else { return }
        let order = idle.map { ($0.value.lastFailure, $0.key) }.sorted { $0.0 < $1.0 }
        for (_, name) in order.prefix(Self.failedOriginsMax / 10) { origins[name] = nil }
    }
}
