import Ground

/// A node's boot clock, with an offset and a drift against simulated time.
struct SimulatedClock: Sendable {
    private let beginning: Instant
    /// The offset at the beginning.
    private let offset: Interval
    /// The drift in millionths; positive if the clock is fast.
    private let drift: Int64

    /// The maximum drift of an unsynchronised clock, in millionths.
    private static let driftMax: Int64 = 500

    init(from beginning: Instant, using dice: inout SplitMix64) {
        self.beginning = beginning
        offset = .milliseconds(Int64.random(in: 0...50_000, using: &dice))
        drift = Int64.random(in: -Self.driftMax...Self.driftMax, using: &dice)
    }

    /// Returns the maximum difference between two clocks over an interval.
    static func error(in interval: Interval) -> Interval {
        Interval(nanoseconds: interval.nanoseconds * 2 * driftMax / 1_000_000)
    }

    /// Returns the time that the clock shows at `now`.
    func reading(at now: Instant) -> Instant {
        let passed = (now - beginning).nanoseconds
        return now + offset + Interval(nanoseconds: passed * drift / 1_000_000)
    }

    /// Returns when the clock shows `reading`; `.distantFuture` is preserved.
    func instant(of reading: Instant) -> Instant {
        guard reading < .distantFuture else { return reading }
        let shown = (reading - offset - beginning).nanoseconds
        return reading - offset - Interval(nanoseconds: shown / (1_000_000 + drift) * drift)
    }
}
