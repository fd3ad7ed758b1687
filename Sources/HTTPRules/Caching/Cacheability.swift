package import Ground

/// Why a response is not stored (RFC 9111 §3).
package enum NotStoredReason: Hashable, Sendable {
    /// The request's method was not GET (RFC 9111 §3).
    case method
    /// The status does not permit storing.
    ///
    /// For images this is any status but 200. For a site it is a status that is not final, that is
    /// specific to one request, that is not understood although `must-understand` requires it, or
    /// for which no lifetime is given and no heuristic is allowed (RFC 9111 §3, §5.2.2.3).
    case status(UInt16)
    /// The status is 206: the body is a part and is never stored as the whole (RFC 9111 §3.3).
    case partialContent
    /// The response has `no-store`, and `must-understand` does not lift it (RFC 9111 §5.2.2.3,
    /// §5.2.2.5).
    case noStore
    /// The request had `no-store` (RFC 9111 §5.2.1.5).
    case requestNoStore
    /// The response has `private` (RFC 9111 §5.2.2.7).
    case isPrivate
    /// The request had Authorization, and no directive allows a shared cache to store the response
    /// (RFC 9111 §3.5).
    case authorization
    /// The response has Set-Cookie, and neither a targeted field (RFC 9213) nor the operator allows
    /// storing it.
    case setCookie
    /// The response has no lifetime, and none is guessed because the request had Cookie or
    /// Authorization, or the response has Set-Cookie: it may be meant for that client only.
    case credentials
    /// The response has `Vary: *` (RFC 9111 §4.1).
    case varyWildcard
    /// The media type is not one that is stored.
    case contentType
    /// The response of a site could never be reused: it has no lifetime or always needs validation,
    /// and it has no validator.
    case neverReusable
}

/// How an origin's response may be stored and shared, derived from its head before its body
/// arrives.
package struct Cacheability: Hashable, Sendable {
    /// The reason why the response is not stored; `nil` if it may be stored.
    package var notStoredReason: NotStoredReason?
    /// True if the response may be shared with requests that wait for the same fetch.
    ///
    /// For an image no freshness is required: requests that already waited when the response was
    /// made receive nothing stale. For a site the response must also be storable, fresh and usable
    /// without validation; otherwise it may be meant for one client although no directive says so
    /// (RFC 9111 §4).
    package var isCollapsible: Bool
    /// True if the media type is one that is stored.
    package var isTypeAccepted: Bool
    /// The age and lifetime of the response.
    package var freshness: Freshness
    /// The flags of the entry if the response is stored.
    package var flags: EntryFlags
    /// The field that held the effective directives.
    package var controlSource: EffectiveCacheControl.Source
    /// The fields that are not stored with the response.
    ///
    /// These are the fields of `private="…"`, which are for one client, and those of
    /// `no-cache="…"`, which would need validation each time (RFC 9111 §5.2.2.4, §5.2.2.7).
    package var unstoredFields: FieldNames
    /// The `stale-while-revalidate` time in seconds; 0 if there is none (RFC 5861 §3).
    package var staleWhileRevalidateSeconds: UInt32
    /// The `stale-if-error` time in seconds; 0 if there is none (RFC 5861 §4).
    package var staleIfErrorSeconds: UInt32
    /// The Last-Modified date; `nil` if there is none or it cannot be parsed.
    package var lastModified: WallTime?
    /// The Date of the response, or the time of receipt if there is none that can be parsed (RFC
    /// 9110 §6.6.1).
    package var date: WallTime

    /// Returns the metadata of the stored response.
    ///
    /// - Parameters:
    ///   - size: the length of the body in bytes.
    ///   - head: the rendered head, which holds the entity tag.
    /// - Returns: metadata of a body of `size` bytes, with the times and flags of this evaluation.
    package func metadata(size: UInt64, head: StoredHead) -> EntryMetadata {
        metadata(size: size, entityTag: head.entityTag)
    }

    /// Returns the metadata of the stored response.
    ///
    /// - Parameters:
    ///   - size: the length of the body in bytes.
    ///   - entityTag: the extent of the entity tag in the rendered head.
    /// - Returns: metadata of a body of `size` bytes, with the times and flags of this evaluation.
    package func metadata(size: UInt64, entityTag: Extent) -> EntryMetadata {
        EntryMetadata(
            size: size, generatedAt: freshness.generatedAt, validatedAt: freshness.requestedAt,
            freshUntil: freshness.freshUntil, flags: flags,
            staleWhileRevalidateSeconds: staleWhileRevalidateSeconds,
            staleIfErrorSeconds: staleIfErrorSeconds,
            lastModified: lastModified, date: date,
            entityTag: entityTag)
    }
}

