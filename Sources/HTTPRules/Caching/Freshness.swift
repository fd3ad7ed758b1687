package import Ground

/// The age of a response on arrival and its freshness lifetime (RFC 9111 §4.2).
package struct Freshness: Hashable, Sendable {
    /// The instant at which the response's age was zero.
    package var generatedAt: Instant
    /// The instant at which the request for this response was sent.
    package var requestedAt: Instant
    /// The freshness lifetime; never negative.
    package var lifetime: Interval
    /// The source of the lifetime.
    package var source: Source

    /// The first instant at which the response is no longer fresh.
    package var freshUntil: Instant { generatedAt + lifetime }

    /// The sources of a freshness lifetime, in order of precedence (RFC 9111 §4.2.1).
    package enum Source: Hashable, Sendable {
        /// The `s-maxage` directive (RFC 9111 §5.2.2.10).
        case sMaxAge
        /// The `max-age` directive (RFC 9111 §5.2.2.1).
        case maxAge
        /// The difference between Expires and Date (RFC 9111 §5.3).
        case expires
        /// The operator's lifetime for this status.
        case negativeTTL
        /// The operator's default lifetime.
        case defaultTTL
        /// A tenth of the time between Last-Modified and Date (RFC 9111 §4.2.2).
        case heuristic
        /// No source: the response is stale on arrival.
        case none
    }

    /// When a response was requested and received.
    package struct ResponseTiming: Hashable, Sendable {
        /// The instant at which the request was sent.
        package var requestedAt: Instant
        /// The instant at which the head of the response had been received.
        package var receivedAt: Instant
        /// The wall-clock time of `receivedAt`, compared with the origin's dates.
        package var receivedWallTime: WallTime

        /// Creates the timing of a response from its parts; `receivedAt` and `receivedWallTime` are
        /// the same moment.
        package init(requestedAt: Instant, receivedAt: Instant, receivedWallTime: WallTime) {
            self.requestedAt = requestedAt
            self.receivedAt = receivedAt
            self.receivedWallTime = receivedWallTime
        }
    }

    /// Computes the age and lifetime of a response.
    ///
    /// Of Age and Expires the first line counts, of a list in Age its first member (RFC 9111 §5.1,
    /// §4.2.1). An Expires that is not a date is in the past (RFC 9111 §5.3).
    ///
    /// - Parameters:
    ///   - head: the head of the response.
    ///   - control: the directives that apply to it.
    ///   - timing: when it was requested and received.
    ///   - policy: the operator's rules; except for the ceiling they apply only where the origin
    ///     gives no explicit freshness.
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

    /// Returns the lifetime that the origin names; `nil` if it names none.
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

    /// Returns the lifetime, by the operator's rules, of a response whose origin names none; 0 if
    /// no rule applies.
    private static func implicit(
        _ head: ResponseHead, _ control: CacheControl, _ date: WallTime?, _ receipt: ResponseTiming,
        _ policy: FreshnessPolicy
    ) -> (Interval, Source) {
        if let ttl = policy.negativeTTL(head.status) { return (ttl, .negativeTTL) }
        // Errors have a lifetime only by `negativeTTLs`.
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

    /// Returns the time of receipt minus the corrected initial age (RFC 9111 §4.2.3).
    ///
    /// - Parameters:
    ///   - age: the value of Age; `nil` if there is none.
    ///   - date: the value of Date; `nil` if there is none.
    ///   - timing: when the response was requested and received.
    /// - Returns: the boot-clock time from which the age of the response counts; never after its
    ///   receipt.
    package static func generatedAt(age: Interval?, date: WallTime?, timing: ResponseTiming)
        -> Instant
    {
        let apparent =
            date.map { interval(timing.receivedWallTime.seconds, since: $0.seconds) } ?? .zero
        let delay = max(.zero, timing.receivedAt - timing.requestedAt)
        return timing.receivedAt - max(apparent, (age ?? .zero) + delay)
    }

    /// Returns the date in the first line with this name; `nil` if there is none or it cannot be
    /// parsed.
    ///
    /// - Parameters:
    ///   - head: the head of the response.
    ///   - name: the name of the field.
    ///   - receipt: the timing of the response; places years of two digits.
    /// - Returns: the date as wall time; `nil` if there is none or it cannot be parsed.
    package static func time(
        _ head: ResponseHead, _ name: FieldName, _ receipt: ResponseTiming
    ) -> WallTime? {
        guard let value = head.first(name) else { return nil }
        return HTTPDate.parse(head.bytes.span, at: value.range, now: receipt.receivedWallTime)
    }

    /// Returns the first member of the first Age line; `nil` if there is none or it is not a number
    /// (RFC 9111 §5.1).
    private static func age(_ head: ResponseHead) -> Interval? {
        guard let value = head.first(.age) else { return nil }
        let bytes = head.bytes.span
        let end = FieldSyntax.find(UInt8(ascii: ","), in: bytes, at: value.range)
        let first = FieldSyntax.trimmed(bytes, at: value.range.lowerBound..<end)
        return DeltaSeconds.parse(bytes, at: first)
    }

    /// Returns the seconds between two times, from 0 to the greatest number that counts (RFC 9111
    /// §1.2.2).
    private static func interval(_ seconds: Int64, since start: Int64) -> Interval {
        .seconds(min(max(0, seconds - start), DeltaSeconds.max))
    }
}

/// The operator's rules for lifetimes: of responses that name none, and the ceiling for all.
package struct FreshnessPolicy: Hashable, Sendable {
    /// The lifetime of a response that names none; `nil` leaves it to the heuristic.
    package var defaultTTL: Interval?
    /// True if the default applies to every status; otherwise it applies only to statuses below 400
    /// for which a heuristic is allowed (RFC 9111 §4.2.2).
    package var defaultsEveryStatus = false
    /// The lifetimes for statuses such as 404 and 503 where the response names none.
    ///
    /// They take precedence over the default; the first of a status counts.
    package var negativeTTLs: [NegativeTTL] = []
    /// True if, without a default, a tenth of the time since Last-Modified applies, again only to
    /// statuses below 400 for which a heuristic is allowed (RFC 9111 §4.2.2).
    package var isHeuristic = true
    /// True if a lifetime is guessed even if the response has Set-Cookie or the request had Cookie
    /// or Authorization.
    package var ignoresCredentials = false
    /// The ceiling for every lifetime, explicit or not; `nil` for none.
    package var ttlMax: Interval?

    /// The maximum heuristic lifetime: a day, beyond which RFC 7234 §5.5.4 required a warning.
    package static let heuristicMax = Interval.seconds(86_400)

    /// Creates a policy with this default lifetime and no other rules.
    package init(defaultTTL: Interval? = nil) {
        self.defaultTTL = defaultTTL
    }

    /// The lifetime of responses with one status that name none.
    package struct NegativeTTL: Hashable, Sendable {
        /// The status code.
        package var status: UInt16
        /// The lifetime.
        package var ttl: Interval

        /// Creates a rule for one status from its parts.
        package init(status: UInt16, ttl: Interval) {
            self.status = status
            self.ttl = ttl
        }
    }

    /// This policy without the lifetimes for responses that name none.
    var withoutHeuristics: FreshnessPolicy {
        var policy = self
        policy.defaultTTL = nil
        policy.isHeuristic = false
        policy.negativeTTLs = []
        return policy
    }

    /// Returns the lifetime for this status; `nil` if the policy has none for it.
    func negativeTTL(_ status: UInt16) -> Interval? {
        negativeTTLs.first { $0.status == status }?.ttl
    }
}
