package import Ground

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
