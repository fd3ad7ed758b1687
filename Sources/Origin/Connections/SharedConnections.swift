/// Decides, for origins that may speak HTTP/2, which fetches of one event loop share a connection,
/// which wait for one, and which opens it.
///
/// At most one fetch at a time opens a connection to an origin; later ones wait for it in order of
/// arrival, so that a burst of fetches does not open as many connections.
/// ``capacityChanged(_:to:availableStreams:)`` reports how many more fetches a connection can
/// carry. The caller carries out decisions soon; if the state has changed by then, it requests a
/// new decision. A value without I/O.
///
/// Invariant: while any fetch waits, one fetch is opening, and no connection has capacity.
package struct SharedConnections: Sendable {
    /// The decision about a fetch that needs a connection.
    package enum Decision: Hashable, Sendable {
        /// Join this connection.
        case join(OriginConnectionID)
        /// Wait for an ``Action`` that names the fetch.
        case wait
        /// Open a connection of its own, through admission control.
        case openOwn
        /// Fail: the maximum number of fetches is waiting.
        case refuse
    }

    /// The next step of a fetch that waited.
    package enum Action: Hashable, Sendable {
        /// The fetch joins this connection.
        case join(UInt64, OriginConnectionID)
        /// The fetch opens a connection of its own, through admission control.
        case openOwn(UInt64)
    }

    /// A connection and the number of further fetches it can carry.
    private struct SharedConnection: Sendable {
        var id: OriginConnectionID
        var availableStreams: Int
    }

    /// The fetch that opens a connection, or waits for a slot to do so.
    private struct Opener: Sendable {
        var fetch: UInt64
        /// True once admission control has granted a slot; until then, capacity elsewhere serves as
        /// well.
        var hasSlot: Bool
    }

    /// The connections to one origin, and the fetches that need one.
    private struct SharedOriginState: Sendable {
        /// Ordered by when they were first offered.
        ///
        /// The first with capacity is used first, so that the last ones become idle.
        var connections: [SharedConnection] = []
        var opener: Opener?
        var waiting: [UInt64] = []

        var isUnused: Bool { connections.isEmpty && opener == nil && waiting.isEmpty }
    }

    private var origins: [OriginAuthority: SharedOriginState] = [:]
    /// Maximum number of fetches that wait for one origin.
    package var waitingMax: Int

    /// Creates a value without connections; `waitingMax` applies per origin.
    package init(waitingMax: Int) {
        self.waitingMax = waitingMax
    }

    /// Number of fetches that wait.
    package var waitingCount: Int { origins.values.reduce(0) { $0 + $1.waiting.count } }
}

// MARK: - Fetches

extension SharedConnections {
    /// Decides how a fetch gets a connection to `authority`, and counts it on the connection it
    /// joins or among those that wait.
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

    /// Records that a fetch opens a connection, or waits for a slot to do so.
    ///
    /// Without effect if another fetch is already opening: no fetch waits for a second one.
    package mutating func openingStarted(
        _ fetch: UInt64, to authority: OriginAuthority, hasSlot: Bool
    ) {
        var origin = origins[authority, default: SharedOriginState()]
        if let opener = origin.opener, opener.fetch != fetch { return }
        origin.opener = Opener(fetch: fetch, hasSlot: hasSlot)
        origins[authority] = origin
    }

    /// Records that a fetch no longer opens a connection: its connection's capacity is known, it
    /// uses another connection, or it has ended.
    ///
    /// - Returns: the steps of the fetches that waited for it.
    package mutating func openingEnded(
        _ fetch: UInt64, to authority: OriginAuthority
    ) -> [Action] {
        guard origins[authority]?.opener?.fetch == fetch else { return [] }
        origins[authority]?.opener = nil
        return dispatchWaiting(authority)
    }

    /// Records that a fetch has ended; returns true if it was the one that opened a connection.
    ///
    /// Then ``openingEnded(_:to:)`` or ``removeWaiting(from:)`` must follow.
    package mutating func fetchEnded(_ fetch: UInt64, _ authority: OriginAuthority) -> Bool {
        guard var origin = origins[authority] else { return false }
        origin.waiting.removeAll { $0 == fetch }
        origins[authority] = origin.isUnused ? nil : origin
        return origin.opener?.fetch == fetch
    }

    /// Removes all fetches that wait for a connection to `authority`, and the one that opens it;
    /// returns the former in order.
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
    /// Records how many more fetches a connection can carry, which may be 0 temporarily; returns
    /// the steps of waiting fetches.
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

    /// Records that a connection accepts no further fetch, or is idle; returns the steps of waiting
    /// fetches.
    package mutating func connectionEnded(
        _ id: OriginConnectionID, to authority: OriginAuthority
    ) -> [Action] {
        guard let index = origins[authority]?.connections.firstIndex(where: { $0.id == id }) else {
            return []
        }
        origins[authority]?.connections.remove(at: index)
        return dispatchWaiting(authority)
    }

    /// Removes all connections, none of which may accept a further fetch.
    package mutating func removeAllConnections() {
        for authority in origins.keys {
            origins[authority]?.connections = []
            if origins[authority]?.isUnused == true { origins[authority] = nil }
        }
    }

    /// Assigns capacity to waiting fetches, and makes the next one open a connection if none does.
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
