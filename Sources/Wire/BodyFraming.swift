/// How the end of a message's body is found (RFC 9112 §6.3).
package enum BodyFraming: Hashable, Sendable {
    /// There is no body, whatever the fields say.
    case none
    /// Content-Length, in bytes.
    case length(UInt64)
    /// Transfer-Encoding: chunked.
    case chunked
    /// The body ends where the connection does; answers only.
    case untilClose
}
