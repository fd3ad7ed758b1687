package import Ground

/// How old an answer was when it came, and how long it is fresh (RFC 9111 §4.2).
package struct Freshness: Hashable, Sendable {
    /// The instant at which its age was zero.
    package var generatedAt: Instant
    /// When the request began that was so answered.
    package var requestedAt: Instant
    /// The freshness lifetime; never negative.
    package var lifetime: Interval
    /// What the lifetime was taken from.
    package var source: Source

    /// The first instant at which the answer is no longer fresh.
    package var freshUntil: Instant { generatedAt + lifetime }

    /// What says how long an answer is fresh, in the order in which they count (RFC 9111 §4.2.1).
    package enum Source: Hashable, Sendable {
        /// `s-maxage` (RFC 9111 §5.2.2.10).
        case sMaxAge
        /// `max-age` (RFC 9111 §5.2.2.1).
        case maxAge
        /// Expires less Date (RFC 9111 §5.3).
        case expires
        /// The operator's time for this status.
        case negativeTTL
        /// The operator's default.
        case defaultTTL
        /// A tenth of the time between Last-Modified and Date (RFC 9111 §4.2.2).
        case heuristic
        /// Nothing: the answer is stale from the start.
        case none
    }

    /// When and by which clocks an answer was received.
    package struct ResponseTiming: Hashable, Sendable {
        /// The request was sent.
        package var requestedAt: Instant
        /// The head of the answer had come.
        package var receivedAt: Instant
        /// The same moment as `receivedAt`, to compare with the origin's dates.
        package var receivedWallTime: WallTime

        package init(requestedAt: Instant, receivedAt: Instant, receivedWall: WallTime) {
            self.requestedAt = requestedAt
            self.receivedAt = receivedAt
            self.receivedWallTime = receivedWall
        }
    }

    /// Age and lifetime of an answer; `policy` counts only where the origin gave no explicit
    /// freshness, but for its ceiling.
    ///
    /// Of Age and Expires the first line counts, of a list in Age its first member (RFC 9111 §5.1,
    /// §4.2.1). An Expires that is no date is in the past (RFC 9111 §5.3).
    package init(
        _ head: ResponseHead, control: EffectiveCacheControl, timing: ResponseTiming,
        policy: FreshnessPolicy
    ) {
        let date = Self.time(head, .date, timing)
        generatedAt = Self.generatedAt(age: Self.age(head), date: date, timing: timing)
        requestedAt = timing.requestedAt
        let (explicit, explicitSource) = Self.explicit(head, control, date, timing)
        if let explicit {
            lifetime = explicit
            source = explicitSource
        } else {
            (lifetime, source) = Self.implicit(head, control.control, date, timing, policy)
        }
        lifetime = max(.zero, lifetime)
        if let ttlMax = policy.ttlMax { lifetime = min(lifetime, max(.zero, ttlMax)) }
    }

    /// The lifetime that the origin names; nil if it names none.
    private static func explicit(
        _ head: ResponseHead, _ control: EffectiveCacheControl, _ date: WallTime?,
        _ receipt: ResponseTiming
    ) -> (Interval?, Source) {
        if let sMaxAge = control.control.sMaxAge { return (sMaxAge, .sMaxAge) }
        if let maxAge = control.control.maxAge { return (maxAge, .maxAge) }
        guard control.usesExpires, head.first(.expires) != nil else { return (nil, .none) }
        let from = (date ?? receipt.receivedWallTime).seconds
        let expires = Self.time(head, .expires, receipt)
        return (expires.map { interval($0.seconds, since: from) } ?? .zero, .expires)
    }

    /// The lifetime of an answer whose origin names none.
    private static func implicit(
        _ head: ResponseHead, _ control: CacheControl, _ date: WallTime?, _ receipt: ResponseTiming,
        _ policy: FreshnessPolicy
    ) -> (Interval, Source) {
        if let ttl = policy.negativeTTL(head.status) { return (ttl, .negativeTTL) }
        // Failures are the matter of `negativeTTLs`.
        let isGuessed =
            head.status < 400
            && (StatusRules.isHeuristicallyCacheable(head.status)
                || control.flags.contains(.isPublic))
        if let ttl = policy.defaultTTL, isGuessed || policy.defaultsEveryStatus {
            return (ttl, .defaultTTL)
        }
        guard policy.isHeuristic, isGuessed,
            let modified = Self.time(head, .lastModified, receipt)
        else { return (.zero, .none) }
        let unchanged = interval(
            (date ?? receipt.receivedWallTime).seconds, since: modified.seconds)
        let tenth = Interval(nanoseconds: unchanged.nanoseconds / 10)
        return (min(tenth, FreshnessPolicy.heuristicMax), .heuristic)
    }

    /// The time of receipt less the corrected initial age (RFC 9111 §4.2.3).
    package static func generatedAt(age: Interval?, date: WallTime?, timing: ResponseTiming)
        -> Instant
    {
        let apparent =
            date.map { interval(timing.receivedWallTime.seconds, since: $0.seconds) } ?? .zero
        let delay = max(.zero, timing.receivedAt - timing.requestedAt)
        return timing.receivedAt - max(apparent, (age ?? .zero) + delay)
    }

    /// The date in the first line of this name; nil if there is none or it cannot be read.
    package static func time(
        _ head: ResponseHead, _ name: FieldName, _ receipt: ResponseTiming
    ) -> WallTime? {
        guard let value = head.first(name) else { return nil }
        return HTTPDate.parse(head.bytes.span, at: value.range, now: receipt.receivedWallTime)
    }

    /// The first member of the first Age line; nil if there is none or it is no number (RFC 9111
    /// §5.1).
    private static func age(_ head: ResponseHead) -> Interval? {
        guard let value = head.first(.age) else { return nil }
        let bytes = head.bytes.span
        let end = FieldSyntax.find(UInt8(ascii: ","), in: bytes, at: value.range)
        let first = FieldSyntax.trimmed(bytes, at: value.range.lowerBound..<end)
        return DeltaSeconds.parse(bytes, at: first)
    }

    /// Seconds from one moment to another, from 0 to the greatest number that counts (RFC 9111
    /// §1.2.2).
    private static func interval(_ seconds: Int64, since start: Int64) -> Interval {
        .seconds(min(max(0, seconds - start), DeltaSeconds.max))
    }
}

