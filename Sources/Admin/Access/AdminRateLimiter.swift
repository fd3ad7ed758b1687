package import Ground
import HTTPRules

/// The rate limits of the admin port: failed tokens per address, and reports per token.
///
/// A valid token is always checked, even if others guess from the same address. Wrong tokens beyond
/// a small burst are refused late. Roles below admin get only a limited rate of reports, because
/// reports cost time that clients would wait for.
package struct AdminRateLimiter: Sendable {
    /// Failed attempts, by the prefix of the caller's address.
    private var failedAttempts = RateLimiter(.init(burst: 10, refill: .seconds(6)))
    /// The cost of the reports sent, by token.
    private var reportCosts = RateLimiter(.init(burst: 500, refill: .milliseconds(10)))

    /// Creates a limiter whose buckets are all full.
    package init() {}

    /// The decision about one request.
    package enum Admission: Hashable, Sendable {
        case admitted(AdminRole)
        /// The refusal, to be sent once `delay` has passed.
        case refused(AdminAccessError, delay: Interval)
    }

    /// Decides about a request after the access check, and charges its cost: of a report by a token
    /// below admin, or of a failed attempt.
    ///
    /// - Parameters:
    ///   - authorization: the outcome of the access check for `caller` and `operation`.
    ///   - caller: the client that sent the request.
    ///   - operation: the operation it calls.
    ///   - now: the present time.
    /// - Returns: the decision; only the refusal of a wrong token beyond the rate is delayed.
    package mutating func admit(
        _ authorization: AdminAccessPolicy.Authorization, of caller: AdminCaller,
        to operation: AdminOperation,
        at now: Instant
    ) -> Admission {
        switch authorization {
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

    /// Returns the number of whole seconds after which a wait has ended.
    private static func seconds(_ wait: Interval) -> Int { Int(wait.seconds) + 1 }
}

/// Token buckets that refill with time, one per key.
///
/// Their number is bounded: beyond ``Settings/keysMax`` the bucket that would be full first is
/// dropped.
package struct RateLimiter: Sendable {
    /// The size and the refill rate of the buckets.
    package struct Settings: Hashable, Sendable {
        /// Units in a full bucket.
        package var burst: Int
        /// The time in which one unit is refilled.
        package var refill: Interval
        /// The maximum number of buckets kept.
        package var keysMax = 1_024

        /// Creates settings for buckets of `burst` units that regain one unit every `refill`.
        package init(burst: Int, refill: Interval) {
            self.burst = burst
            self.refill = refill
        }
    }

    private let settings: Settings
    /// The time at which the bucket of each key is full again.
    private var fullAt: [UInt128: Instant] = [:]

    /// Creates a limiter whose buckets are all full.
    package init(_ settings: Settings) {
        self.settings = settings
    }

    /// Withdraws `units` from the bucket of `holder`.
    ///
    /// - Returns: `nil` if they were taken; else the time until they are available, and nothing is
    ///   taken.
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

    /// Returns the time in which `units` are refilled.
    private func time(_ units: Int) -> Interval {
        Interval(nanoseconds: settings.refill.nanoseconds * Int64(units))
    }
}
