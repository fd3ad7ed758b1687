package import Ground
import Telemetry

/// Preemption of idle connections for new ones when no slot is free.
extension EventLoopContext {
    /// A connection, and since when it was idle when it was examined.
    typealias PreemptionCandidate = (connection: any ClientConnection, since: Instant)

    /// Budget of connections that may be examined for preemption until the next ``tick``, for new
    /// connections that found no free slot and for those whose client has reached its own limit.
    ///
    /// Opening connections costs the sender nothing, while each search examines all connections.
    /// The budget for clients at their own limit is smaller, because refusing those is acceptable.
    struct ScanBudget {
        /// Connections that may be examined for new connections of any client.
        var forAnyClient = 200_000
        /// Connections that may be examined for new connections of clients at their own limit.
        var forSameClient = 50_000
    }

    /// Idle time below which a connection is preempted only if no loop has one that is idle for
    /// longer: a request may be about to arrive on it.
    static let idleTimeMin = Interval.seconds(1)

    /// Closes the longest idle connection of `side` on this loop and gives its slot to a new
    /// connection.
    ///
    /// - Parameters:
    ///   - side: the plane of the new connection.
    ///   - holder: the key of the new connection.
    ///   - response: the decision on the new connection, which determines the connections that
    ///     qualify.
    ///   - bound: only connections idle since before this instant qualify.
    /// - Returns: true if no slot was needed or one was transferred; false if none was preempted.
    func preemptIdleConnection(
        _ side: RequestHandler.Plane, for holder: ConnectionLimiter.ClientKey,
        _ response: ConnectionLimiter.AdmissionDecision,
        idleBefore bound: Instant = .distantFuture
    ) -> Bool {
        switch response {
        case .admitted: true
        case .connectionLimitReached: preemptIdleConnection(side, for: holder, idleBefore: bound)
        case .clientLimitReached: preemptOwnConnection(side, holder, idleBefore: bound)
        }
    }

    /// Preempts any client's connection; one from another machine cannot take a slot reserved for
    /// loopback clients.
    private func preemptIdleConnection(
        _ side: RequestHandler.Plane, for holder: ConnectionLimiter.ClientKey,
        idleBefore bound: Instant
    ) -> Bool {
        let isLocal = holder.isLocal
        var mayLook = true
        while true {
            guard
                let next = side == .data
                    ? preemptionCandidates.data.last : preemptionCandidates.admin.last
            else {
                guard mayLook, scanBudget.forAnyClient > 0 else { return false }
                mayLook = false
                scanBudget.forAnyClient -= connections.count + 1
                scanIdleConnections(side, isLocal: isLocal)
                continue
            }
            guard next.since < bound else { return false }
            if side == .data {
                preemptionCandidates.data.removeLast()
            } else {
                preemptionCandidates.admin.removeLast()
            }
            // It may have become active or have closed since.
            guard next.connection.preemptibleSince == next.since,
                let client = next.connection.client,
                isLocal || side == .data || !client.limiterKey.isLocal
            else { continue }
            return preempt(next.connection, client, to: holder)
        }
    }

    /// Preempts the longest idle connection of the new connection's own client.
    private func preemptOwnConnection(
        _ side: RequestHandler.Plane, _ holder: ConnectionLimiter.ClientKey,
        idleBefore bound: Instant
    ) -> Bool {
        guard scanBudget.forSameClient > 0 else { return false }
        scanBudget.forSameClient -= connections.count + 1
        var first: (connection: any ClientConnection, client: Client, since: Instant)?
        for connection in connections where connection.plane == side {
            guard let client = connection.client, client.limiterKey == holder,
                let since = connection.preemptibleSince, since < first?.since ?? bound
            else { continue }
            first = (connection, client, since)
        }
        guard let first else { return false }
        return preempt(first.connection, first.client, to: holder)
    }

    /// Transfers the slot of `connection` to the new connection and closes it; returns false if the
    /// client of `holder` has reached its own limit.
    private func preempt(
        _ connection: any ClientConnection, _ client: Client,
        to holder: ConnectionLimiter.ClientKey
    ) -> Bool {
        guard node.slots.transfer(client.limiterKey, to: holder, connection.plane) else {
            return false
        }
        client.isPreempted = true
        if connection.plane == .data { counters.add(.connectionsEvicted) }
        connection.close()
        return true
    }

    /// Collects the next candidates; examines every connection, so it runs seldom.
    private func scanIdleConnections(_ side: RequestHandler.Plane, isLocal: Bool) {
        var items: [IdleConnectionOrder.Item] = []
        for (place, connection) in connections.enumerated() where connection.plane == side {
            guard let since = connection.preemptibleSince else { continue }
            let isReserved = side == .admin && connection.client?.limiterKey.isLocal == true
            if isReserved, !isLocal { continue }
            items.append(.init(index: place, since: since, isReserved: isReserved))
        }
        let found = IdleConnectionOrder.next(of: items).map { (connections[$0.index], $0.since) }
        if side == .data {
            preemptionCandidates.data = found
        } else {
            preemptionCandidates.admin = found
        }
    }
}

/// Order in which idle connections are preempted.
package enum IdleConnectionOrder {
    /// An idle connection.
    package struct Item: Hashable, Sendable {
        /// Index in ``EventLoopContext/connections``.
        package var index: Int
        /// Since when it is idle.
        package var since: Instant
        /// True for a loopback connection to the admin port, which may hold a reserved slot.
        package var isReserved: Bool

        /// Creates an item from its parts.
        package init(index: Int, since: Instant, isReserved: Bool = false) {
            self.index = index
            self.since = since
            self.isReserved = isReserved
        }
    }

    /// Maximum length of a candidate list; one list serves that many new connections, which may
    /// arrive faster than lists can be made.
    package static let countMax = 64

    /// Returns the connections to preempt first; the longest idle one is last in the list, and
    /// reserved ones are preempted after all others.
    ///
    /// A connection that becomes idle later ranks behind all of them, so the list stays valid for
    /// those that are idle unchanged.
    package static func next(of items: [Item]) -> [Item] {
        let first = items.sorted {
            $0.isReserved == $1.isReserved ? $0.since < $1.since : $1.isReserved
        }
        return first.prefix(countMax).reversed()
    }
}
