/// One request as the origin received it.
package struct OriginRequest: Sendable {
    /// The request's index in order of arrival over all connections, from 0.
    package let number: Int
    /// The index of its connection in order of acceptance, from 0.
    package let connection: Int
    /// The method.
    package let method: String
    /// The request target as sent.
    package let target: String
    /// The version of the request line, such as `HTTP/1.1`.
    package let version: String
    /// The field lines.
    package let fields: HeaderFields
    /// The time at which the head was complete.
    package let instant: ContinuousClock.Instant

    /// The target without its query.
    package var path: String {
        String(target.prefix { $0 != "?" })
    }

    /// True if the request is conditional.
    package var isConditional: Bool {
        fields["If-None-Match"] != nil || fields["If-Modified-Since"] != nil
    }
}

/// The body of a request as the origin received it.
package struct OriginRequestBody: Sendable {
    /// Bytes received so far.
    package var byteCount = 0
    /// The bytes; `nil` where they were only compared.
    package var bytes: [UInt8]?
    /// True if they are a prefix of the expected image, or none was expected.
    package var isAsExpected = true
    /// True if the body is complete.
    package var isComplete = false
    /// The field lines of the trailer section.
    package var trailers = HeaderFields()

    /// The body as text.
    package var text: String { String(decoding: bytes ?? [], as: UTF8.self) }
}
