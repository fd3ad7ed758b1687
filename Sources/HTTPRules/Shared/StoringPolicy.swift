package import Ground

/// What an operator lets be stored, and for how long.
package struct StoringPolicy: Hashable, Sendable {
    /// Whose rules they are.
    package enum Kind: Hashable, Sendable {
        /// Of images by their URL: a 200 only; Cache-Control without targeted fields; what the
        /// answer depends on is the reduced negotiation.
        case image
        /// Of a site: a shared cache as RFC 9111 and RFC 9213 have it. What an answer depends on is
        /// found by its variant index.
        case site
    }

    package let kind: Kind
    package var freshness: FreshnessPolicy
    /// The types that are stored; nil for all.
    package let types: ContentTypes?
    /// Answers with Set-Cookie are stored as any other (RFC 9111 §7.3).
    package var storesSetCookie = true

    private init(kind: Kind, freshness: FreshnessPolicy, types: ContentTypes?) {
        self.kind = kind
        self.freshness = freshness
        self.types = types
    }

    /// The rules of `/v1/image`.
    package static func image(defaultTTL: Interval, types: ContentTypes) -> StoringPolicy {
        var freshness = FreshnessPolicy(defaultTTL: defaultTTL)
        freshness.defaultsEveryStatus = true
        freshness.isHeuristic = false
        return StoringPolicy(kind: .image, freshness: freshness, types: types)
    }

    /// The rules of a site; without arguments those of the RFCs and nothing else.
    package static func site(
        freshness: FreshnessPolicy = FreshnessPolicy(), storesSetCookie: Bool = true
    ) -> StoringPolicy {
        var policy = StoringPolicy(kind: .site, freshness: freshness, types: nil)
        policy.storesSetCookie = storesSetCookie
        return policy
    }
}
