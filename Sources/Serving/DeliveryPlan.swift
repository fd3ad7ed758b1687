/// The message framing by which a client learns the length of a response body (RFC 9112 §6).
package enum ResponseFraming: Hashable, Sendable {
    /// `Content-Length` with this many bytes.
    case length(UInt64)
    /// `Transfer-Encoding: chunked`.
    case chunked
    /// The end of the connection ends the body; an incomplete body must end with a reset.
    case untilClose
    /// No body, and no field that states its length.
    case none
}

/// The time and form in which a client receives a response whose body is still being received.
package enum DeliveryPlan: Hashable, Sendable {
    /// Send the head now and the whole body as it arrives.
    case whole(ResponseFraming)
    /// Send the head now: the requested ranges can be computed, because the origin has stated the
    /// length.
    case parts(sizeBytes: UInt64)
    /// Send nothing before the body is complete: the requested ranges depend on a length not yet
    /// known.
    case afterCompletion

    /// Decides how to deliver a response to a request.
    ///
    /// - Parameters:
    ///   - request: the kind of request.
    ///   - sizeBytes: the length that the origin has stated; `nil` if it stated none.
    ///   - isKept: true if the whole body will be stored, so that waiting for its end needs no
    ///     extra memory.
    ///   - isHTTP10: true if the client cannot decode the chunked coding.
    /// - Returns: when to send the head, and how to frame the body.
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
