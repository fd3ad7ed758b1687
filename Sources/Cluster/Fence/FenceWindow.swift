package import Ground

/// Until when this node may serve what is fresh: all that the path of a hit needs of the fence.
///
/// Two numbers, to be published together. Whoever reads them apart, ``currentUntil`` first, at
/// worst takes a fence that has just opened for one that closes later.
package struct FenceWindow: Hashable, Sendable {
    /// The node is proven current at every instant before this one, if it hears nothing more;
    /// ``Instant/distantFuture`` if it needs nobody.
    package var currentUntil: Instant
    /// When the fence closed last, or will close if nothing more is heard; the start of a node that
    /// was never proven current.
    package var closedAt: Instant

    /// Closed since `now`.
    package init(closedAt now: Instant) {
        currentUntil = .zero
        closedAt = now
    }

    package init(currentUntil: Instant, closedAt: Instant) {
        self.currentUntil = currentUntil
        self.closedAt = closedAt
    }

    /// To be asked with the clock's present reading at each decision, and never kept.
    package func isCurrent(at now: Instant) -> Bool { now < currentUntil }

    /// From `now` on current until `until`, which may have gone by.
    mutating func move(to until: Instant, now: Instant) {
        if until > now {
            closedAt = until
        } else if isCurrent(at: now) {
            closedAt = now
        }
        currentUntil = until
    }
}
