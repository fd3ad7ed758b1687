package import Ground

/// The end of handing everything over: when nothing is left, or when nobody answers any more.
package struct DrainMonitor: Sendable {
    /// What has become of it.
    package enum Outcome: Hashable, Sendable {
        /// Nothing is left; true if all of it was taken.
        case finished(isComplete: Bool)
        /// Nobody has answered anything for ``standstill``.
        case stalled
    }

    /// What is left.
    package struct Remainder: Hashable, Sendable {
        /// Offers to be made, or not answered, or holdings not looked at.
        package var isEmpty: Bool
        /// The ring still has this node.
        package var isInRing: Bool
        /// Members that could not be offered what they own.
        package var hasMissedReceivers: Bool

        package init(isNone: Bool, isOnRing: Bool, hasMissed: Bool) {
            self.isEmpty = isNone
            self.isInRing = isOnRing
            self.hasMissedReceivers = hasMissed
        }
    }

    /// How long a node waits while nobody answers it anything.
    package static let stallTimeout = Interval.seconds(30)

    private var lastProgressAt: Instant
    private var isIncomplete = false

    package init(now: Instant) {
        lastProgressAt = now
    }

    /// So many offers were answered, of which `kept` were taken.
    package mutating func outcomesReceived(_ count: Int, kept: Int, now: Instant) {
        guard count > 0 else { return }
        lastProgressAt = now
        if count > kept { isIncomplete = true }
    }

    /// An offer was dropped for want of room.
    package mutating func offerDropped() {
        isIncomplete = true
    }

    /// Nil while it goes on.
    package func outcome(_ rest: Remainder, now: Instant) -> Outcome? {
        if rest.isEmpty, !rest.isInRing {
            return .finished(isComplete: !isIncomplete && !rest.hasMissedReceivers)
        }
        return now - lastProgressAt >= Self.stallTimeout ? .stalled : nil
    }
}
