package import Ground
import Telemetry

/// The open connections of one event loop, and the order in which they are preempted for new ones
/// when no slot is free.
struct ConnectionTable {
    /// An idle connection with its client.
    typealias IdleConnection = (connection: any ClientConnection, client: Client)
    /// A connection, and since when it was idle when it was examined.
    private typealias Candidate = (connection: any ClientConnection, since: Instant)

    /// The connections; each stores its index in this array.
    private(set) var all: [any ClientConnection] = []
    /// Connections to the data port to preempt, the next one last; see ``IdleConnectionOrder``.
    private var dataCandidates: [Candidate] = []
    /// Connections to the admin port to preempt.
    private var adminCandidates: [Candidate] = []
    /// Connections that may still be examined before the next ``renewBudget()``.
    private var budget = ScanBudget()

    /// Budget of connections that may be examined for preemption, for new connections that found no
    /// free slot and for those whose client has reached its own limit.
    ///
    /// Opening connections costs the sender nothing, while each search examines all connections.
    /// The budget for clients at their own limit is smaller, because refusing those is acceptable.
    private struct ScanBudget {
        /// Connections that may be examined for new connections of any client.
        var forAnyClient = 200_000
        /// Connections that may be examined for new connections of clients at their own limit.
        var forSameClient = 50_000
    }

    /// Idle time below which a connection is preempted only if no loop has one that is idle for
    /// longer: a request may be about to arrive on it.
    static let idleTimeMin = Interval.seconds(1)

    /// Adds a connection.
    mutating func add(_ connection: any ClientConnection) {
        connection.index = all.count
        all.append(connection)
    }

    /// Removes a connection, whose index the last one takes.
    mutating func remove(_ connection: any ClientConnection) {
        let last = all.removeLast()
        guard last !== connection else { return }
        all[connection.index] = last
        last.index = connection.index
    }

    /// Allows further connections to be examined; called every ``EventLoopContext/tick``.
    mutating func renewBudget() {
        budget = ScanBudget()
    }

    /// Removes the next candidate of `side` to preempt, whatever its client.
    ///
    /// - Parameters:
    ///   - side: the plane of the new connection.
    ///   - isLocal: true for a new connection from this machine; another one cannot take a slot
    ///     reserved for loopback clients.
    ///   - bound: only connections idle since before this instant qualify.
    /// - Returns: the connection, which is still idle; `nil` if there is none, or if the budget for
    ///   another search is used up.
    mutating func nextIdle(
        _ side: Plane, isLocal: Bool, before bound: Instant
    ) -> IdleConnection? {
        var mayScan = true
        while true {
            guard let next = side == .data ? dataCandidates.last : adminCandidates.last else {
                guard mayScan, budget.forAnyClient > 0 else { return nil }
                mayScan = false
                budget.forAnyClient -= all.count + 1
                scan(side, isLocal: isLocal)
                continue
            }
            guard next.since < bound else { return nil }
            if side == .data { dataCandidates.removeLast() } else { adminCandidates.removeLast() }
            // It may have become active or have closed since.
            guard next.connection.preemptibleSince == next.since,
                let client = next.connection.client,
                isLocal || side == .data || !client.limiterKey.isLocal
            else { continue }
            return (next.connection, client)
        }
    }

    /// Returns the longest idle connection of `side` that `holder` has itself; `nil` if none is
    /// idle since before `bound` or the budget is used up.
    mutating func longestIdle(
        _ side: Plane, of holder: ConnectionLimiter.ClientKey, before bound: Instant
    ) -> IdleConnection? {
        guard budget.forSameClient > 0 else { return nil }
        budget.forSameClient -= all.count + 1
        var first: (connection: any ClientConnection, client: Client, since: Instant)?
        for connection in all where connection.plane == side {
            guard let client = connection.client, client.limiterKey == holder,
                let since = connection.preemptibleSince, since < first?.since ?? bound
            else { continue }
            first = (connection, client, since)
        }
        return first.map { ($0.connection, $0.client) }
    }

    /// Replaces the candidates of `side`; examines every connection, so it runs seldom.
    private mutating func scan(_ side: Plane, isLocal: Bool) {
        var items: [IdleConnectionOrder.Item] = []
        for (place, connection) in all.enumerated() where connection.plane == side {
            guard let since = connection.preemptibleSince else { continue }
            let isReserved = side == .admin && connection.client?.limiterKey.isLocal == true
            if isReserved, !isLocal { continue }
            items.append(.init(index: place, since: since, isReserved: isReserved))
        }
        let found = IdleConnectionOrder.next(of: items).map { (all[$0.index], $0.since) }
        if side == .data { dataCandidates = found } else { adminCandidates = found }
    }
}

extension EventLoopContext {
    /// Closes an idle connection of `side` on this loop and gives its slot to a new connection.
    ///
    /// - Parameters:
    ///   - side: the plane of the new connection.
    ///   - holder: the key under which the new connection is counted.
    ///   - response: the decision on the new connection, which determines the connections that
    ///     qualify.
    ///   - bound: only connections idle since before this instant qualify.
    /// - Returns: true if no slot was needed or one was transferred; false if none was preempted.
    func preemptIdleConnection(
        _ side: Plane, for holder: ConnectionLimiter.ClientKey,
        _ response: ConnectionLimiter.AdmissionDecision,
        idleBefore bound: Instant = .distantFuture
    ) -> Bool {
        let idle: ConnectionTable.IdleConnection?
        switch response {
        case .admitted: return true
        case .connectionLimitReached:
            idle = connections.nextIdle(side, isLocal: holder.isLocal, before: bound)
        case .clientLimitReached:
            idle = connections.longestIdle(side, of: holder, before: bound)
        }
        // The client of `holder` may have reached its own limit.
        guard let (connection, client) = idle,
            node.slots.transfer(client.limiterKey, to: holder, connection.plane)
        else { return false }
        client.isPreempted = true
        if connection.plane == .data { counters.add(.connectionsEvicted) }
        connection.close()
        return true
    }
}

/// Order in which idle connections are preempted.
package enum IdleConnectionOrder {
    /// An idle connection.
    package struct Item: Hashable, Sendable {
        /// Index in ``ConnectionTable/all``.
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
