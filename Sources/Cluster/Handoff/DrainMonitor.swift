package import Ground

/// The completion check of a drain: finished when nothing is left, stalled when no receiver
/// responds.
package struct DrainMonitor: Sendable {
    /// The result of a drain.
    package enum Outcome: Hashable, Sendable {
        /// Nothing is left; `isComplete` is true if the receivers stored everything.
        case finished(isComplete: Bool)
        /// No receiver has responded for ``stallTimeout``.
        case stalled
    }

    /// The work that is left.
    package struct Remainder: Hashable, Sendable {
        /// True if no offer is waiting or unanswered and all stored entries were examined.
        package var isEmpty: Bool
        /// True if this node is still on the ring.
        package var isInRing: Bool
        /// True if some members could not be offered the entries that they own.
        package var hasMissedReceivers: Bool

        /// Creates a remainder from its parts.
        package init(isEmpty: Bool, isInRing: Bool, hasMissedReceivers: Bool) {
            self.isEmpty = isEmpty
            self.isInRing = isInRing
            self.hasMissedReceivers = hasMissedReceivers
        }
    }

    /// The maximum time without any response before the drain counts as stalled.
    package static let stallTimeout = Interval.seconds(30)

    private var lastProgressAt: Instant
    private var isIncomplete = false

    /// Creates the monitor of a drain that starts at `now`.
    package init(now: Instant) {
        lastProgressAt = now
    }

    /// Records that `count` offers were answered, `kept` of them with the entry stored.
    package mutating func outcomesReceived(_ count: Int, kept: Int, now: Instant) {
        guard count > 0 else { return }
        lastProgressAt = now
        if count > kept { isIncomplete = true }
    }

    /// Records that an offer was dropped because a queue was full.
    package mutating func offerDropped() {
        isIncomplete = true
    }

    /// Returns the result, or `nil` while the drain continues.
    ///
    /// A drain is finished only when this node has left the ring too.
    package func outcome(_ rest: Remainder, now: Instant) -> Outcome? {
        if rest.isEmpty, !rest.isInRing {
            return .finished(isComplete: !isIncomplete && !rest.hasMissedReceivers)
        }
        return now - lastProgressAt >= Self.stallTimeout ? .stalled : nil
    }
}
