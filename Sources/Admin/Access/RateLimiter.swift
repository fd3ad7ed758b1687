package import Ground

/// Buckets that fill again with time, one for each of those who take from them: a value.
///
/// They are bounded, whoever takes: the one that is full again first makes room for another.
package struct RateLimiter: Sendable {
    package struct Settings: Hashable, Sendable {
        /// Units in a full bucket.
        package var burst: Int
        /// Time until a unit that was taken is there again.
        package var refill: Interval
        package var keysMax = 1_024

        package init(burst: Int, refill: Interval) {
            self.burst = burst
            self.refill = refill
        }
    }

    private let settings: Settings
    /// When the bucket of each holder will be full again.
    private var fullAt: [UInt128: Instant] = [:]

    package init(_ settings: Settings) {
        self.settings = settings
    }

    /// Takes `units` from the bucket of `holder`; if they are not there, nothing is taken, and the
    /// time until they are is given.
    package mutating func take(_ units: Int = 1, from holder: UInt128, at now: Instant) -> Interval?
    {
        let wanted = max(fullAt[holder] ?? now, now) + time(units)
        let free = now + time(settings.burst)
        guard wanted <= free else { return wanted - free }
        fullAt[holder] = wanted
        guard fullAt.count > settings.keysMax else { return nil }
        let next = fullAt.min { ($0.value, $0.key) < ($1.value, $1.key) }
        if let next { fullAt[next.key] = nil }
        return nil
    }

    private func time(_ units: Int) -> Interval {
        Interval(nanoseconds: settings.refill.nanoseconds * Int64(units))
    }
}
