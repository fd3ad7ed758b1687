package import Ground

/// How things stand between this node and one origin.
package struct OriginStatus: Hashable, Sendable {
    package var origin: OriginAuthority
    /// Connections open or being opened, those idle included.
    package var connections: Int
    package var idle: Int
    /// Fetches that wait for a connection.
    package var waiting: Int
    package var circuit: CircuitBreaker.State
    /// Failed fetches since the last whole answer.
    package var failures: Int
    /// Until the next fetch may try an open circuit; nil if it is not open.
    package var retryAfter: Interval?
}

/// Sums over all origins.
package struct OriginStatistics: Hashable, Sendable {
    package var connections = 0
    package var idle = 0
    package var waiting = 0
    /// Circuits that are not closed.
    package var circuitsOpen = 0
    /// Circuits opened since the start.
    package var circuitOpenings: UInt64 = 0
    /// Connections ended because more came on them than an answer.
    package var overruns: UInt64 = 0
    /// Names whose addresses are remembered.
    package var cachedNames = 0
}

extension OriginAdmission {
    /// One for each origin of which something is known, by name.
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
        }.sorted { one, other in
            let (text, otherText) = (one.origin.description, other.origin.description)
            guard text == otherText else { return text < otherText }
            return !one.origin.isOperatorConfigured && other.origin.isOperatorConfigured
        }
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
