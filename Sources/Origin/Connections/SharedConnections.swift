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
    package enum Decision: Hashable, Sendable {
        case join(OriginConnectionID)
        /// Until a ``Action`` is of it.
        case wait
        /// Asks for one of its own.
        case openOwn
        /// As many wait as may.
        case refuse
    }

    /// What becomes of a fetch that waited.
    package enum Action: Hashable, Sendable {
        case join(UInt64, OriginConnectionID)
        /// Asks for a connection of its own.
        case openOwn(UInt64)
    }

    private struct SharedConnection: Sendable {
        var id: OriginConnectionID
        var availableStreams: Int
    }

    private struct Opener: Sendable {
        var fetch: UInt64
        /// The gate has given it a place; until then room elsewhere is as good.
        var hasSlot: Bool
    }

    private struct SharedOriginState: Sendable {
        /// In the order in which they were first offered; the first with room is filled first, so
        /// that the last ones become idle.
        var connections: [SharedConnection] = []
        var opener: Opener?
        var waiting: [UInt64] = []

        var isUnused: Bool { connections.isEmpty && opener == nil && waiting.isEmpty }
    }

    private var origins: [OriginAuthority: SharedOriginState] = [:]
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
    package mutating func connectionDecision(by fetch: UInt64, to authority: OriginAuthority)
        -> Decision
    {
        guard var origin = origins[authority] else { return .openOwn }
        if let index = origin.connections.firstIndex(where: { $0.availableStreams > 0 }) {
            origin.connections[index].availableStreams -= 1
            origins[authority] = origin
            return .join(origin.connections[index].id)
        }
        guard let opener = origin.opener, opener.fetch != fetch else { return .openOwn }
        guard origin.waiting.count < waitingMax else { return .refuse }
        origin.waiting.append(fetch)
        origins[authority] = origin
        return .wait
    }

    /// A fetch that asked for a connection of its own opens one, or waits for a place; nobody waits
    /// for a second one that does.
    package mutating func openingStarted(
        _ fetch: UInt64, to authority: OriginAuthority, hasSlot: Bool
    ) {
        var origin = origins[authority, default: SharedOriginState()]
        if let opener = origin.opener, opener.fetch != fetch { return }
        origin.opener = Opener(fetch: fetch, hasSlot: hasSlot)
        origins[authority] = origin
    }

    /// A fetch opens no connection any more: it is known how many its own can carry, it uses
    /// another one, or it is over.
    package mutating func openingEnded(
        _ fetch: UInt64, to authority: OriginAuthority
    ) -> [Action] {
        guard origins[authority]?.opener?.fetch == fetch else { return [] }
        origins[authority]?.opener = nil
        return dispatchWaiting(authority)
    }

    /// A fetch is over; tells whether it was the one that opened.
    package mutating func fetchEnded(_ fetch: UInt64, _ authority: OriginAuthority) -> Bool {
        guard var origin = origins[authority] else { return false }
        origin.waiting.removeAll { $0 == fetch }
        origins[authority] = origin.isUnused ? nil : origin
        return origin.opener?.fetch == fetch
    }

    /// All that wait for a connection to `authority` wait no more; returns them in order.
    package mutating func removeWaiting(from authority: OriginAuthority) -> [UInt64] {
        guard var origin = origins[authority] else { return [] }
        let waiting = origin.waiting
        origin.waiting = []
        origin.opener = nil
        origins[authority] = origin.isUnused ? nil : origin
        return waiting
    }
}

// MARK: - Connections

extension SharedConnections {
    /// A connection has room for so many fetches more, or for none for the time being.
    package mutating func capacityChanged(
        _ id: OriginConnectionID, to authority: OriginAuthority, availableStreams: Int
    ) -> [Action] {
        var origin = origins[authority, default: SharedOriginState()]
        if let index = origin.connections.firstIndex(where: { $0.id == id }) {
            origin.connections[index].availableStreams = availableStreams
        } else {
            origin.connections.append(SharedConnection(id: id, availableStreams: availableStreams))
        }
        origins[authority] = origin
        return dispatchWaiting(authority)
    }

    /// A connection takes no fetch more, or is idle.
    package mutating func connectionEnded(
        _ id: OriginConnectionID, to authority: OriginAuthority
    ) -> [Action] {
        guard let index = origins[authority]?.connections.firstIndex(where: { $0.id == id }) else {
            return []
        }
        origins[authority]?.connections.remove(at: index)
        return dispatchWaiting(authority)
    }

    /// No connection that there is takes a fetch more.
    package mutating func removeAllConnections() {
        for authority in origins.keys {
            origins[authority]?.connections = []
            if origins[authority]?.isUnused == true { origins[authority] = nil }
        }
    }

    /// Gives room to those that wait, and has the next one open if nobody does.
    private mutating func dispatchWaiting(_ authority: OriginAuthority) -> [Action] {
        guard var origin = origins[authority] else { return [] }
        var steps: [Action] = []
        while let index = origin.connections.firstIndex(where: { $0.availableStreams > 0 }) {
            let fetch: UInt64
            if let opener = origin.opener, !opener.hasSlot {
                fetch = opener.fetch
                origin.opener = nil
            } else if !origin.waiting.isEmpty {
                fetch = origin.waiting.removeFirst()
            } else {
                break
            }
            origin.connections[index].availableStreams -= 1
            steps.append(.join(fetch, origin.connections[index].id))
        }
        if origin.opener == nil, !origin.waiting.isEmpty {
            let fetch = origin.waiting.removeFirst()
            origin.opener = Opener(fetch: fetch, hasSlot: false)
            steps.append(.openOwn(fetch))
        }
        origins[authority] = origin.isUnused ? nil : origin
        return steps
    }
}
