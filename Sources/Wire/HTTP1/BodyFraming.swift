import Ground

/// The way in which the end of a message's body is determined (RFC 9112 §6.3).
package enum BodyFraming: Hashable, Sendable {
    /// There is no body, whatever the fields are.
    case none
    /// The body has this number of bytes (Content-Length).
    case length(UInt64)
    /// The body is chunked (Transfer-Encoding).
    case chunked
    /// The body ends with the connection; responses only.
    case untilClose
}

/// The framing of the body of a request to send (RFC 9112 §6).
package enum RequestBodyFraming: Hashable, Sendable {
    /// There is no body, and no field that describes one.
    case none
    /// The body has this number of bytes (Content-Length); 0 if the field is sent for an empty body
    /// (RFC 9110 §8.6).
    case length(UInt64)
    case chunked
    /// Bytes of another protocol follow until one side closes the connection (RFC 9110 §7.8).
    case upgraded

    /// Creates the framing of a received request; `nil` for a framing that only responses have.
    package init?(_ framing: BodyFraming) {
        switch framing {
        case .none: self = .none
        case .length(let count): self = .length(count)
        case .chunked: self = .chunked
        case .untilClose: return nil
        }
    }

    /// True if the head is followed by no body byte.
    package var isEmpty: Bool { self == .none || self == .length(0) }

    /// Appends the framing's field line, with its CR LF.
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
