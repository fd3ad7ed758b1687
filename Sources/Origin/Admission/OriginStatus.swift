package import Ground

/// The state of one origin as this node sees it.
package struct OriginStatus: Hashable, Sendable {
    /// The origin.
    package var origin: OriginAuthority
    /// Connections open or being opened, idle ones included.
    package var connections: Int
    /// Idle connections.
    package var idle: Int
    /// Requests that wait for a connection.
    package var waiting: Int
    /// The state of the circuit.
    package var circuit: CircuitBreaker.State
    /// Failures that count towards opening the circuit, or that opened it.
    package var failures: Int
    /// Time until the next trial; `nil` if the circuit is not open.
    package var retryAfter: Interval?
    /// The requests to the origin and their outcomes.
    package var traffic = OriginTraffic()

    /// True if the circuit is open, or only a trial tells whether the origin works.
    package var isCircuitOpen: Bool { circuit != .closed }

    /// Returns the statuses in `listed` with their traffic, and those of all other origins in
    /// `traffic`, sorted by name.
    static func merged(_ listed: [OriginStatus], _ traffic: OriginTrafficTable) -> [OriginStatus] {
        let known = Set(listed.map(\.origin.withoutTrust))
        let others = traffic.origins.keys.filter { !known.contains($0) }.map {
            OriginStatus(
                origin: $0, connections: 0, idle: 0, waiting: 0, circuit: .closed, failures: 0)
        }
        return (listed + others).map { status in
            var status = status
            status.traffic = traffic[status.origin]
            return status
        }.sorted(by: precedes)
    }

    /// Returns true if `one` is listed before `other`: by name, then those that the operator named.
    fileprivate static func precedes(_ one: OriginStatus, _ other: OriginStatus) -> Bool {
        let (text, otherText) = (one.origin.description, other.origin.description)
        guard text == otherText else { return text < otherText }
        return !one.origin.isOperatorConfigured && other.origin.isOperatorConfigured
    }
}

/// Totals over all origins.
package struct OriginStatistics: Hashable, Sendable {
    /// Connections open or being opened, idle ones included.
    package var connections = 0
    /// Idle connections.
    package var idle = 0
    /// Requests that wait for a connection.
    package var waiting = 0
    /// Circuits that are not closed.
    package var circuitsOpen = 0
    /// Circuits opened since the start.
    package var circuitOpenings: UInt64 = 0
    /// Responses that were followed by bytes beyond their end, each of which ended its connection.
    package var overruns: UInt64 = 0
    /// Names in the resolution cache.
    package var cachedNames = 0
}

extension OriginAdmission {
    /// Returns the status of every origin that has state, sorted by name.
    package func statuses(now: Instant) -> [OriginStatus] {
        origins.map { authority, origin in
            var retryAfter: Interval?
            if case .open(let until) = origin.circuit.state {
                retryAfter = max(.zero, until - now)
            }
            return OriginStatus(
                origin: authority, connections: origin.openConnections,
                idle: origin.idleByLoop.values.reduce(0, +), waiting: origin.queue.count,
                circuit: origin.circuit.state, failures: origin.circuit.failures,
                retryAfter: retryAfter)
        }.sorted(by: OriginStatus.precedes)
    }

    var statistics: OriginStatistics {
        var figures = OriginStatistics(circuitOpenings: circuitOpenings)
        for origin in origins.values {
            figures.connections += origin.openConnections
            figures.idle += origin.idleByLoop.values.reduce(0, +)
            figures.waiting += origin.queue.count
            if origin.circuit.state != .closed { figures.circuitsOpen += 1 }
        }
        return figures
    }
}
