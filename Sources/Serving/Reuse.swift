package import Cluster
package import Ground
package import HTTPRules

/// The way in which a stored response may be used for a request (RFC 9111 §4).
package enum Reuse: Hashable, Sendable {
    /// The response may be served.
    case fresh
    /// The response may be served although it is stale.
    case stale(StalePermission)
    /// The response may only be served after revalidation; with `only-if-cached`, the request fails
    /// (RFC 9111 §5.2.1.7).
    case mustValidate(ValidationReason)
    /// The response may be neither served to nor validated for a request with Authorization (RFC
    /// 9111 §3.5).
    case unusable
}

/// The permission under which a stale response is served (RFC 9111 §4.2.4).
package enum StalePermission: Hashable, Sendable {
    /// The client's `max-stale` (RFC 9111 §5.2.1.2).
    case maxStale
    /// The origin's or the operator's; the response is revalidated meanwhile (RFC 5861 §3).
    case whileRevalidate
}

/// The reason why a stored response needs revalidation.
package enum ValidationReason: Hashable, Sendable {
    /// The response is stale.
    case stale
    /// The response has `no-cache` (RFC 9111 §5.2.2.4).
    case noCache
    /// The request has `no-cache` (RFC 9111 §5.2.1.4).
    case requestNoCache
    /// The response is older than the request's `max-age` (RFC 9111 §5.2.1.1).
    case requestMaxAge
    /// The response does not stay fresh for the request's `min-fresh` (RFC 9111 §5.2.1.3).
    case requestMinFresh
}

/// Decides how the stored response with these facts may be used for a request.
@inline(__always)
package func reuse(
    _ facts: EntryMetadata, for control: RequestCacheControl, hasAuthorization: Bool,
    policy: ReusePolicy,
    now: Instant
) -> Reuse {
    if control.isEmpty, !hasAuthorization, now < facts.freshUntil, !facts.flags.contains(.noCache) {
        return .fresh
    }
    if hasAuthorization, !facts.flags.contains(.allowsAuthorization) { return .unusable }
    return ReuseEvaluation(facts, policy: policy, now: now).reuse(for: control)
}

/// True if the response is fresh, or may be served stale because the origin is unreachable, times
/// out, or responds with an error (RFC 5861 §4, RFC 9111 §4.2.4).
///
/// False if it or the request has `no-cache`. Called after
/// ``reuse(_:for:hasAuthorization:policy:now:)`` has required revalidation.
package func isUsableOnError(
    _ facts: EntryMetadata, for control: RequestCacheControl, policy: ReusePolicy, now: Instant
) -> Bool {
    ReuseEvaluation(facts, policy: policy, now: now).isUsableOnError(for: control)
}

/// The facts of a stored response at one instant.
private struct ReuseEvaluation {
    let facts: EntryMetadata
    let policy: ReusePolicy
    let now: Instant

    init(_ facts: EntryMetadata, policy: ReusePolicy, now: Instant) {
        self.facts = facts
        self.policy = policy
        self.now = now
    }

    private var isFresh: Bool { now < facts.freshUntil }
    /// The time since it became stale; negative while it is fresh.
    private var staleness: Interval { now - facts.freshUntil }

    /// Decides how the response may be used for a request without Authorization, or that allows it.
    func reuse(for control: RequestCacheControl) -> Reuse {
        if facts.flags.contains(.noCache) { return .mustValidate(.noCache) }
        if control.isNoCache { return .mustValidate(.requestNoCache) }
        // A reload sends `max-age=0`, which need not revalidate an immutable response. `no-cache`
        // states the user's own intent and is obeyed all the same (RFC 8246 §2).
        let isUnchanged = isFresh && facts.flags.contains(.immutable)
        if let maxAge = control.maxAge, !isUnchanged, exceedsMaxAge(than: maxAge) {
            return .mustValidate(.requestMaxAge)
        }
        if let minFresh = control.minFresh, facts.freshUntil - now < minFresh {
            return .mustValidate(.requestMinFresh)
        }
        if isFresh { return .fresh }
        if !facts.flags.isDisjoint(with: [.mustRevalidate, .isFenced]) {
            return .mustValidate(.stale)
        }
        if let maxStale = control.maxStale, staleness > maxStale { return .mustValidate(.stale) }
        // Without `max-stale`, `max-age` excludes stale responses (RFC 9111 §5.2.1.1).
        let isStaleWanted = control.maxStale != nil || control.maxAge == nil
        if isStaleWanted, staleness < revalidationWindow { return .stale(.whileRevalidate) }
        return control.maxStale == nil ? .mustValidate(.stale) : .stale(.maxStale)
    }

    /// Returns true if the response is fresh, or stale for less than the time allowed when the
    /// origin fails.
    func isUsableOnError(for control: RequestCacheControl) -> Bool {
        if facts.flags.contains(.noCache) { return false }
        if control.isNoCache { return false }
        if isFresh { return true }
        if facts.flags.contains(.mustRevalidate) { return false }
        let own = Interval.seconds(Int64(facts.staleIfErrorSeconds))
        let grace = facts.flags.contains(.isFenced) ? policy.fencedGrace : policy.grace
        let window = max(own, grace, control.staleIfError ?? .zero)
        return staleness < window
    }

    /// True if the response is older than `maxAge`.
    ///
    /// Every response exceeds `max-age=0`.
    private func exceedsMaxAge(than maxAge: Interval) -> Bool {
        maxAge <= .zero || now - facts.generatedAt > maxAge
    }

    /// The time for which the response may be served stale while it is revalidated.
    private var revalidationWindow: Interval {
        .seconds(Int64(facts.staleWhileRevalidateSeconds))
    }
}

/// The operator's additions to the rules for using stored responses.
package struct ReusePolicy: Hashable, Sendable {
    /// The time after freshness for which a response may be served if the origin fails.
    package var grace = Interval.zero
    /// The value of ``grace`` for a node that may lack a purge, counted from when its fence closed.
    ///
    /// For so long, a purged response may be served.
    package var fencedGrace = Interval.zero

    /// Creates a policy that adds nothing.
    package init() {}
}

extension EntryMetadata {
    /// Returns the facts adjusted for a node that may lack a purge (Design, "Fenced unless proven
    /// current").
    ///
    /// They are unchanged if the fence is open, or if the origin has validated the response within
    /// the last `fence`. Otherwise the response counts as stale since the fence closed and has
    /// ``EntryFlags/isFenced``: it needs revalidation, and may be served only if the origin fails
    /// and ``isUsableOnError(_:for:policy:now:)`` permits it.
    package func fenced(by window: FenceWindow, _ fence: Interval, now: Instant) -> EntryMetadata {
        let use = FenceDecision.decide(
            now: now, window: window, validatedAt: validatedAt, fence: fence, staleIfError: nil)
        guard case .revalidate = use else { return self }
        var facts = self
        facts.freshUntil = min(freshUntil, window.closedAt, now)
        facts.staleWhileRevalidateSeconds = 0
        facts.flags.insert(.isFenced)
        return facts
    }
}
