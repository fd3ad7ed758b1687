import Ground
import Telemetry

/// Places for newcomers when all are taken that they may have.
extension Hall {
    /// A connection, and since when it was idle when it was looked at.
    typealias Yielding = (connection: any ClientConnection, since: Instant)

    /// How many connections are looked at, until the next ``tick``, for newcomers: for those who
    /// found all places taken, and for those whose clients have their shares.
    ///
    /// Newcomers cost nothing to whoever sends them, and a look the time of all connections. Of a
    /// client that has its share no newcomer has to get in.
    struct Looks {
        var forAnyone = 200_000
        var forOwn = 50_000
    }

    /// A connection that has been idle for less may be one that is about to ask: it goes only where
    /// no loop has another.
    static let settledAfter = Interval.seconds(1)

    /// Closes the connection of `side` on this loop that is idle for longest, and gives its place
    /// to a newcomer that is `holder` and was given `answer`; false if none was idle before
    /// `bound`.
    func makeRoom(
        _ side: Door.Side, for holder: ConnectionPlaces.Holder, _ answer: ConnectionPlaces.Answer,
        idleBefore bound: Instant = .distantFuture
    ) -> Bool {
        switch answer {
        case .enters: true
        case .full: makeRoom(side, for: holder, idleBefore: bound)
        case .shareIsTaken: makeOwnRoom(side, holder, idleBefore: bound)
        }
    }

    /// A newcomer that is not of this machine cannot have a place that this machine has.
    private func makeRoom(
        _ side: Door.Side, for holder: ConnectionPlaces.Holder, idleBefore bound: Instant
    ) -> Bool {
        let isLocal = holder.isLocal
        var mayLook = true
        while true {
            guard let next = side == .data ? yielding.data.last : yielding.admin.last else {
                guard mayLook, looks.forAnyone > 0 else { return false }
                mayLook = false
                looks.forAnyone -= connections.count + 1
                look(side, isLocal: isLocal)
                continue
            }
            guard next.since < bound else { return false }
            if side == .data { yielding.data.removeLast() } else { yielding.admin.removeLast() }
            // It may have been asked for something since, or be gone.
            guard next.connection.mayYieldSince == next.since,
                let client = next.connection.client,
                isLocal || side == .data || !client.holder.isLocal
            else { continue }
            return yield(next.connection, client, to: holder)
        }
    }

    /// The place of one of the newcomer's own connections.
    private func makeOwnRoom(
        _ side: Door.Side, _ holder: ConnectionPlaces.Holder, idleBefore bound: Instant
    ) -> Bool {
        guard looks.forOwn > 0 else { return false }
        looks.forOwn -= connections.count + 1
        var first: (connection: any ClientConnection, client: Client, since: Instant)?
        for connection in connections where connection.side == side {
            guard let client = connection.client, client.holder == holder,
                let since = connection.mayYieldSince, since < first?.since ?? bound
            else { continue }
            first = (connection, client, since)
        }
        guard let first else { return false }
        return yield(first.connection, first.client, to: holder)
    }

    private func yield(
        _ connection: any ClientConnection, _ client: Client,
        to holder: ConnectionPlaces.Holder
    ) -> Bool {
        guard node.movePlace(client.holder, to: holder, connection.side) else { return false }
        client.hasYielded = true
        if connection.side == .data { counters.add(.connectionsYielded) }
        connection.close()
        return true
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
