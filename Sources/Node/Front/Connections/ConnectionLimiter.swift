package import Ground

/// The connections that are open on one port, and which further ones get in: a value.
package struct ConnectionLimiter: Sendable {
    package struct Limits: Hashable, Sendable {
        /// Connections at one time.
        package var connectionsMax: Int
        /// Of them, those that only the machine itself may have.
        package var reservedForLocal = 0
        /// Connections of one client; nil for as many as there are places.
        package var perClientMax: Int?
        /// The machine itself may have more than ``perClient``.
        package var exemptsLocal = false

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

    /// Who has a place, or wants one.
    package struct ClientKey: Hashable, Sendable {
        /// ``IPAddress/clientNumber``; nil for one that is not known, or that speaks for many.
        package var number: UInt128?
        /// It is this machine.
        package var isLocal: Bool

        package init(_ address: IPAddress?) {
            number = address?.clientPrefix
            isLocal = address?.unmapped.isLoopback ?? false
        }

        /// A proxy that has not said yet for whom it speaks.
        package static func proxy(_ address: IPAddress?) -> ClientKey {
            var holder = ClientKey(address)
            holder.number = nil
            return holder
        }
    }

    package enum AdmissionDecision: Hashable, Sendable {
        /// It counts until ``leave(_:)``.
        case admitted
        /// All places are taken that it may have.
        case connectionLimitReached
        /// Its client has as many as one client may have.
        case clientLimitReached
    }

    package private(set) var openCount = 0
    private var localCount = 0
    private var byClient: [UInt128: Int] = [:]

    package init() {}

    /// How many of `places` one client may have, unless an operator says so: however few there are,
    /// not all.
    package static func defaultPerClientMax(of places: Int) -> Int {
        min(max(256, places / 4), max(1, places - places / 4))
    }

    package mutating func admit(_ holder: ClientKey, _ limits: Limits) -> AdmissionDecision {
        guard isBelowClientLimit(holder, limits) else { return .clientLimitReached }
        guard openCount < limits.connectionsMax,
            holder.isLocal
                || openCount - localCount < limits.connectionsMax - limits.reservedForLocal
        else { return .connectionLimitReached }
        add(holder)
        return .admitted
    }

    /// Gives the place of `old` to `new`; false, and it stays as it was, if that one has as many
    /// others as it may have.
    ///
    /// A proxy has said for whom it speaks, or an idle client makes room.
    package mutating func transfer(_ old: ClientKey, to new: ClientKey, _ limits: Limits) -> Bool {
        remove(old)
        let hasShare = isBelowClientLimit(new, limits)
        add(hasShare ? new : old)
        return hasShare
    }

    private mutating func add(_ holder: ClientKey) {
        openCount += 1
        if holder.isLocal { localCount += 1 }
        if let number = holder.number { byClient[number, default: 0] += 1 }
    }

    package mutating func remove(_ holder: ClientKey) {
        openCount -= 1
        if holder.isLocal { localCount -= 1 }
        guard let number = holder.number, let count = byClient[number] else { return }
        byClient[number] = count > 1 ? count - 1 : nil
    }

    private func isBelowClientLimit(_ holder: ClientKey, _ limits: Limits) -> Bool {
        guard let perClient = limits.perClientMax, let number = holder.number,
            !(holder.isLocal && limits.exemptsLocal)
        else { return true }
        return byClient[number, default: 0] < perClient
    }
}