extension Cacheability {
    /// Restricts a response that was found through a redirect to what the redirect itself permits.
    ///
    /// The response is used no longer than the redirect, and not without validation if that has
    /// `no-cache`. It is neither stored nor shared if the redirect has `no-store`, `private` or
    /// `Vary: *` (RFC 9110 §15.4, RFC 9111 §3).
    ///
    /// - Parameters:
    ///   - redirect: the redirect that led to the response.
    ///   - defaultTTL: the lifetime of a redirect that names none.
    package mutating func limit(by redirect: Redirect, defaultTTL: Interval) {
        let head = redirect.head
        let answered = EffectiveCacheControl(cacheControlOf: head)
        let control = answered.control.ofWholeResponse
        var policy = FreshnessPolicy(defaultTTL: defaultTTL)
        policy.defaultsEveryStatus = true
        let own = Freshness(
            head, control: answered, timing: redirect.timing, policy: policy)
        freshness.requestedAt = min(freshness.requestedAt, own.requestedAt)
        if own.freshUntil < freshness.freshUntil {
            freshness.lifetime = max(.zero, own.freshUntil - freshness.generatedAt)
            freshness.source = own.source
        }
        if control.flags.contains(.noCache) { flags.insert(.noCache) }
        if control.flags.contains(.noStore) {
            notStoredReason = notStoredReason ?? .noStore
        } else if control.flags.contains(.isPrivate) {
            notStoredReason = notStoredReason ?? .isPrivate
        } else if VaryNames(image: head.lines, in: head.bytes.span).isWildcard {
            notStoredReason = notStoredReason ?? .varyWildcard
        } else {
            return
        }
        isCollapsible = false
    }
}

