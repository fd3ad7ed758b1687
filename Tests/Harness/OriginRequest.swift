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
