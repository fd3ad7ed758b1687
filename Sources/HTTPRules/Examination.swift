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
