package import Ground

/// Why an answer is not stored (RFC 9111 §3).
package enum NotStoredReason: Hashable, Sendable {
    /// It answers another method than GET (RFC 9111 §3).
    case method
    /// Of images any status but 200; of a site one that is not final, that answers to one request
    /// only, that is not understood though it must be, or for which nothing names a lifetime and
    /// none may be guessed (RFC 9111 §3, §5.2.2.3).
    case status(UInt16)
    /// 206 holds a part and is never stored as the whole (RFC 9111 §3.3).
    case partialContent
    /// `no-store`, unless `must-understand` lifts it (RFC 9111 §5.2.2.3, §5.2.2.5).
    case noStore
    /// The request said `no-store` (RFC 9111 §5.2.1.5).
    case requestNoStore
    /// `private` (RFC 9111 §5.2.2.7).
    case isPrivate
    /// The request had an Authorization, and nothing says that the answer is for others too (RFC
    /// 9111 §3.5).
    case authorization
    /// Set-Cookie, and neither a targeted field (RFC 9213) nor the operator says that it may be
    /// stored.
    case setCookie
    /// Nothing names a lifetime, and none is guessed because the request had Cookie or
    /// Authorization: the answer may be for whoever sent those.
    case credentials
    /// `Vary: *` (RFC 9111 §4.1).
    case varyWildcard
    /// The type is none of those that are stored.
    case contentType
    /// Nothing says for how long it is fresh, or it may never be used before the origin has been
    /// asked; and there is no validator to ask with.
    case neverReusable
}

/// What there is to know of an origin's answer before its body comes.
package struct Cacheability: Hashable, Sendable {
    /// Nil if the answer may be stored.
    package var notStoredReason: NotStoredReason?
    /// It may be given to others who wait for the same fetch: nothing in it is for one client only.
    ///
    /// Of an image this does not ask for freshness: who was already waiting when the answer was
    /// made is given nothing stale. Of a site it does, and for leave to use it unasked: such an
    /// answer may be for one client though nothing says so (RFC 9111 §4).
    package var isCollapsible: Bool
    /// The type is one of those that are stored.
    package var isTypeAccepted: Bool
    package var freshness: Freshness
    package var flags: EntryFlags
    /// Where the directives stood that counted.
    package var controlSource: EffectiveCacheControl.Source
    /// The fields that are not stored with the answer: those of `private="…"`, which are for one
    /// client, and those of `no-cache="…"`, which would have to be asked for again each time (RFC
    /// 9111 §5.2.2.4, §5.2.2.7).
    package var unstoredFields: FieldNames
    package var staleWhileRevalidateSeconds: UInt32
    package var staleIfErrorSeconds: UInt32
    package var lastModified: WallTime?
    /// Date, or the time of receipt if there is none that can be read (RFC 9110 §6.6.1).
    package var date: WallTime

    /// The facts of the stored answer, whose body has `size` bytes and whose head is `head`.
    package func metadata(size: UInt64, head: StoredHead) -> EntryMetadata {
        metadata(size: size, entityTag: head.entityTag)
    }

    /// The same for a head in which the entity tag lies in `entityTag`.
    package func metadata(size: UInt64, entityTag: Extent) -> EntryMetadata {
        EntryMetadata(
            size: size, bornAt: freshness.generatedAt, validatedAt: freshness.requestedAt,
            freshUntil: freshness.freshUntil, flags: flags,
            staleWhileRevalidateSeconds: staleWhileRevalidateSeconds,
            staleIfErrorSeconds: staleIfErrorSeconds,
            lastModified: lastModified, date: date,
            entityTag: entityTag)
    }
}

extension Cacheability {
    /// What was found by way of a redirect is used no longer, by nobody else, and for no other
    /// request than the redirect itself could be (RFC 9110 §15.4, RFC 9111 §3).
    ///
    /// `defaultTTL` is for a redirect that says nothing of its freshness.
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

/// Whether an answer may be stored by a shared cache, for how long, and for whom (RFC 9111 §3).
///
/// RFC 9111 lets an answer with Set-Cookie be stored (§7.3), and the lifetime of one to a request
/// with Cookie be guessed. Of a site neither is done unless somebody says so: most origins that set
/// or read cookies say nothing of caches. Of images the request told the origin nothing of its
/// client, and Set-Cookie is neither stored nor passed on.
package enum CacheabilityRules {
    /// Examines the answer to `request`; only one to a GET is stored.
    ///
    /// To learn what a 304 or the answer to a HEAD makes of a stored answer, the stored head with
    /// the new fields is examined as the answer to a GET (RFC 9111 §3.2, §4.3.5).
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
        // It is used by nobody unasked, whatever the site's settings say of stale answers.
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

    /// A lifetime may be guessed where the answer names none: not of a failure of a site's, which
    /// has a time of its own or none, nor of what may be for one client only.
    private static func allowsHeuristic(
        _ head: ResponseHead, _ request: RequestCacheability, _ policy: StoragePolicy
    ) -> Bool {
        if policy.freshness.ignoresCredentials { return true }
        return !request.hasCookie && !request.hasAuthorization && head.first(.setCookie) == nil
    }

    /// The answer says itself that it may be used for a while, fresh or stale.
    private static func hasExplicitLifetime(_ control: CacheControl, _ freshness: Freshness) -> Bool
    {
        freshness.lifetime > .zero || control.staleWhileRevalidate != nil
            || control.staleIfError != nil
    }

    /// Why nothing is stored with this method and status, whatever the answer says of its clients.
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

    /// Why the answer is for nobody but the client that asked.
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

    /// Nobody may use the answer stale (RFC 9111 §5.2.2.2, §5.2.2.8, §5.2.2.10).
    private static func forbidsStaleUse(_ control: CacheControl) -> Bool {
        control.flags.contains(.mustRevalidate) || control.flags.contains(.proxyRevalidate)
            || control.sMaxAge != nil
    }

    /// The answer to a request with Authorization may be given to others (RFC 9111 §3.5).
    private static func allowsAuthorization(_ control: CacheControl) -> Bool {
        control.flags.contains(.mustRevalidate) || control.flags.contains(.isPublic)
            || control.sMaxAge != nil
    }

    /// No lifetime is named or guessed, or no request may be answered with it before the origin has
    /// been asked.
    private static func alwaysNeedsValidation(_ control: CacheControl, _ freshness: Freshness)
        -> Bool
    {
        freshness.source == .none || control.flags.contains(.noCache)
            || (forbidsStaleUse(control) && freshness.lifetime == .zero)
    }

    private static func hasEntityTag(_ head: ResponseHead) -> Bool {
        guard let value = head.first(.etag) else { return false }
        return EntityTag(head.bytes.span, at: value.range) != nil
    }

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

    private static func seconds(_ interval: Interval?) -> UInt32 {
        UInt32(clamping: interval?.seconds ?? 0)
    }
}

/// What the storing of an answer depends on in its request (RFC 9111 §3).
package struct RequestCacheability: Hashable, Sendable {
    package enum Method: Hashable, Sendable {
        case get
        case head
        case other
    }

    package var method: Method
    /// It had an Authorization (RFC 9111 §3.5).
    package var hasAuthorization: Bool
    /// It had a Cookie.
    package var hasCookie: Bool
    /// It said `no-store` (RFC 9111 §5.2.1.5).
    package var isNoStore: Bool

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
