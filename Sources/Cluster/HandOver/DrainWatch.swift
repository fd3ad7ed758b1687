package import Ground

/// The end of handing everything over: when nothing is left, or when nobody answers any more.
package struct DrainWatch: Sendable {
    /// What has become of it.
    package enum Outcome: Hashable, Sendable {
        /// Nothing is left; true if all of it was taken.
        case over(isComplete: Bool)
        /// Nobody has answered anything for ``standstill``.
        case standsStill
    }

    /// What is left.
    package struct Rest: Hashable, Sendable {
        /// Offers to be made, or not answered, or holdings not looked at.
        package var isNone: Bool
        /// The ring still has this node.
        package var isOnRing: Bool
        /// Members that could not be offered what they own.
        package var hasMissed: Bool

        package init(isNone: Bool, isOnRing: Bool, hasMissed: Bool) {
            self.isNone = isNone
            self.isOnRing = isOnRing
            self.hasMissed = hasMissed
        }
    }

    /// How long a node waits while nobody answers it anything.
    package static let standstill = Interval.seconds(30)

    private var progressAt: Instant
    private var isIncomplete = false

    package init(now: Instant) {
        progressAt = now
    }

    /// So many offers were answered, of which `kept` were taken.
    package mutating func answered(_ count: Int, kept: Int, now: Instant) {
        guard count > 0 else { return }
        progressAt = now
        if count > kept { isIncomplete = true }
    }

    /// An offer was dropped for want of room.
    package mutating func dropped() {
        isIncomplete = true
    }

    /// Nil while it goes on.
    package func outcome(_ rest: Rest, now: Instant) -> Outcome? {
        if rest.isNone, !rest.isOnRing {
            return .over(isComplete: !isIncomplete && !rest.hasMissed)
        }
        return now - progressAt >= Self.standstill ? .standsStill : nil
    }
}
