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
