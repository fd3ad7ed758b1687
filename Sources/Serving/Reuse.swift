package import Cluster
package import Ground
package import HTTPRules

/// What a stored answer is good for, to one request (RFC 9111 §4).
package enum Reuse: Hashable, Sendable {
    /// It may be given.
    case fresh
    /// It may be given though it is not fresh.
    case stale(StalePermission)
    /// Not to be given before the origin has been asked; with `only-if-cached` it is not there (RFC
    /// 9111 §5.2.1.7).
    case mustValidate(ValidationReason)
    /// Not for a request with Authorization, nor to be validated for one (RFC 9111 §3.5).
    case unusable
}

/// By whose leave a stale answer is given (RFC 9111 §4.2.4).
package enum StalePermission: Hashable, Sendable {
    /// The client's (RFC 9111 §5.2.1.2).
    case maxStale
    /// The origin's or the operator's; it is to be validated meanwhile (RFC 5861 §3).
    case whileRevalidate
}

/// Why the origin has to be asked.
package enum ValidationReason: Hashable, Sendable {
    /// The answer is no longer fresh.
    case stale
    /// The answer says `no-cache` (RFC 9111 §5.2.2.4).
    case noCache
    /// The request says `no-cache` (RFC 9111 §5.2.1.4).
    case requestNoCache
    /// The answer is older than the request's `max-age` (RFC 9111 §5.2.1.1).
    case requestMaxAge
    /// The answer is not fresh for as long as the request's `min-fresh` (RFC 9111 §5.2.1.3).
    case requestMinFresh
}

/// What the stored answer with these facts is good for.
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

/// True if the answer may be given because the origin cannot be reached, does not answer in time,
/// or answers with an error (RFC 5861 §4, RFC 9111 §4.2.4).
///
/// Asked where ``reuse(_:for:hasAuthorization:policy:now:)`` said that the origin has to be.
package func isUsableOnError(
    _ facts: EntryMetadata, for control: RequestCacheControl, policy: ReusePolicy, now: Instant
) -> Bool {
    ReuseEvaluation(facts, policy: policy, now: now).isUsableOnError(for: control)
}

/// The facts of a stored answer at one moment.
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
    /// How long it has not been fresh; negative while it is.
    private var staleness: Interval { now - facts.freshUntil }

    func reuse(for control: RequestCacheControl) -> Reuse {
        if facts.flags.contains(.noCache) { return .mustValidate(.noCache) }
        if control.isNoCache { return .mustValidate(.requestNoCache) }
        // A reload asks with `max-age=0`: of what does not change there is nothing new to be had.
        // `no-cache` is the user's own word, and counts all the same (RFC 8246 §2).
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
        // Without `max-stale`, `max-age` says that nothing stale is wanted (RFC 9111 §5.2.1.1).
        let isStaleWanted = control.maxStale != nil || control.maxAge == nil
        if isStaleWanted, staleness < revalidationWindow { return .stale(.whileRevalidate) }
        return control.maxStale == nil ? .mustValidate(.stale) : .stale(.maxStale)
    }

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

    /// An answer is always older than 0: `max-age=0` asks for a new one.
    private func exceedsMaxAge(than maxAge: Interval) -> Bool {
        maxAge <= .zero || now - facts.generatedAt > maxAge
    }

    private var revalidationWindow: Interval {
        .seconds(Int64(facts.staleWhileRevalidateSeconds))
    }
}

/// What an operator adds to the rules by which stored answers are used.
package struct ReusePolicy: Hashable, Sendable {
    /// For how long after its freshness an answer stands in for an origin that fails.
    package var grace = Interval.zero
    /// The same while the node may lack a purge, counted from when its fence closed: so long may be
    /// given what is purged.
    package var fencedGrace = Interval.zero

    package init() {}
}

extension EntryMetadata {
    /// As they count for a decision at `now`, while the node may lack a purge (DESIGN.md §7 "Fenced
    /// unless proven current").
    ///
    /// The same facts where the fence is open, or where the origin has validated them within the
    /// last `fence`. Else they are stale since the fence closed, and ``EntryFlags/isFenced``: the
    /// origin has to be asked, and only for its failing may they be used, where that is granted.
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
