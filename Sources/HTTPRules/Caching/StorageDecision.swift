package import Ground

/// What becomes of a whole answer of a site's origin, as far as its head decides it (RFC 9111 §3,
/// §4.1).
package struct StorageDecision: Hashable, Sendable {
    /// What was stored for the same request before.
    package enum StoredState: Hashable, Sendable {
        case nothing
        case fresh
        case stale
    }

    private let status: UInt16
    private let notStoredReason: NotStoredReason?
    private let isShareable: Bool
    private let isSelectable: Bool
    private let storedState: StoredState
    /// There is a key under which later requests would find it; until then it is taken for granted.
    package var hasKey = true

    package init(
        _ examination: Cacheability, _ vary: VaryNames, status: UInt16, before: StoredState
    ) {
        self.status = status
        notStoredReason = examination.notStoredReason
        isShareable = examination.isCollapsible
        isSelectable = vary.isSelectable
        self.storedState = before
    }

    /// The rules allow that it is stored.
    package var isStorable: Bool { notStoredReason == nil && isSelectable && hasKey }

    /// It may be given to others who wait for the same fetch.
    package var isCollapsible: Bool { isShareable && isSelectable && hasKey }

    /// What was stored is not to be used any more, whether or not this one will be whole.
    ///
    /// An answer that may not be stored leaves what is still fresh; a failure says nothing of what
    /// there is.
    package var invalidatesStored: Bool {
        storedState != .nothing && supersedesStored && !StatusRules.isTransient(status)
    }

    /// Those who ask next are not to wait for each other: their answers will not be shared either.
    package var isHitForMiss: Bool {
        supersedesStored && (notStoredReason?.isPermanent == true || !isSelectable)
    }

    private var supersedesStored: Bool { isStorable || storedState != .fresh }
}

extension NotStoredReason {
    /// The next request to the same key will hardly be answered otherwise: it is not the request
    /// that is the reason.
    fileprivate var isPermanent: Bool {
        switch self {
        case .noStore, .isPrivate, .setCookie, .credentials, .varyWildcard, .contentType,
            .neverReusable:
            true
        case .method, .status, .partialContent, .requestNoStore, .authorization: false
        }
    }

    /// It is the request or its client that is the reason, and says nothing of what is stored.
    package var isRequestSpecific: Bool {
        switch self {
        case .requestNoStore, .authorization, .setCookie, .credentials: true
        case .method, .status, .partialContent, .noStore, .isPrivate, .varyWildcard, .contentType,
            .neverReusable:
            false
        }
    }
}

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
