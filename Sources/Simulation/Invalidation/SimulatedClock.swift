import Ground

/// A node's boot clock: it shows another time than the world's, and runs a little fast or slow.
struct SimulatedClock: Sendable {
    private let beginning: Instant
    /// What it shows more at the beginning.
    private let offset: Interval
    /// By so many millionths it is too fast.
    private let drift: Int64

    /// Of a clock whose quartz nobody holds against another, in millionths.
    private static let driftMax: Int64 = 500

    init(from beginning: Instant, using dice: inout SplitMix64) {
        self.beginning = beginning
        offset = .milliseconds(Int64.random(in: 0...50_000, using: &dice))
        drift = Int64.random(in: -Self.driftMax...Self.driftMax, using: &dice)
    }

    /// What two clocks may make of an interval more than it is.
    static func error(in interval: Interval) -> Interval {
        Interval(nanoseconds: interval.nanoseconds * 2 * driftMax / 1_000_000)
    }

    func reading(at now: Instant) -> Instant {
        let passed = (now - beginning).nanoseconds
        return now + offset + Interval(nanoseconds: passed * drift / 1_000_000)
    }

    /// When it shows `reading`; one that is never to come stays far.
    func instant(of reading: Instant) -> Instant {
        guard reading < .distantFuture else { return reading }
        let shown = (reading - offset - beginning).nanoseconds
        return reading - offset - Interval(nanoseconds: shown / (1_000_000 + drift) * drift)
    }
}