/// Rules for whether a shared cache may store a response, for how long, and for whom (RFC 9111 §3).
///
/// RFC 9111 allows storing a response with Set-Cookie (§7.3) and guessing the lifetime of a
/// response to a request with Cookie. For a site neither is done unless configured: most origins
/// that set or read cookies send no cache directives. For images the request tells the origin
/// nothing about its client, and Set-Cookie is neither stored nor passed on.
package enum CacheabilityRules {
    /// Evaluates the head of a response to `request`; only responses to GET are storable.
    ///
    /// To evaluate the effect of a 304 or of a response to HEAD, pass the stored head with the new
    /// fields as a response to GET (RFC 9111 §3.2, §4.3.5).
    ///
    /// - Parameters:
    ///   - head: the head of the response.
    ///   - request: the properties of the request that matter.
    ///   - timing: when the request was sent and the head received.
    ///   - policy: the operator's rules.
    /// - Returns: whether and how the response may be stored and shared, and for how long.
    package static func evaluate(
        _ head: ResponseHead, to request: RequestCacheability, timing: Freshness.ResponseTiming,
        policy: StoragePolicy
    ) -> Cacheability {
        var answered: EffectiveCacheControl
        switch policy.kind {
        case .image:
            answered = EffectiveCacheControl(cacheControlOf: head)
            answered.control = answered.control.ofWholeResponse
        case .site:
            answered = EffectiveCacheControl(head)
        }
        let control = answered.control
        let isForNobody =
            policy.kind == .image
            ? VaryNames(image: head.lines, in: head.bytes.span).isWildcard
            : VaryNames(head).isWildcard
        let mayGuess = allowsHeuristic(head, request, policy)
        let freshness = Freshness(
            head, control: answered, timing: timing,
            policy: mayGuess ? policy.freshness : policy.freshness.withoutHeuristics)
        let isTypeAccepted = policy.types?.accepts(head) ?? true
        let date = Freshness.time(head, .date, timing)
        let lastModified = Freshness.time(head, .lastModified, timing)
        let personal = privateReason(
            head, control, request, isVaryEverything: isForNobody)
        var notStored = notStoredReason(head, control, freshness, request, policy.kind)
        notStored = notStored ?? personal
        if notStored == nil, !policy.storesSetCookie, !answered.isExplicitlyStorable,
            head.first(.setCookie) != nil
        {
            notStored = .setCookie
        }
        if notStored == nil, !mayGuess, freshness.source == .none { notStored = .credentials }
        if notStored == nil, !isTypeAccepted { notStored = .contentType }
        // No request may use it without validation, whatever the site's settings for stale
        // responses.
        let isBound = !mayGuess && !hasExplicitLifetime(control, freshness)
        if notStored == nil, policy.kind == .site, lastModified == nil, !hasEntityTag(head),
            isBound || alwaysNeedsValidation(control, freshness)
        {
            notStored = .neverReusable
        }
        let isUsedUnasked =
            notStored == nil && !control.flags.contains(.noCache)
            && timing.receivedAt < freshness.freshUntil
        var unstoredFields = control.privateFields
        unstoredFields.formUnion(control.noCacheFields)
        return Cacheability(
            notStoredReason: notStored,
            isCollapsible: policy.kind == .image ? personal == nil : isUsedUnasked,
            isTypeAccepted: isTypeAccepted, freshness: freshness,
            flags: flags(control, date: date, lastModified: lastModified)
                .union(isBound ? .mustRevalidate : []),
            controlSource: answered.source, unstoredFields: unstoredFields,
            staleWhileRevalidateSeconds: seconds(control.staleWhileRevalidate),
            staleIfErrorSeconds: seconds(control.staleIfError),
            lastModified: lastModified, date: date ?? timing.receivedWallTime)
    }

    /// Returns true if a lifetime may be guessed for a response that names none.
    ///
    /// Not if the request has Cookie or Authorization or the response Set-Cookie, because it may be
    /// meant for one client only, unless the policy ignores these.
    private static func allowsHeuristic(
        _ head: ResponseHead, _ request: RequestCacheability, _ policy: StoragePolicy
    ) -> Bool {
        if policy.freshness.ignoresCredentials { return true }
        return !request.hasCookie && !request.hasAuthorization && head.first(.setCookie) == nil
    }

    /// Returns true if the response itself names a time in which it may be used, fresh or stale.
    private static func hasExplicitLifetime(_ control: CacheControl, _ freshness: Freshness) -> Bool
    {
        freshness.lifetime > .zero || control.staleWhileRevalidate != nil
            || control.staleIfError != nil
    }

    /// Returns why the method or the status forbids storing; `nil` if they permit it, regardless of
    /// `private` and the like.
    private static func notStoredReason(
        _ head: ResponseHead, _ control: CacheControl, _ freshness: Freshness,
        _ request: RequestCacheability, _ kind: StoragePolicy.Kind
    ) -> NotStoredReason? {
        if request.method != .get { return .method }
        if head.status == 206 { return .partialContent }
        let isStored: Bool
        switch kind {
        case .image: isStored = head.status == 200
        case .site:
            let isFinal = (200...599).contains(head.status) && head.status != 304
            let isUnderstood =
                !control.flags.contains(.mustUnderstand) || StatusRules.isUnderstood(head.status)
            let isPermitted =
                freshness.source != .none || control.flags.contains(.isPublic)
                || StatusRules.isHeuristicallyCacheable(head.status)
            isStored =
                isFinal && isUnderstood && isPermitted
                && !StatusRules.isRequestSpecific(head.status)
        }
        return isStored ? nil : .status(head.status)
    }

    /// Returns why the response is for the requesting client only; `nil` if it is for all.
    private static func privateReason(
        _ head: ResponseHead, _ control: CacheControl, _ request: RequestCacheability,
        isVaryEverything: Bool
    ) -> NotStoredReason? {
        let isLifted =
            control.flags.contains(.mustUnderstand) && StatusRules.isUnderstood(head.status)
        if control.flags.contains(.noStore), !isLifted { return .noStore }
        if request.isNoStore { return .requestNoStore }
        if control.flags.contains(.isPrivate) { return .isPrivate }
        if request.hasAuthorization, !allowsAuthorization(control) { return .authorization }
        return isVaryEverything ? .varyWildcard : nil
    }

    /// Returns true if the response must not be used stale (RFC 9111 §5.2.2.2, §5.2.2.8,
    /// §5.2.2.10).
    private static func forbidsStaleUse(_ control: CacheControl) -> Bool {
        control.flags.contains(.mustRevalidate) || control.flags.contains(.proxyRevalidate)
            || control.sMaxAge != nil
    }

    /// Returns true if the response may be shared although the request had Authorization (RFC 9111
    /// §3.5).
    private static func allowsAuthorization(_ control: CacheControl) -> Bool {
        control.flags.contains(.mustRevalidate) || control.flags.contains(.isPublic)
            || control.sMaxAge != nil
    }

    /// Returns true if no lifetime is named or guessed, or if every use requires validation.
    private static func alwaysNeedsValidation(_ control: CacheControl, _ freshness: Freshness)
        -> Bool
    {
        freshness.source == .none || control.flags.contains(.noCache)
            || (forbidsStaleUse(control) && freshness.lifetime == .zero)
    }

    /// Returns true if the first ETag is well formed.
    private static func hasEntityTag(_ head: ResponseHead) -> Bool {
        guard let value = head.first(.etag) else { return false }
        return EntityTag(head.bytes.span, at: value.range) != nil
    }

    /// Returns the flags that follow from the directives and, for a strong date, from both dates.
    private static func flags(
        _ control: CacheControl, date: WallTime?, lastModified: WallTime?
    ) -> EntryFlags {
        var flags: EntryFlags = []
        if control.flags.contains(.noCache) { flags.insert(.noCache) }
        if forbidsStaleUse(control) { flags.insert(.mustRevalidate) }
        if control.flags.contains(.immutable) { flags.insert(.immutable) }
        if allowsAuthorization(control) { flags.insert(.allowsAuthorization) }
        if let date, let lastModified, date.seconds - lastModified.seconds >= 1 {
            flags.insert(.strongDate)
        }
        return flags
    }

    /// Returns whole seconds, clamped to 32 bits; 0 for `nil`.
    private static func seconds(_ interval: Interval?) -> UInt32 {
        UInt32(clamping: interval?.seconds ?? 0)
    }
}

/// The properties of a request that decide whether its response may be stored (RFC 9111 §3).
package struct RequestCacheability: Hashable, Sendable {
    /// The request methods that the rules distinguish.
    package enum Method: Hashable, Sendable {
        case get
        case head
        case other
    }

    /// The method of the request.
    package var method: Method
    /// True if the request had Authorization (RFC 9111 §3.5).
    package var hasAuthorization: Bool
    /// True if the request had Cookie.
    package var hasCookie: Bool
    /// True if the request had `no-store` (RFC 9111 §5.2.1.5).
    package var isNoStore: Bool

    /// Creates the properties of a request; by default those of a plain GET.
    package init(
        method: Method = .get, hasAuthorization: Bool = false, hasCookie: Bool = false,
        isNoStore: Bool = false
    ) {
        self.method = method
        self.hasAuthorization = hasAuthorization
        self.hasCookie = hasCookie
        self.isNoStore = isNoStore
    }
}
