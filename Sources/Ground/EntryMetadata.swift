/// What a decision needs to know of a stored answer: a flat value, without a byte of the body.
package struct EntryMetadata: Hashable, Sendable {
    /// Length of the body in bytes.
    package var size: UInt64
    /// The instant at which the answer's age was zero: response time less the corrected initial age
    /// (RFC 9111 §4.2.3).
    package var generatedAt: Instant
    /// When the request began that the origin last answered with it, or with its validation; the
    /// least instant if that is not known.
    package var validatedAt: Instant
    /// The first instant at which the answer is no longer fresh (RFC 9111 §4.2).
    package var freshUntil: Instant
    package var flags: EntryFlags
    /// For how many seconds after ``freshUntil`` it may be used while it is validated (RFC 5861
    /// §3).
    package var staleWhileRevalidateSeconds: UInt32
    /// For how many seconds after ``freshUntil`` it may be used when the origin fails (RFC 5861
    /// §4).
    package var staleIfErrorSeconds: UInt32
    /// Last-Modified; nil if there was none or it could not be read.
    package var lastModified: WallTime?
    /// The origin's Date, or the time of receipt if it sent none.
    package var date: WallTime
    /// The entity tag with its quotes and its `W/`, in the entry's head bytes; empty if there is
    /// none.
    package var entityTag: Extent

    package init(
        size: UInt64, bornAt: Instant, validatedAt: Instant = .distantPast, freshUntil: Instant,
        flags: EntryFlags,
        staleWhileRevalidateSeconds: UInt32 = 0, staleIfErrorSeconds: UInt32 = 0,
        lastModified: WallTime?, date: WallTime, entityTag: Extent
    ) {
        self.size = size
        self.generatedAt = bornAt
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

/// Yes-or-no facts of a stored answer.
package struct EntryFlags: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// `no-cache`: never used without asking the origin (RFC 9111 §5.2.2.4).
    package static let noCache = EntryFlags(rawValue: 1 << 0)
    /// Last-Modified may be used as a strong validator: at least 1 s older than Date (RFC 9110
    /// §8.8.2.2).
    package static let strongDate = EntryFlags(rawValue: 1 << 1)
    /// Never used stale: `must-revalidate`, `proxy-revalidate`, or `s-maxage` (RFC 9111 §4.2.4).
    package static let mustRevalidate = EntryFlags(rawValue: 1 << 2)
    /// `immutable`: while it is fresh no client's reload has it validated (RFC 8246 §2).
    package static let immutable = EntryFlags(rawValue: 1 << 3)
    /// It may be given to requests with Authorization (RFC 9111 §3.5).
    package static let allowsAuthorization = EntryFlags(rawValue: 1 << 4)
    /// The stored lines do not say how long it is fresh: clients are told something else.
    package static let overridesControl = EntryFlags(rawValue: 1 << 5)
    /// The head has the origin's Date: none is added when it is sent.
    package static let isDated = EntryFlags(rawValue: 1 << 9)
    /// It is no answer: under its key stands which fields of a request select one (RFC 9111 §4.1).
    package static let isVariantIndex = EntryFlags(rawValue: 1 << 6)
    /// It is no answer: the key's answers are not stored, and requests do not wait for each other.
    package static let isHitForMiss = EntryFlags(rawValue: 1 << 7)

    /// How long it is fresh came from Nuthatch-Cache-Control, which is not among the stored lines
    /// (RFC 9213 §2.1).
    package static let nuthatchControl = EntryFlags(rawValue: 1 << 8)

    /// Of a decision, never of what is stored: the node is not proven current, so that it is used
    /// by nobody's leave but that for an origin that fails.
    package static let isFenced = EntryFlags(rawValue: 1 << 15)

    /// The same as `contains(.isDated)`, for every hit: a set operation would be a call there.
    @inline(__always)
    package var hasDate: Bool { rawValue & 1 << 9 != 0 }

    /// True for what may be given to a client.
    @inline(__always)
    package var isResponse: Bool { rawValue & 0b1100_0000 == 0 }
}

/// What is left of a client's Accept and Accept-Encoding when it is passed to the origin.
///
/// One bit for each type that not every client reads, and one for each coding.
package struct Negotiation: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let avif = Negotiation(rawValue: 1 << 0)
    package static let webp = Negotiation(rawValue: 1 << 1)
    package static let jxl = Negotiation(rawValue: 1 << 2)
    package static let svg = Negotiation(rawValue: 1 << 3)
    package static let brotli = Negotiation(rawValue: 1 << 4)
    package static let gzip = Negotiation(rawValue: 1 << 5)

    /// Every bit; of the two codings at most one is set.
    package static let all = Negotiation(rawValue: 0b11_1111)
}
