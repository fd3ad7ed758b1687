/// The facts of a stored response that caching decisions need: a flat value without body bytes.
package struct EntryMetadata: Hashable, Sendable {
    /// Length of the body in bytes.
    package var size: UInt64
    /// The instant at which the response's age was zero: response time minus corrected initial age
    /// (RFC 9111 §4.2.3).
    package var generatedAt: Instant
    /// The start of the request that the origin last answered with this response or its validation;
    /// ``Instant/distantPast`` if unknown.
    package var validatedAt: Instant
    /// The first instant at which the response is no longer fresh (RFC 9111 §4.2).
    package var freshUntil: Instant
    /// The yes-or-no facts of the response.
    package var flags: EntryFlags
    /// Seconds after ``freshUntil`` during which the response may be served while it is revalidated
    /// (RFC 5861 §3).
    package var staleWhileRevalidateSeconds: UInt32
    /// Seconds after ``freshUntil`` during which the response may be served if the origin fails
    /// (RFC 5861 §4).
    package var staleIfErrorSeconds: UInt32
    /// The value of Last-Modified; `nil` if it is absent or invalid.
    package var lastModified: WallTime?
    /// The value of the origin's Date, or the time of receipt if it sent none.
    package var date: WallTime
    /// The extent of the entity tag in the entry's head bytes, with its quotes and `W/`; empty if
    /// there is none.
    package var entityTag: Extent

    /// Creates metadata from its parts; `size` is in bytes.
    package init(
        size: UInt64, generatedAt: Instant, validatedAt: Instant = .distantPast,
        freshUntil: Instant,
        flags: EntryFlags,
        staleWhileRevalidateSeconds: UInt32 = 0, staleIfErrorSeconds: UInt32 = 0,
        lastModified: WallTime?, date: WallTime, entityTag: Extent
    ) {
        self.size = size
        self.generatedAt = generatedAt
        self.validatedAt = validatedAt
        self.freshUntil = freshUntil
        self.flags = flags
        self.staleWhileRevalidateSeconds = staleWhileRevalidateSeconds
        self.staleIfErrorSeconds = staleIfErrorSeconds
        self.lastModified = lastModified
        self.date = date
        self.entityTag = entityTag
    }
}

/// The yes-or-no facts of a stored response.
package struct EntryFlags: OptionSet, Hashable, Sendable {
    /// The bits as they are stored on disk.
    package let rawValue: UInt16

    /// Creates flags from their bits.
    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// `no-cache`: never served without revalidation (RFC 9111 §5.2.2.4).
    package static let noCache = EntryFlags(rawValue: 1 << 0)
    /// Last-Modified is a strong validator: at least 1 s older than Date (RFC 9110 §8.8.2.2).
    package static let strongDate = EntryFlags(rawValue: 1 << 1)
    /// Never served stale: `must-revalidate`, `proxy-revalidate` or `s-maxage` (RFC 9111 §4.2.4);
    /// or the response names no lifetime, and none may be guessed.
    package static let mustRevalidate = EntryFlags(rawValue: 1 << 2)
    /// `immutable`: while the response is fresh, a client's reload does not cause revalidation (RFC
    /// 8246 §2).
    package static let immutable = EntryFlags(rawValue: 1 << 3)
    /// The response may be served to requests with Authorization (RFC 9111 §3.5).
    package static let allowsAuthorization = EntryFlags(rawValue: 1 << 4)
    /// The freshness does not follow from the stored Cache-Control: clients are sent another value.
    package static let overridesControl = EntryFlags(rawValue: 1 << 5)
    /// The stored head has the origin's Date, so none is added when it is sent.
    package static let isDated = EntryFlags(rawValue: 1 << 9)
    /// Not a response but the list of request fields that select a variant of the key (RFC 9111
    /// §4.1).
    package static let isVariantIndex = EntryFlags(rawValue: 1 << 6)
    /// Not a response but a marker: responses to the key are not stored, and requests do not wait
    /// for each other's fetch.
    package static let isHitForMiss = EntryFlags(rawValue: 1 << 7)

    /// The freshness came from Nuthatch-Cache-Control, which is not among the stored fields (RFC
    /// 9213 §2.1).
    package static let nuthatchControl = EntryFlags(rawValue: 1 << 8)

    /// Transient, never stored: the node may lack a purge, so the response is served only if the
    /// origin fails.
    package static let isFenced = EntryFlags(rawValue: 1 << 15)

    /// True if the head has the origin's Date.
    ///
    /// Equals `contains(.isDated)`, without the call that a set operation would cost on every hit.
    @inline(__always)
    package var hasDate: Bool { rawValue & 1 << 9 != 0 }

    /// True for a response that may be served to a client, false for the two kinds of markers.
    @inline(__always)
    package var isResponse: Bool { rawValue & 0b1100_0000 == 0 }
}

/// The parts of a client's Accept and Accept-Encoding that are forwarded to the origin.
///
/// One bit for each media type that not every client supports, and one for each content coding.
package struct Negotiation: OptionSet, Hashable, Sendable {
    /// The bits; also an index into tables of all 64 sets.
    package let rawValue: UInt8

    /// Creates a set from its bits.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The client accepts `image/avif`.
    package static let avif = Negotiation(rawValue: 1 << 0)
    /// The client accepts `image/webp`.
    package static let webp = Negotiation(rawValue: 1 << 1)
    /// The client accepts `image/jxl`.
    package static let jxl = Negotiation(rawValue: 1 << 2)
    /// The client accepts `image/svg+xml`.
    package static let svg = Negotiation(rawValue: 1 << 3)
    /// The client accepts the content coding `br`.
    package static let brotli = Negotiation(rawValue: 1 << 4)
    /// The client accepts the content coding `gzip`.
    package static let gzip = Negotiation(rawValue: 1 << 5)

    /// Every bit.
    ///
    /// At most one of the two codings is set in an actual negotiation.
    package static let all = Negotiation(rawValue: 0b11_1111)
}
