/// A point on the boot clock (`CLOCK_BOOTTIME`): nanoseconds since the machine started, suspended
/// time included.
///
/// All ages, deadlines and freshness are counted on this clock, which no operator and no NTP daemon
/// sets back.
@usableFromInline package struct Instant: Hashable, Comparable, Sendable {
    /// Nanoseconds since the machine started.
    @usableFromInline package var nanoseconds: Int64

    @inlinable package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than every instant that a clock gives.
    package static let distantFuture = Instant(nanoseconds: .max)
    /// Earlier than every instant; whatever is counted from it is over.
    package static let distantPast = Instant(nanoseconds: .min)
    /// The machine's start; no instant that a clock gives is earlier.
    package static let zero = Instant(nanoseconds: 0)

    @inlinable package static func < (left: Instant, right: Instant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Saturates at ``distantFuture`` instead of overflowing.
    @inlinable package static func + (left: Instant, right: Interval) -> Instant {
        let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.nanoseconds)
        return Instant(nanoseconds: overflow ? (right.nanoseconds < 0 ? .min : .max) : sum)
    }

    /// May be negative or before the machine's start: an answer can be older than this machine's
    /// uptime.
    @inlinable package static func - (left: Instant, right: Interval) -> Instant {
        let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(
            right.nanoseconds)
        return Instant(nanoseconds: overflow ? (right.nanoseconds < 0 ? .max : .min) : difference)
    }

    /// The time from `right` to `left`, saturating.
    @inlinable package static func - (left: Instant, right: Instant) -> Interval {
        let (difference, overflow) = left.nanoseconds.subtractingReportingOverflow(
            right.nanoseconds)
        return Interval(nanoseconds: overflow ? (right.nanoseconds < 0 ? .max : .min) : difference)
    }
}

/// A length of time in nanoseconds; may be negative.
@usableFromInline package struct Interval: Hashable, Comparable, Sendable {
    @usableFromInline package var nanoseconds: Int64

    @inlinable package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// `count` whole seconds, saturating.
    package static func seconds(_ count: Int64) -> Interval {
        scaled(count, by: 1_000_000_000)
    }

    /// `count` milliseconds, saturating.
    package static func milliseconds(_ count: Int64) -> Interval {
        scaled(count, by: 1_000_000)
    }

    package static let zero = Interval(nanoseconds: 0)

    /// Whole seconds, rounded towards zero.
    @inlinable package var seconds: Int64 { nanoseconds / 1_000_000_000 }
    /// Whole milliseconds, rounded towards zero.
    @inlinable package var milliseconds: Int64 { nanoseconds / 1_000_000 }

    @inlinable package static func < (left: Interval, right: Interval) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// The sum, saturating.
    @inlinable package static func + (left: Interval, right: Interval) -> Interval {
        let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.nanoseconds)
        return Interval(nanoseconds: overflow ? (right.nanoseconds < 0 ? .min : .max) : sum)
    }

    private static func scaled(_ count: Int64, by unit: Int64) -> Interval {
        let (product, overflow) = count.multipliedReportingOverflow(by: unit)
        return Interval(nanoseconds: overflow ? (count < 0 ? .min : .max) : product)
    }
}

/// A point of wall-clock time in whole seconds since 1970-01-01 00:00:00 UTC, as HTTP dates carry
/// it.
///
/// Used only for what travels in dates; never to decide how old something is on this machine.
package struct WallTime: Hashable, Comparable, Sendable {
    package var seconds: Int64

    @inlinable package init(seconds: Int64) {
        self.seconds = seconds
    }

    /// The nearest time that HTTP can write, of the years 0 to 9999: what another process says is
    /// not taken at its word.
    @inlinable package init(clamping seconds: Int64) {
        self.init(seconds: max(-62_167_219_200, min(253_402_300_799, seconds)))
    }

    @inlinable package static func < (left: WallTime, right: WallTime) -> Bool {
        left.seconds < right.seconds
    }
}
