package import Ground

/// The identity of a connection of one ``OriginClient``; never reused.
package struct OriginConnectionID: Hashable, Sendable {
    /// Serial number of the connection within its client.
    package var number: UInt64

    /// Creates an identity from a serial number.
    package init(_ number: UInt64) {
        self.number = number
    }
}

/// The connections of one event loop: decides which one a fetch uses and how long idle ones are
/// kept.
///
/// Invariant: every open connection is counted once in ``openCount``; those in `idle` run no fetch.
/// An idle list is ordered by the instant at which its connections became idle, the latest last. A
/// value without I/O.
package struct OriginConnectionPool: Sendable {
    private struct Idle: Sendable {
        var id: OriginConnectionID
        var since: Instant
    }

    private var settings: OriginSettings
    /// Idle connections by origin.
    private var idle: [OriginAuthority: [Idle]] = [:]
    /// The origins of the idle connections.
    private var origins: [OriginConnectionID: OriginAuthority] = [:]

    /// Number of connections that are open or being opened.
    package private(set) var openCount = 0
    /// Number of connections that run no fetch.
    package var idleCount: Int { origins.count }

    /// Creates an empty pool with the connection limits and `idleConnectionLimit` of `settings`.
    package init(settings: OriginSettings) {
        self.settings = settings
    }

    /// Adopts other limits; open connections stay open.
    package mutating func reconfigure(_ settings: OriginSettings) {
        self.settings = settings
    }

    /// Removes and returns the idle connection to `origin` that was used last; `nil` if there is
    /// none.
    package mutating func takeIdleConnection(to origin: OriginAuthority) -> OriginConnectionID? {
        guard var list = idle[origin], let latest = list.popLast() else { return nil }
        idle[origin] = list.isEmpty ? nil : list
        origins[latest.id] = nil
        return latest.id
    }

    /// Decides whether a connection may be opened, in place of the oldest idle one if necessary,
    /// and counts it unless refused.
    package mutating func reserveConnection() -> ConnectionReservation {
        if openCount < settings.connectionsMax {
            openCount += 1
            return .open
        }
        guard let oldest = oldestIdle() else { return .refuse }
        removeIdle(oldest)
        // Both are counted until the closing of the old one is reported, so the count may exceed
        // the limit briefly.
        openCount += 1
        return .replace(oldest)
    }

    /// Adds a connection that may carry another response to the idle ones.
    ///
    /// - Returns: the connections to close, which may include the one released.
    package mutating func connectionReleased(
        _ id: OriginConnectionID, to origin: OriginAuthority, now: Instant
    ) -> [OriginConnectionID] {
        guard
            settings.idleConnectionsPerOriginMax > 0, settings.idleConnectionsMax > 0,
            settings.idleConnectionLimit > .zero
        else { return [id] }
        var closing: [OriginConnectionID] = []
        if let list = idle[origin], list.count >= settings.idleConnectionsPerOriginMax,
            let first = list.first
        {
            removeIdle(first.id)
            closing.append(first.id)
        } else if idleCount >= settings.idleConnectionsMax, let oldest = oldestIdle() {
            removeIdle(oldest)
            closing.append(oldest)
        }
        idle[origin, default: []].append(Idle(id: id, since: now))
        origins[id] = origin
        return closing
    }

    /// Records that a connection is closed, whichever side closed it and whether or not it was
    /// idle.
    package mutating func connectionClosed(_ id: OriginConnectionID) {
        precondition(openCount > 0, "closed \(id) of no open connection")
        openCount -= 1
        removeIdle(id)
    }

    /// Removes and returns the connections that were idle for too long, oldest first.
    package mutating func removeExpired(now: Instant) -> [OriginConnectionID] {
        let expired = idle.values.joined()
            .filter { $0.since + settings.idleConnectionLimit <= now }
            .sorted { ($0.since, $0.id.number) < ($1.since, $1.id.number) }
        for entry in expired { removeIdle(entry.id) }
        return expired.map(\.id)
    }

    /// The instant at which the next idle connection is to be closed; `nil` if none is idle.
    package var deadline: Instant? {
        idle.values.compactMap(\.first?.since).min().map { $0 + settings.idleConnectionLimit }
    }

    /// Removes and returns all idle connections, oldest first.
    package mutating func removeAllIdle() -> [OriginConnectionID] {
        let all = origins.keys.sorted { $0.number < $1.number }
        idle = [:]
        origins = [:]
        return all
    }

    private func oldestIdle() -> OriginConnectionID? {
        idle.values.compactMap(\.first)
            .min { ($0.since, $0.id.number) < ($1.since, $1.id.number) }?.id
    }

    private mutating func removeIdle(_ id: OriginConnectionID) {
        guard let origin = origins.removeValue(forKey: id) else { return }
        idle[origin]?.removeAll { $0.id == id }
        if idle[origin]?.isEmpty == true { idle[origin] = nil }
    }
}

/// The decision whether a connection may be opened.
package enum ConnectionReservation: Hashable, Sendable {
    /// Open a connection.
    case open
    /// Close this idle connection and open one in its place.
    case replace(OriginConnectionID)
    /// Fail the fetch: the maximum number of connections is busy.
    case refuse
}
