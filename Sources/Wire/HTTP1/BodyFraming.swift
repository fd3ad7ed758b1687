import Ground

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

/// How the body of a request that is sent is framed (RFC 9112 §6).
package enum RequestBodyFraming: Hashable, Sendable {
    /// There is none, and no field says so.
    case none
    /// Content-Length, in bytes; 0 for a body that is said to be empty (RFC 9110 §8.6).
    case length(UInt64)
    case chunked
    /// Bytes of another protocol, until one side ends the connection (RFC 9110 §7.8).
    case upgraded

    /// The framing of a request that was received; nil for one that only answers have.
    package init?(_ framing: BodyFraming) {
        switch framing {
        case .none: self = .none
        case .length(let count): self = .length(count)
        case .chunked: self = .chunked
        case .untilClose: return nil
        }
    }

    /// True if no byte of a body follows the head.
    package var isEmpty: Bool { self == .none || self == .length(0) }

    /// Appends the field line that says so, with its CR LF.
    package func appendField(to head: inout [UInt8]) {
        switch self {
        case .none, .upgraded: break
        case .length(let count):
            head += Array("Content-Length: ".utf8)
            ASCII.append(count, to: &head)
            head += [Byte.carriageReturn, Byte.lineFeed]
        case .chunked: head += Array("Transfer-Encoding: chunked\r\n".utf8)
        }
    }
}
