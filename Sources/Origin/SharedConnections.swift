/// Decides, for origins that may speak HTTP/2, which fetches of one event loop share a connection,
/// which wait for one, and which opens it.
///
/// At most one fetch at a time opens a connection to an origin; those that come meanwhile wait for
/// it in the order in which they came, so that many that come at once do not open as many. Which
/// connection has room for how many more is told by ``offers(_:to:room:)``. Decisions are for the
/// shell to carry out soon; what has changed by then it asks anew.
///
/// Invariant: while anybody waits, somebody opens, and no connection has room.
package struct SharedConnections: Sendable {
    /// What a fetch does that wants a connection.
    package enum Advice: Hashable, Sendable {
        case join(ConnectionID)
        /// Until a ``Step`` is of it.
        case wait
        /// Asks for one of its own.
        case ask
        /// As many wait as may.
        case refuse
    }

    /// What becomes of a fetch that waited.
    package enum Step: Hashable, Sendable {
        case join(UInt64, ConnectionID)
        /// Asks for a connection of its own.
        case ask(UInt64)
    }

    private struct Share: Sendable {
        var id: ConnectionID
        var room: Int
    }

    private struct Opener: Sendable {
        var fetch: UInt64
        /// The gate has given it a place; until then room elsewhere is as good.
        var hasPlace: Bool
    }

    private struct Origin: Sendable {
        /// In the order in which they were first offered; the first with room is filled first, so
        /// that the last ones become idle.
        var shares: [Share] = []
        var opener: Opener?
        var waiting: [UInt64] = []

        var isQuiet: Bool { shares.isEmpty && opener == nil && waiting.isEmpty }
    }

    private var origins: [OriginAuthority: Origin] = [:]
    /// Fetches that may wait for one origin.
    package var waitingMax: Int

    package init(waitingMax: Int) {
        self.waitingMax = waitingMax
    }

    /// Fetches that wait.
    package var waitingCount: Int { origins.values.reduce(0) { $0 + $1.waiting.count } }
}

// MARK: - Fetches

extension SharedConnections {
    /// A fetch wants a connection to `authority`.
    package mutating func wanted(by fetch: UInt64, to authority: OriginAuthority) -> Advice {
        guard var origin = origins[authority] else { return .ask }
        if let index = origin.shares.firstIndex(where: { $0.room > 0 }) {
            origin.shares[index].room -= 1
            origins[authority] = origin
            return .join(origin.shares[index].id)
        }
        guard let opener = origin.opener, opener.fetch != fetch else { return .ask }
        guard origin.waiting.count < waitingMax else { return .refuse }
        origin.waiting.append(fetch)
        origins[authority] = origin
        return .wait
    }

    /// A fetch that asked for a connection of its own opens one, or waits for a place; nobody waits
    /// for a second one that does.
    package mutating func opens(
        _ fetch: UInt64, to authority: OriginAuthority, hasPlace: Bool
    ) {
        var origin = origins[authority, default: Origin()]
        if let opener = origin.opener, opener.fetch != fetch { return }
        origin.opener = Opener(fetch: fetch, hasPlace: hasPlace)
        origins[authority] = origin
    }

    /// A fetch opens no connection any more: it is known how many its own can carry, it uses
    /// another one, or it is over.
    package mutating func opensNoMore(
        _ fetch: UInt64, to authority: OriginAuthority
    ) -> [Step] {
        guard origins[authority]?.opener?.fetch == fetch else { return [] }
        origins[authority]?.opener = nil
        return settled(authority)
    }

    /// A fetch is over; tells whether it was the one that opened.
    package mutating func left(_ fetch: UInt64, _ authority: OriginAuthority) -> Bool {
        guard var origin = origins[authority] else { return false }
        origin.waiting.removeAll { $0 == fetch }
        origins[authority] = origin.isQuiet ? nil : origin
        return origin.opener?.fetch == fetch
    }

    /// All that wait for a connection to `authority` wait no more; returns them in order.
    package mutating func dismissed(from authority: OriginAuthority) -> [UInt64] {
        guard var origin = origins[authority] else { return [] }
        let waiting = origin.waiting
        origin.waiting = []
        origin.opener = nil
        origins[authority] = origin.isQuiet ? nil : origin
        return waiting
    }
}

// MARK: - Connections

extension SharedConnections {
    /// A connection has room for so many fetches more, or for none for the time being.
    package mutating func offers(
        _ id: ConnectionID, to authority: OriginAuthority, room: Int
    ) -> [Step] {
        var origin = origins[authority, default: Origin()]
        if let index = origin.shares.firstIndex(where: { $0.id == id }) {
            origin.shares[index].room = room
        } else {
            origin.shares.append(Share(id: id, room: room))
        }
        origins[authority] = origin
        return settled(authority)
    }

    /// A connection takes no fetch more, or is idle.
    package mutating func ended(
        _ id: ConnectionID, to authority: OriginAuthority
    ) -> [Step] {
        guard let index = origins[authority]?.shares.firstIndex(where: { $0.id == id }) else {
            return []
        }
        origins[authority]?.shares.remove(at: index)
        return settled(authority)
    }

    /// No connection that there is takes a fetch more.
    package mutating func drained() {
        for authority in origins.keys {
            origins[authority]?.shares = []
            if origins[authority]?.isQuiet == true { origins[authority] = nil }
        }
    }

    /// Gives room to those that wait, and has the next one open if nobody does.
    private mutating func settled(_ authority: OriginAuthority) -> [Step] {
        guard var origin = origins[authority] else { return [] }
        var steps: [Step] = []
        while let index = origin.shares.firstIndex(where: { $0.room > 0 }) {
            let fetch: UInt64
            if let opener = origin.opener, !opener.hasPlace {
                fetch = opener.fetch
                origin.opener = nil
            } else if !origin.waiting.isEmpty {
                fetch = origin.waiting.removeFirst()
            } else {
                break
            }
            origin.shares[index].room -= 1
            steps.append(.join(fetch, origin.shares[index].id))
        }
        if origin.opener == nil, !origin.waiting.isEmpty {
            let fetch = origin.waiting.removeFirst()
            origin.opener = Opener(fetch: fetch, hasPlace: false)
            steps.append(.ask(fetch))
        }
        origins[authority] = origin.isQuiet ? nil : origin
        return steps
    }
}
