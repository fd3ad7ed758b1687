package import Ground

/// What an operator lets be stored, and for how long.
package struct StoragePolicy: Hashable, Sendable {
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
    package let types: ImageMediaTypes?
    /// Answers with Set-Cookie are stored as any other (RFC 9111 §7.3); otherwise only where a
    /// field aimed at this cache grants it (``EffectiveCacheControl/isGranted``).
    package let storesSetCookie: Bool

    private init(
        kind: Kind, freshness: FreshnessPolicy, types: ImageMediaTypes?, storesSetCookie: Bool
    ) {
        self.kind = kind
        self.freshness = freshness
        self.types = types
        self.storesSetCookie = storesSetCookie
    }

    /// The rules of `/v1/image`.
    package static func image(defaultTTL: Interval, types: ImageMediaTypes) -> StoragePolicy {
        var freshness = FreshnessPolicy(defaultTTL: defaultTTL)
        freshness.defaultsEveryStatus = true
        freshness.isHeuristic = false
        freshness.ignoresCredentials = true
        // The field itself is neither stored nor passed on.
        return StoragePolicy(
            kind: .image, freshness: freshness, types: types, storesSetCookie: true)
    }

    /// The rules of a site; without arguments those of a site without settings.
    package static func site(
        freshness: FreshnessPolicy = FreshnessPolicy(), storesSetCookie: Bool = false
    ) -> StoragePolicy {
        StoragePolicy(
            kind: .site, freshness: freshness, types: nil, storesSetCookie: storesSetCookie)
    }
}
