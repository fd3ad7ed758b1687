import Ground

/// One event's handling: when it happened, whose dice are thrown and what comes out.
struct StepContext {
    let now: Instant
    var dice: SplitMix64
    var effects: [MembershipEffect] = []

    /// From zero up to `interval`.
    mutating func jitter(upTo interval: Interval) -> Interval {
        guard interval > .zero else { return .zero }
        return Interval(nanoseconds: Int64.random(in: 0..<interval.nanoseconds, using: &dice))
    }
}
