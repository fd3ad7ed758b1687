package import Ground

/// What is to be done with an entry that was found in memory.
package enum HitDecision: Hashable, Sendable {
    /// Fresh, and the request asks for nothing but the whole of it.
    case serve
    /// Fresh; the request is conditional or wants a part, which the entry's validators decide.
    case evaluateConditions
    /// Not to be used before the origin has been asked again.
    case revalidate
}

/// What a request asks of an entry, as far as it can be seen without looking at a field's value.
package struct RequestTraits: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// HEAD: everything but the body.
    package static let head = RequestTraits(rawValue: 1 << 0)
    /// Any of If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since is there.
    package static let conditional = RequestTraits(rawValue: 1 << 1)
    /// GET with Range; a Range on any other method has no meaning (RFC 9110 §14.2).
    package static let ranged = RequestTraits(rawValue: 1 << 2)

    /// The facts of a request; made here, because in another room each set operation would be a
    /// call.
    package init(isHead: Bool, isConditional: Bool, isRanged: Bool) {
        rawValue = (isHead ? 1 : 0) | (isConditional ? 2 : 0) | (isRanged && !isHead ? 4 : 0)
    }

    package var isHead: Bool { rawValue & 1 != 0 }

    /// Anything but the whole may have to be given.
    @inline(__always)
    package var isSelective: Bool { rawValue & ~Self.head.rawValue != 0 }
}

/// Decides a memory hit; nothing else does.
///
/// RFC 9111 §4: a stored answer is used if it is fresh and does not demand validation.
@inline(__always)
package func decideHit(_ facts: EntryMetadata, for request: RequestTraits, now: Instant)
    -> HitDecision
{
    guard now < facts.freshUntil, !facts.flags.contains(.noCache) else { return .revalidate }
    return request.isSelective ? .evaluateConditions : .serve
}
