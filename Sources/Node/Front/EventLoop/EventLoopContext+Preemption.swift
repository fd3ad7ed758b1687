package import Ground
import Telemetry

/// Places for newcomers when all are taken that they may have.
extension EventLoopContext {
    /// A connection, and since when it was idle when it was looked at.
    typealias PreemptionCandidate = (connection: any ClientConnection, since: Instant)

    /// How many connections are looked at, until the next ``tick``, for newcomers: for those who
    /// found all places taken, and for those whose clients have their shares.
    ///
    /// Newcomers cost nothing to whoever sends them, and a look the time of all connections. Of a
    /// client that has its share no newcomer has to get in.
    struct ScanBudget {
        var forAnyClient = 200_000
        var forSameClient = 50_000
    }

    /// A connection that has been idle for less may be one that is about to ask: it goes only where
    /// no loop has another.
    static let idleTimeMin = Interval.seconds(1)

    /// Closes the connection of `side` on this loop that is idle for longest, and gives its place
    /// to a newcomer that is `holder` and was given `answer`; false if none was idle before
    /// `bound`.
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

    /// A newcomer that is not of this machine cannot have a place that this machine has.
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
            // It may have been asked for something since, or be gone.
            guard next.connection.preemptibleSince == next.since,
                let client = next.connection.client,
                isLocal || side == .data || !client.limiterKey.isLocal
            else { continue }
            return preempt(next.connection, client, to: holder)
        }
    }

    /// The place of one of the newcomer's own connections.
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

    private func preempt(
        _ connection: any ClientConnection, _ client: Client,
        to holder: ConnectionLimiter.ClientKey
    ) -> Bool {
        guard node.transferConnection(client.limiterKey, to: holder, connection.plane) else {
            return false
        }
        client.isPreempted = true
        if connection.plane == .data { counters.add(.connectionsEvicted) }
        connection.close()
        return true
    }

    /// Finds the next ones; every connection is looked at, and therefore seldom.
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

/// Which idle connections give up their places to new ones.
package enum IdleConnectionOrder {
    package struct Item: Hashable, Sendable {
        /// Where the hall keeps the connection.
        package var index: Int
        package var since: Instant
        /// It is one of this machine, and may have a place that is kept for that.
        package var isReserved: Bool

        package init(index: Int, since: Instant, isReserved: Bool = false) {
            self.index = index
            self.since = since
            self.isReserved = isReserved
        }
    }

    /// A list is made once for so many newcomers, who may come faster than lists can be made.
    package static let countMax = 64

    /// Those that go first: the longest idle one is the last of the list, and those of this machine
    /// come behind all others.
    ///
    /// Whoever becomes idle later comes behind all of them, so that the list stays right for those
    /// that are idle as long as it says.
    package static func next(of items: [Item]) -> [Item] {
        let first = items.sorted {
            $0.isReserved == $1.isReserved ? $0.since < $1.since : $1.isReserved
        }
        return first.prefix(countMax).reversed()
    }
}
