import Ground
import Telemetry

/// Places for newcomers when all are taken.
extension Hall {
    /// A connection, and since when it was idle when it was looked at.
    typealias Yielding = (connection: any ClientConnection, since: Instant)

    /// Closes the connection of `side` on this loop that is idle for longest, so that its place is
    /// free when this returns; false if none is idle.
    ///
    /// A newcomer that is not `isLocal` cannot have a place that this machine has.
    func makeRoom(_ side: Door.Side, isLocal: Bool) -> Bool {
        var mayLook = true
        while true {
            guard let next = side == .data ? yielding.data.popLast() : yielding.admin.popLast()
            else {
                guard mayLook else { return false }
                mayLook = false
                look(side, isLocal: isLocal)
                continue
            }
            // It may have been asked for something since, or be gone.
            guard next.connection.mayYieldSince == next.since,
                let client = next.connection.client,
                isLocal || side == .data || !client.holder.isLocal
            else { continue }
            client.hasYielded = true
            node.leave(client.holder, side)
            if side == .data { counters.add(.connectionsYielded) }
            next.connection.close()
            return true
        }
    }

    /// Finds the next ones; every connection is looked at, and therefore seldom.
    private func look(_ side: Door.Side, isLocal: Bool) {
        var items: [IdleOrder.Item] = []
        for (place, connection) in connections.enumerated() where connection.side == side {
            guard let since = connection.mayYieldSince else { continue }
            let isReserved = side == .admin && connection.client?.holder.isLocal == true
            if isReserved, !isLocal { continue }
            items.append(.init(place: place, since: since, isReserved: isReserved))
        }
        let found = IdleOrder.next(of: items).map { (connections[$0.place], $0.since) }
        if side == .data { yielding.data = found } else { yielding.admin = found }
    }
}
