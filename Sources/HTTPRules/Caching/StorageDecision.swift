package import Ground

/// How a complete response of a site's origin is stored and shared, as far as its head decides (RFC
/// 9111 §3, §4.1).
package struct StorageDecision: Hashable, Sendable {
    /// The state of the stored response for the same request before this one arrived.
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
    /// True if later requests can find the response under a cache key; true until set otherwise.
    package var hasKey = true

    /// Creates the decision from a response's cacheability.
    ///
    /// - Parameters:
    ///   - examination: the cacheability of the response.
    ///   - vary: the field names that its Vary nominates.
    ///   - status: its status code.
    ///   - before: the state of the stored response for the same request.
    package init(
        _ examination: Cacheability, _ vary: VaryNames, status: UInt16, before: StoredState
    ) {
        self.status = status
        notStoredReason = examination.notStoredReason
        isShareable = examination.isCollapsible
        isSelectable = vary.isSelectable
        self.storedState = before
    }

    /// True if the response may be stored.
    package var isStorable: Bool { notStoredReason == nil && isSelectable && hasKey }

    /// True if the response may be shared with requests that wait for the same fetch.
    package var isCollapsible: Bool { isShareable && isSelectable && hasKey }

    /// True if the stored response must no longer be used, whether or not this one is received
    /// completely.
    ///
    /// A response that may not be stored does not displace one that is still fresh; a transient
    /// error displaces nothing.
    package var invalidatesStored: Bool {
        storedState != .nothing && supersedesStored && !StatusRules.isTransient(status)
    }

    /// True if later requests for the key must not wait for each other (hit-for-miss): their
    /// responses could not be shared either.
    package var isHitForMiss: Bool {
        supersedesStored && (notStoredReason?.isPermanent == true || !isSelectable)
    }

    /// True if the response may be stored, or the stored one for the same request is not fresh.
    private var supersedesStored: Bool { isStorable || storedState != .fresh }
}

extension NotStoredReason {
    /// True if the next response for the same key is likely to be unstorable for the same reason.
    fileprivate var isPermanent: Bool {
        switch self {
        case .noStore, .isPrivate, .setCookie, .credentials, .varyWildcard, .contentType,
            .neverReusable:
            true
        case .method, .status, .partialContent, .requestNoStore, .authorization: false
        }
    }

    /// True if the reason lies in the request or its client and says nothing about a stored
    /// response.
    package var isRequestSpecific: Bool {
        switch self {
        case .requestNoStore, .authorization, .setCookie, .credentials: true
        case .method, .status, .partialContent, .noStore, .isPrivate, .varyWildcard, .contentType,
            .neverReusable:
            false
        }
    }
}

/// The operator's rules for which responses are stored, and for how long.
package struct StoragePolicy: Hashable, Sendable {
    /// The set of rules that applies.
    package enum Kind: Hashable, Sendable {
        /// Rules for images by their URL: only 200 is stored; targeted fields are ignored.
        case image
        /// Rules for a site: a shared cache by RFC 9111 and RFC 9213.
        case site
    }

    /// The set of rules that applies.
    package let kind: Kind
    /// The operator's rules for lifetimes.
    package var freshness: FreshnessPolicy
    /// The media types that are stored; `nil` for all.
    package let types: ImageMediaTypes?
    /// True if a response with Set-Cookie is stored like any other (RFC 9111 §7.3).
    ///
    /// If false, it is stored only if a targeted field permits it
    /// (``EffectiveCacheControl/isExplicitlyStorable``).
    package let storesSetCookie: Bool

    private init(
        kind: Kind, freshness: FreshnessPolicy, types: ImageMediaTypes?, storesSetCookie: Bool
    ) {
        self.kind = kind
        self.freshness = freshness
        self.types = types
        self.storesSetCookie = storesSetCookie
    }

    /// Creates the rules of `/v1/image`.
    ///
    /// - Parameters:
    ///   - defaultTTL: the lifetime of a response that names none.
    ///   - types: the media types that are stored.
    /// - Returns: rules without heuristic lifetimes, whose default lifetime applies to every
    ///   status.
    package static func image(defaultTTL: Interval, types: ImageMediaTypes) -> StoragePolicy {
        var freshness = FreshnessPolicy(defaultTTL: defaultTTL)
        freshness.defaultsEveryStatus = true
        freshness.isHeuristic = false
        freshness.ignoresCredentials = true
        // Set-Cookie itself is neither stored nor passed on.
        return StoragePolicy(
            kind: .image, freshness: freshness, types: types, storesSetCookie: true)
    }

    /// Creates the rules of a site; without arguments those of a site without settings.
    ///
    /// - Parameters:
    ///   - freshness: the operator's rules for lifetimes.
    ///   - storesSetCookie: true to store a response with Set-Cookie like any other.
    /// - Returns: rules that store responses of every media type.
    package static func site(
        freshness: FreshnessPolicy = FreshnessPolicy(), storesSetCookie: Bool = false
    ) -> StoragePolicy {
        StoragePolicy(
            kind: .site, freshness: freshness, types: nil, storesSetCookie: storesSetCookie)
    }
}
