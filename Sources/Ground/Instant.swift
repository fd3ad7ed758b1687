/// A point on the boot clock (`CLOCK_BOOTTIME`): nanoseconds since the machine started, including
/// suspended time.
///
/// All ages, deadlines and freshness use this clock, because neither an operator nor an NTP daemon
/// can set it back.
@usableFromInline package struct Instant: Hashable, Comparable, Sendable {
    /// Nanoseconds since the machine started.
    @usableFromInline package var nanoseconds: Int64

    /// Creates an instant from nanoseconds since the machine started.
    @inlinable package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The greatest instant, later than any a clock returns.
    package static let distantFuture = Instant(nanoseconds: .max)
    /// The least instant, earlier than any a clock returns; every deadline computed from it has
    /// passed.
    package static let distantPast = Instant(nanoseconds: .min)
    /// The start of the machine; a clock returns no earlier instant.
    package static let zero = Instant(nanoseconds: 0)

    /// True if `left` is earlier than `right`.
    @inlinable package static func < (left: Instant, right: Instant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Adds an interval, saturating at ``distantFuture`` and ``distantPast``.
    @inlinable package static func + (left: Instant, right: Interval) -> Instant {
        let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.nanoseconds)
        return Instant(nanoseconds: overflow ? (right.nanoseconds < 0 ? .min : .max) : sum)
    }

    /// Subtracts an interval, saturating at ``distantPast`` and ``distantFuture``.
    ///
    /// The result may precede the machine's start: a response can be older than the uptime.
    @inlinable package static func - (left: Instant, right: Interval) -> Instant {
        let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(
            right.nanoseconds)
        return Instant(nanoseconds: overflow ? (right.nanoseconds < 0 ? .max : .min) : difference)
    }

    /// Returns the time from `right` to `left`, saturating.
    @inlinable package static func - (left: Instant, right: Instant) -> Interval {
        let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(
            right.nanoseconds)
        return Interval(nanoseconds: overflow ? (right.nanoseconds < 0 ? .max : .min) : difference)
    }
}

/// A length of time in nanoseconds, possibly negative.
@usableFromInline package struct Interval: Hashable, Comparable, Sendable {
    /// The length in nanoseconds.
    @usableFromInline package var nanoseconds: Int64

    /// Creates an interval from nanoseconds.
    @inlinable package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Returns an interval of `count` seconds, saturating.
    package static func seconds(_ count: Int64) -> Interval {
        scaled(count, by: 1_000_000_000)
    }

    /// Returns an interval of `count` milliseconds, saturating.
    package static func milliseconds(_ count: Int64) -> Interval {
        scaled(count, by: 1_000_000)
    }

    /// The empty interval.
    package static let zero = Interval(nanoseconds: 0)

    /// The interval in whole seconds, rounded towards zero.
    @inlinable package var seconds: Int64 { nanoseconds / 1_000_000_000 }
    /// The interval in whole milliseconds, rounded towards zero.
    @inlinable package var milliseconds: Int64 { nanoseconds / 1_000_000 }

    /// True if `left` is shorter than `right`.
    @inlinable package static func < (left: Interval, right: Interval) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Returns the sum, saturating.
    @inlinable package static func + (left: Interval, right: Interval) -> Interval {
        let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.nanoseconds)
        return Interval(nanoseconds: overflow ? (right.nanoseconds < 0 ? .min : .max) : sum)
    }

    private static func scaled(_ count: Int64, by unit: Int64) -> Interval {
        let (product, overflow) = count.multipliedReportingOverflow(by: unit)
        return Interval(nanoseconds: overflow ? (count < 0 ? .min : .max) : product)
    }
}

/// A point of wall-clock time as in HTTP dates: whole seconds since 1970-01-01 00:00:00 UTC.
///
/// Used only for dates in messages, never to compute an age on this machine.
package struct WallTime: Hashable, Comparable, Sendable {
    /// Seconds since 1970-01-01 00:00:00 UTC; negative before.
    package var seconds: Int64

    /// Creates a time from seconds since 1970-01-01 00:00:00 UTC.
    @inlinable package init(seconds: Int64) {
        self.seconds = seconds
    }

    /// Creates the nearest time that an HTTP date can represent (years 0 to 9999).
    ///
    /// For values from other processes, which may be out of range.
    @inlinable package init(clamping seconds: Int64) {
        self.init(seconds: max(-62_167_219_200, min(253_402_300_799, seconds)))
    }

    /// True if `left` is earlier than `right`.
    @inlinable package static func < (left: WallTime, right: WallTime) -> Bool {
        left.seconds < right.seconds
    }
}

/// A position in the order of a node's invalidations: the boot epoch, and the number of
/// invalidations applied in it (Design, "Versions and marks").
///
/// Fetches and marks carry one, so that a response can be compared with later invalidations.
@usableFromInline package struct InvalidationVersion: Hashable, Comparable, Sendable {
    /// The number of this start of the node, from 1.
    @usableFromInline package var epoch: UInt64
    /// Invalidations applied since this start.
    @usableFromInline package var count: UInt64

    /// Creates a version from its parts.
    @inlinable package init(epoch: UInt64, count: UInt64) {
        self.epoch = epoch
        self.count = count
    }

    /// The least version, before every invalidation.
    package static let zero = InvalidationVersion(epoch: 0, count: 0)
    /// The greatest version, after every invalidation.
    package static let last = InvalidationVersion(epoch: .max, count: .max)

    /// True if `left` precedes `right`: by epoch, then by count.
    @inlinable package static func < (left: InvalidationVersion, right: InvalidationVersion) -> Bool
    {
        left.epoch == right.epoch ? left.count < right.count : left.epoch < right.epoch
    }
}
