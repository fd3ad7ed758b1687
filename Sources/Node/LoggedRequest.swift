package import Ground
package import HTTPRules
import Wire

/// What the access log keeps of a request until its answer is given.
package struct LoggedRequest {
    /// To whom the request was put.
    package enum Port: String, Sendable {
        case data
        case admin
        /// It is a question of another node.
        case peer
    }

    package var port: Port
    package var id: RequestID
    /// Nil if it came without one.
    package var trace: TraceContext?
    /// The method as it was sent; empty for what was no request.
    package var method: [UInt8]
    package var target: [UInt8]
    /// As in `HTTP/1.1`.
    package var version: StaticString
    package var referer: [UInt8]
    package var userAgent: [UInt8]
    package var startedAt: Instant

    package init(
        on port: Port, as id: RequestID, trace: TraceContext? = nil, method: [UInt8],
        target: [UInt8], version: StaticString, referer: [UInt8] = [], userAgent: [UInt8] = [],
        startedAt: Instant
    ) {
        self.port = port
        self.id = id
        self.trace = trace
        self.method = method
        self.target = target
        self.version = version
        self.referer = referer
        self.userAgent = userAgent
        self.startedAt = startedAt
    }
}

extension LoggedRequest {
    /// The request that `parser` holds, whose bytes lie in `bytes`.
    init(
        _ parser: borrowing RequestParser, _ bytes: Span<UInt8>,
        over carriage: RequestHandler.ProtocolVersion,
        on side: RequestHandler.Plane, as id: RequestID, _ now: Instant
    ) {
        self.init(
            on: Port(side), as: id,
            trace: parser.fields.contains(.traceparent)
                ? TraceContext(parser.fields.copy(), in: bytes) : nil,
            method: bytes.copy(parser.methodName.range), target: bytes.copy(parser.target.range),
            version: carriage == .http2 ? "HTTP/2.0" : parser.isHTTP10 ? "HTTP/1.0" : "HTTP/1.1",
            referer: parser.fields.first(.referer).map { bytes.copy($0.range) } ?? [],
            userAgent: parser.fields.first(.userAgent).map { bytes.copy($0.range) } ?? [],
            startedAt: now)
    }

    /// What could not be read as a request.
    init(unreadableOn side: RequestHandler.Plane, as id: RequestID, _ now: Instant) {
        self.init(
            on: Port(side), as: id, method: [], target: [], version: "-", startedAt: now)
    }
}

extension LoggedRequest.Port {
    fileprivate init(_ side: RequestHandler.Plane) {
        self = side == .admin ? .admin : .data
    }
}
