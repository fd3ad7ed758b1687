/// One request as the origin saw it.
package struct OriginRequest: Sendable {
    /// Its place in the order in which requests came, from 0, over all connections.
    package let number: Int
    /// The connection it came on, from 0 in the order they were accepted.
    package let connection: Int
    /// The method.
    package let method: String
    /// The target as it was sent.
    package let target: String
    /// `HTTP/1.1` or what stood there instead.
    package let version: String
    /// The field lines.
    package let fields: HeaderFields
    /// When its head was complete.
    package let instant: ContinuousClock.Instant

    /// The target up to its query.
    package var path: String {
        String(target.prefix { $0 != "?" })
    }

    /// Whether it asks for the body only if that changed.
    package var isConditional: Bool {
        fields["If-None-Match"] != nil || fields["If-Modified-Since"] != nil
    }
}

/// What came of a request's body at the origin.
package struct OriginRequestBody: Sendable {
    /// Bytes so far.
    package var byteCount = 0
    /// The bytes, nil where they were only compared.
    package var bytes: [UInt8]?
    /// Whether they are a beginning of the expected image; true if none was expected.
    package var isAsExpected = true
    /// Whether its end has come.
    package var isComplete = false
    /// The field lines behind its last chunk.
    package var trailers = HeaderFields()

    /// The body as text.
    package var text: String { String(decoding: bytes ?? [], as: UTF8.self) }
}
