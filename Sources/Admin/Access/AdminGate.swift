package import Ground
import HTTPRules

/// What callers of the admin port have used up, and what is done with the next request: a value.
///
/// A right token is always looked at, whoever else guesses from its address. Wrong ones beyond a
/// few are answered late. What may only look may do so only so often: reports cost time that
/// clients would wait.
package struct AdminGate: Sendable {
    /// Wrong tokens, by the address that they came from.
    private var attempts = RateLimiter(.init(burst: 10, refill: .seconds(6)))
    /// What reports have cost, by the token that they were given to.
    private var reports = RateLimiter(.init(burst: 500, refill: .milliseconds(10)))

    package init() {}

    package enum Admission: Hashable, Sendable {
        case admitted(AdminRole)
        /// Refused when `delay` has passed.
        case refused(AdminRefusal, delay: Interval)
    }

    /// What is done with the request of `caller` for `operation`, which `access` was asked about.
    package mutating func admit(
        _ verdict: AdminAccess.Verdict, of caller: AdminCaller, to operation: AdminOperation,
        at now: Instant
    ) -> Admission {
        switch verdict {
        case .allowed(let role):
            guard operation.cost > 0, role < .admin, case .token(let digest) = caller.proof,
                let wait = reports.take(operation.cost, of: digest.number, at: now)
            else { return .admitted(role) }
            return .refused(.tooManyReports(retryAfterSeconds: Self.seconds(wait)), delay: .zero)
        case .refused(let refusal):
            guard refusal.isFailedAttempt,
                let wait = attempts.take(of: caller.address?.clientNumber ?? 0, at: now)
            else { return .refused(refusal, delay: .zero) }
            return .refused(
                .tooManyAttempts(retryAfterSeconds: Self.seconds(wait)), delay: wait)
        }
    }

    private static func seconds(_ wait: Interval) -> Int { Int(wait.seconds) + 1 }
}
