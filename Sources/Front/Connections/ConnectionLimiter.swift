package import Ground

/// Count of the open connections of one port, with admission of new ones; a value type.
package struct ConnectionLimiter: Sendable {
    /// The limits of one port.
    package struct Limits: Hashable, Sendable {
        /// Maximum number of open connections.
        package var connectionsMax: Int
        /// Number of slots, of ``connectionsMax``, that only loopback clients may use.
        package var reservedForLocal = 0
        /// Maximum number of connections of one client; `nil` for no limit per client.
        package var perClientMax: Int?
        /// True if loopback clients are exempt from ``perClientMax``.
        package var exemptsLocal = false

        /// Creates limits from their parts.
        package init(
            connectionsMax: Int, reservedForLocal: Int = 0, perClientMax: Int? = nil,
            exemptsLocal: Bool = false
        ) {
            self.connectionsMax = connectionsMax
            self.reservedForLocal = reservedForLocal
            self.perClientMax = perClientMax
            self.exemptsLocal = exemptsLocal
        }
    }

    /// Key under which a connection is counted.
    package struct ClientKey: Hashable, Sendable {
        /// Address prefix that identifies the client; `nil` if it is unknown, or a proxy for many
        /// clients.
        package var number: UInt128?
        /// True for a loopback address.
        package var isLocal: Bool

        /// Creates the key of a client at `address`.
        package init(_ address: IPAddress?) {
            number = address?.clientPrefix
            isLocal = address?.unmapped.isLoopback ?? false
        }

        /// Returns the key of a connection that is a proxy's for many clients, or has yet to name
        /// its client; no limit per client applies.
        package static func proxy(_ address: IPAddress?) -> ClientKey {
            var holder = ClientKey(address)
            holder.number = nil
            return holder
        }
    }

    /// The decision on a new connection.
    package enum AdmissionDecision: Hashable, Sendable {
        /// Admitted: counted until ``remove(_:)``.
        case admitted
        /// All slots that the client may use are taken.
        case connectionLimitReached
        /// The client has reached its own limit.
        case clientLimitReached
    }

    /// Number of open connections.
    package private(set) var openCount = 0
    /// Number of open connections from this machine.
    private var localCount = 0
    /// Number of open connections by ``ClientKey/number``; none is 0.
    private var byClient: [UInt128: Int] = [:]

    /// Creates a limiter without connections.
    package init() {}

    /// Returns the default limit per client for a port of `places` connections.
    ///
    /// The limit is a quarter of them, or 256 if that is more, but at most three quarters.
    ///
    /// - Parameter places: ``Limits/connectionsMax`` of the port.
    /// - Returns: the maximum number of connections of one client.
    package static func defaultPerClientMax(of places: Int) -> Int {
        min(max(256, places / 4), max(1, places - places / 4))
    }

    /// Decides whether a new connection is admitted, and counts it if so.
    package mutating func admit(_ holder: ClientKey, _ limits: Limits) -> AdmissionDecision {
        guard isBelowClientLimit(holder, limits) else { return .clientLimitReached }
        guard openCount < limits.connectionsMax,
            holder.isLocal
                || openCount - localCount < limits.connectionsMax - limits.reservedForLocal
        else { return .connectionLimitReached }
        add(holder)
        return .admitted
    }

    /// Moves the slot of `old` to `new`; returns false, with nothing changed, if the client of
    /// `new` has reached its own limit.
    ///
    /// Used when a proxy has named its client, and when an idle connection is preempted.
    package mutating func transfer(_ old: ClientKey, to new: ClientKey, _ limits: Limits) -> Bool {
        remove(old)
        let hasShare = isBelowClientLimit(new, limits)
        add(hasShare ? new : old)
        return hasShare
    }

    /// Counts a connection.
    private mutating func add(_ holder: ClientKey) {
        openCount += 1
        if holder.isLocal { localCount += 1 }
        if let number = holder.number { byClient[number, default: 0] += 1 }
    }

    /// Removes a connection from the count.
    package mutating func remove(_ holder: ClientKey) {
        openCount -= 1
        if holder.isLocal { localCount -= 1 }
        guard let number = holder.number, let count = byClient[number] else { return }
        byClient[number] = count > 1 ? count - 1 : nil
    }

    /// Returns true if the client may have another connection.
    private func isBelowClientLimit(_ holder: ClientKey, _ limits: Limits) -> Bool {
        guard let perClient = limits.perClientMax, let number = holder.number,
            !(holder.isLocal && limits.exemptsLocal)
        else { return true }
        return byClient[number, default: 0] < perClient
    }
}
