package import Ground

/// The action to take for an entry found in memory.
package enum HitDecision: Hashable, Sendable {
    /// Fresh, and the request wants the whole response unconditionally.
    case serve
    /// Fresh; the request is conditional or has a range, so the entry's validators must be
    /// compared.
    case evaluateConditions
    /// Not to be served before revalidation with the origin.
    case revalidate
}

/// The kind of a request, as far as it follows from the presence of fields alone.
package struct RequestTraits: OptionSet, Hashable, Sendable {
    /// The bits.
    package let rawValue: UInt8

    /// Creates traits from their bits.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// HEAD: the client wants no body.
    package static let head = RequestTraits(rawValue: 1 << 0)
    /// If-Match, If-None-Match, If-Modified-Since or If-Unmodified-Since is present.
    package static let conditional = RequestTraits(rawValue: 1 << 1)
    /// GET with Range; Range on any other method is ignored (RFC 9110 §14.2).
    package static let ranged = RequestTraits(rawValue: 1 << 2)

    /// Creates the traits of a request; `isRanged` is ignored for HEAD.
    ///
    /// Defined here because a set operation in another module would not be inlined.
    package init(isHead: Bool, isConditional: Bool, isRanged: Bool) {
        rawValue = (isHead ? 1 : 0) | (isConditional ? 2 : 0) | (isRanged && !isHead ? 4 : 0)
    }

    /// True for HEAD, without the call of a set operation.
    package var isHead: Bool { rawValue & 1 != 0 }

    /// True if the response may be something other than the whole representation.
    @inline(__always)
    package var isSelective: Bool { rawValue & ~Self.head.rawValue != 0 }
}

/// Decides how to serve a memory hit; the only place where this is decided.
///
/// A stored response is served if it is fresh and does not require validation (RFC 9111 §4).
@inline(__always)
package func decideHit(_ facts: EntryMetadata, for request: RequestTraits, now: Instant)
    -> HitDecision
{
    guard now < facts.freshUntil, !facts.flags.contains(.noCache) else { return .revalidate }
    return request.isSelective ? .evaluateConditions : .serve
}
