/// How the length of an answer is told to a client (RFC 9112 §6).
package enum ResponseFraming: Hashable, Sendable {
    /// `Content-Length`, this many bytes.
    case length(UInt64)
    /// `Transfer-Encoding: chunked`.
    case chunked
    /// The end of the connection is the end of the body; a break must then be a reset.
    case untilClose
    /// No body and nothing said of its length.
    case none
}

/// When and how a client gets an answer whose body is still being received.
package enum DeliveryPlan: Hashable, Sendable {
    /// Head now, body as it comes, nothing left out.
    case whole(ResponseFraming)
    /// Head now: the parts it asked for can be told from the length that the origin has named.
    case parts(sizeBytes: UInt64)
    /// When the body is whole: what it asked for depends on a length that is not known yet.
    case afterCompletion

    /// What a request can be given.
    ///
    /// `sizeBytes` is the length that the origin has named; nil if it named none. `isKept`: the
    /// body will be held whole, so that waiting for its end costs no memory of its own. `isHTTP10`:
    /// the client cannot read chunks.
    package static func decide(
        _ request: RequestTraits, sizeBytes: UInt64?, isKept: Bool, isHTTP10: Bool
    ) -> DeliveryPlan {
        if let sizeBytes {
            return request.contains(.ranged)
                ? .parts(sizeBytes: sizeBytes) : .whole(.length(sizeBytes))
        }
        if request.contains(.head) { return .whole(.none) }
        if isKept && (request.contains(.ranged) || isHTTP10) { return .afterCompletion }
        return .whole(isHTTP10 ? .untilClose : .chunked)
    }
}
