package import Ground

/// Turns instants of the boot clock into wall times that outlive the process, and back.
///
/// The two clocks are read together once, when the process starts: an operator who sets the wall
/// clock back while it runs makes nothing fresh again.
package struct DiskClock: Hashable, Sendable {
    private let instant: Instant
    /// In milliseconds since 1970.
    private let wall: Int64

    /// At `instant` the wall clock shows `wall` milliseconds since 1970.
    package init(instant: Instant, wall: Int64) {
        self.instant = instant
        self.wall = wall
    }

    /// Milliseconds since 1970; the greatest number for ``Ground/Instant/distantFuture``.
    package func wall(_ instant: Instant) -> Int64 {
        guard instant != .distantFuture else { return .max }
        let (sum, isOver) = wall.addingReportingOverflow((instant - self.instant).milliseconds)
        return isOver ? .max : sum
    }

    /// The instant at which the wall clock shows so many milliseconds since 1970.
    package func instant(_ wall: Int64) -> Instant {
        guard wall != .max else { return .distantFuture }
        let (difference, isOver) = wall.subtractingReportingOverflow(self.wall)
        return instant + .milliseconds(isOver ? (wall < 0 ? .min : .max) : difference)
    }

    /// Seconds since 1970, as accesses are kept.
    package func second(_ instant: Instant) -> UInt32 {
        UInt32(clamping: wall(instant) / 1000)
    }
}
