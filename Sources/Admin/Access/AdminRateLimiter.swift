package import Ground
import HTTPRules

/// What callers of the admin port have used up, and what is done with the next request: a value.
///
/// A right token is always looked at, whoever else guesses from its address. Wrong ones beyond a
/// few are answered late. What may only look may do so only so often: reports cost time that
/// clients would wait.
package struct AdminRateLimiter: Sendable {
    /// Wrong tokens, by the address that they came from.
    private var failedAttempts = RateLimiter(.init(burst: 10, refill: .seconds(6)))
    /// What reports have cost, by the token that they were given to.
    private var reportCosts = RateLimiter(.init(burst: 500, refill: .milliseconds(10)))

    package init() {}

    package enum Admission: Hashable, Sendable {
        case admitted(AdminRole)
        /// Refused when `delay` has passed.
        case refused(AdminAccessError, delay: Interval)
    }

    /// What is done with the request of `caller` for `operation`, which `access` was asked about.
    package mutating func admit(
        _ verdict: AdminAccessPolicy.Authorization, of caller: AdminCaller,
        to operation: AdminOperation,
        at now: Instant
    ) -> Admission {
        switch verdict {
        case .allowed(let role):
            guard operation.cost > 0, role < .admin, case .token(let digest) = caller.credential,
                let wait = reportCosts.take(operation.cost, from: digest.clientID, at: now)
            else { return .admitted(role) }
            return .refused(
                .reportRateExceeded(retryAfterSeconds: Self.seconds(wait)), delay: .zero)
        case .denied(let refusal):
            guard refusal.isFailedAttempt,
                let wait = failedAttempts.take(from: caller.address?.clientPrefix ?? 0, at: now)
            else { return .refused(refusal, delay: .zero) }
            return .refused(
                .attemptRateExceeded(retryAfterSeconds: Self.seconds(wait)), delay: wait)
        }
    }

    private static func seconds(_ wait: Interval) -> Int { Int(wait.seconds) + 1 }
}

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
