package import Ground

/// The connections that are open on one port, and which further ones get in: a value.
package struct ConnectionPlaces: Sendable {
    package struct Limits: Hashable, Sendable {
        /// Connections at one time.
        package var places: Int
        /// Of them, those that only the machine itself may have.
        package var reserved = 0
        /// Connections of one client; nil for as many as there are places.
        package var perClient: Int?
        /// The machine itself may have more than ``perClient``.
        package var sparesLocal = false

        package init(
            places: Int, reserved: Int = 0, perClient: Int? = nil, sparesLocal: Bool = false
        ) {
            self.places = places
            self.reserved = reserved
            self.perClient = perClient
            self.sparesLocal = sparesLocal
        }
    }

    /// Who has a place, or wants one.
    package struct Holder: Hashable, Sendable {
        /// ``IPAddress/clientNumber``; nil for one that is not known, or that speaks for many.
        package var number: UInt128?
        /// It is this machine.
        package var isLocal: Bool

        package init(_ address: IPAddress?) {
            number = address?.clientNumber
            isLocal = address?.unmapped.isLoopback ?? false
        }

        /// A proxy that has not said yet for whom it speaks.
        package static func proxy(_ address: IPAddress?) -> Holder {
            var holder = Holder(address)
            holder.number = nil
            return holder
        }
    }

    package enum Answer: Hashable, Sendable {
        /// It counts until ``leave(_:)``.
        case enters
        /// All places are taken that it may have.
        case full
        /// Its client has as many as one client may have.
        case shareIsTaken
    }

    package private(set) var open = 0
    private var local = 0
    private var byClient: [UInt128: Int] = [:]

    package init() {}

    /// How many of `places` one client may have, unless an operator says so: however few there are,
    /// not all.
    package static func share(of places: Int) -> Int {
        min(max(256, places / 4), max(1, places - places / 4))
    }

    package mutating func enter(_ holder: Holder, _ limits: Limits) -> Answer {
        guard hasShare(holder, limits) else { return .shareIsTaken }
        guard open < limits.places,
            holder.isLocal || open - local < limits.places - limits.reserved
        else { return .full }
        take(holder)
        return .enters
    }

    /// Gives the place of `old` to `new`; false, and it stays as it was, if that one has as many
    /// others as it may have.
    ///
    /// A proxy has said for whom it speaks, or an idle client makes room.
    package mutating func move(_ old: Holder, to new: Holder, _ limits: Limits) -> Bool {
        leave(old)
        let hasShare = hasShare(new, limits)
        take(hasShare ? new : old)
        return hasShare
    }

    private mutating func take(_ holder: Holder) {
        open += 1
        if holder.isLocal { local += 1 }
        if let number = holder.number { byClient[number, default: 0] += 1 }
    }

    package mutating func leave(_ holder: Holder) {
        open -= 1
        if holder.isLocal { local -= 1 }
        guard let number = holder.number, let count = byClient[number] else { return }
        byClient[number] = count > 1 ? count - 1 : nil
    }

    private func hasShare(_ holder: Holder, _ limits: Limits) -> Bool {
        guard let perClient = limits.perClient, let number = holder.number,
            !(holder.isLocal && limits.sparesLocal)
        else { return true }
        return byClient[number, default: 0] < perClient
    }
}
