package import Ground

/// What an operator lets be stored, and for how long.
package struct StoringPolicy: Hashable, Sendable {
    /// Whose rules they are.
    package enum Kind: Hashable, Sendable {
        /// Of images by their URL: a 200 only; Cache-Control without targeted fields.
        case image
        /// Of a site: a shared cache as RFC 9111 and RFC 9213 have it.
        case site
    }

    package let kind: Kind
    package var freshness: FreshnessPolicy
    /// The types that are stored; nil for all.
    package let types: ContentTypes?
    /// Answers with Set-Cookie are stored as any other (RFC 9111 §7.3); otherwise only where a
    /// field aimed at this cache grants it (``AnswerControl/isGranted``).
    package let storesSetCookie: Bool

    private init(
        kind: Kind, freshness: FreshnessPolicy, types: ContentTypes?, storesSetCookie: Bool
    ) {
        self.kind = kind
        self.freshness = freshness
        self.types = types
        self.storesSetCookie = storesSetCookie
    }

    /// The rules of `/v1/image`.
    package static func image(defaultTTL: Interval, types: ContentTypes) -> StoringPolicy {
        var freshness = FreshnessPolicy(defaultTTL: defaultTTL)
        freshness.defaultsEveryStatus = true
        freshness.isHeuristic = false
        freshness.ignoresCredentials = true
        // The field itself is neither stored nor passed on.
        return StoringPolicy(
            kind: .image, freshness: freshness, types: types, storesSetCookie: true)
    }

    /// The rules of a site; without arguments those of a site without settings.
    package static func site(
        freshness: FreshnessPolicy = FreshnessPolicy(), storesSetCookie: Bool = false
    ) -> StoringPolicy {
        StoringPolicy(
            kind: .site, freshness: freshness, types: nil, storesSetCookie: storesSetCookie)
    }
}