/// How long answers are fresh that do not say so themselves, and how long any may be.
package struct FreshnessPolicy: Hashable, Sendable {
    /// For an answer that names no freshness; nil leaves it to the heuristic.
    package var defaultTTL: Interval?
    /// The default counts for every status; otherwise only where a heuristic would be allowed (RFC
    /// 9111 §4.2.2).
    package var defaultsEveryStatus = false
    /// For statuses such as 404 and 503, where the answer names no freshness; the first of a status
    /// counts, and before the default.
    package var negativeTTLs: [NegativeTTL] = []
    /// Without a default, a tenth of the time since Last-Modified counts (RFC 9111 §4.2.2).
    package var isHeuristic = true
    /// A lifetime is guessed also of an answer that has Set-Cookie, or whose request had Cookie or
    /// Authorization.
    package var ignoresCredentials = false
    /// No answer is fresh for longer, whatever it says; nil for no ceiling.
    package var ttlMax: Interval?

    /// No heuristic is longer: a day, about which a cache was once to warn.
    package static let heuristicMax = Interval.seconds(86_400)

    package init(defaultTTL: Interval? = nil) {
        self.defaultTTL = defaultTTL
    }

    /// How long an answer of this status is fresh that does not say so.
    package struct NegativeTTL: Hashable, Sendable {
        package var status: UInt16
        package var ttl: Interval

        package init(status: UInt16, ttl: Interval) {
            self.status = status
            self.ttl = ttl
        }
    }

    /// The same without what is guessed of answers that name no lifetime.
    var withoutHeuristics: FreshnessPolicy {
        var policy = self
        policy.defaultTTL = nil
        policy.isHeuristic = false
        policy.negativeTTLs = []
        return policy
    }

    /// The time for this status; nil if there is none of its own.
    func negativeTTL(_ status: UInt16) -> Interval? {
        negativeTTLs.first { $0.status == status }?.ttl
    }
}
