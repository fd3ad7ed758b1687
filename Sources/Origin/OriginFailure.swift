package import Ground
package import HTTPRules
package import Wire

/// The reason why a fetch failed or ended early.
///
/// After any failure, nothing of the response may be stored, and the part that was delivered is
/// incomplete.
package indirect enum OriginFailure: Error, Hashable, Sendable {
    /// No configured origin pattern matches.
    case originNotAllowed(OriginAuthority)
    /// The address guard refuses every address of the host; carries the first one.
    case addressRefused(OriginAuthority, IPAddress, AddressRefusal)
    /// The name does not exist or has no address.
    case nameNotFound(String)
    /// The resolver gave no result; carries its reason.
    case resolverFailed(String, reason: String)
    /// No address of the origin accepted a connection; carries the last reason.
    case connectFailed(OriginAuthority, reason: String)
    /// No TLS connection could be established, or it broke; carries the TLS failure.
    case tls(OriginAuthority, TLSFailure)
    /// A time limit expired.
    case timedOut(TransactionPhase, limit: Interval)
    /// The connection ended before the response head was complete.
    case closedBeforeResponse(bytesReceived: Int)
    /// The connection ended before the body was complete; `expected` is its Content-Length, if any.
    case truncated(expected: UInt64?, received: UInt64)
    /// The connection was reset during a body that only an orderly close would have completed (RFC
    /// 9112 §8).
    case reset(received: UInt64)
    /// The connection ended without close_notify during a body that only close_notify would have
    /// completed: an attacker may have truncated it (RFC 8446 §6.1).
    case closedWithoutNotify(received: UInt64)
    /// The response was ended with an HTTP/2 error: by the origin, or by this node because it
    /// violates the protocol (RFC 9113 §5.4).
    case http2(HTTP2ErrorCode, byOrigin: Bool)
    /// An HTTP/2 stream carried more bytes than its Content-Length (RFC 9113 §8.1.1).
    case contentLengthExceeded
    /// The response is not valid HTTP/1.1; carries the reason.
    case malformed(String)
    /// The response head exceeds the limit, in bytes.
    case headTooLarge(bytesMax: Int)
    /// There were more interim responses than the limit.
    case tooManyInterimResponses(max: Int)
    /// The response body exceeds the limit, in bytes.
    case bodyTooLarge(bytesMax: UInt64)
    /// There were more consecutive redirects than the limit.
    case tooManyRedirects(max: Int)
    /// A redirect led to a URL that this fetch had already requested.
    case redirectLoop
    /// A redirect led to a target that is not a fetchable URL.
    case redirectRefused(URLRefusal)
    /// The failure of a request to an origin that a redirect led to.
    case redirected(to: OriginAuthority, OriginFailure)
    /// The origin's circuit is open for this interval.
    case circuitOpen(OriginAuthority, retryAfter: Interval)
    /// A limit of this node is reached.
    case overloaded(OriginLimit)
    /// The origin client is shutting down.
    case shuttingDown
}

/// The phase of a transaction whose time limit expired.
package enum TransactionPhase: Hashable, Sendable {
    /// Name look-up; it shares the connect limit.
    case resolving
    /// Connecting to an address, or through a proxy.
    case connecting
    /// TLS handshake; it shares the connect limit.
    case handshaking
    /// From the request to the end of the response head.
    case awaitingHead
    /// Waiting for bytes of the body.
    case readingBody
    /// Body bytes arrived, but below the minimum rate.
    case readingSlowly
    /// The limit on the whole fetch, in any phase.
    case total
}

/// A limit of this node that makes a fetch fail.
package enum OriginLimit: Hashable, Sendable {
    /// All connections of the event loop are busy.
    case connections
    /// Too many names are being looked up.
    case lookups
    /// The origin's queue is full.
    case queue
    /// A fetch waited too long for a connection to its origin.
    case queueTime
    /// The queue share of one client, or of requests with bodies, is used up.
    case quota
    /// The system provides no further descriptor or port to this process.
    case descriptors
}

/// The party that is responsible for a failure.
package enum FailureSide: Hashable, Sendable {
    /// The client: the request is not allowed.
    case client
    /// The origin, its name, or the network path to it.
    case origin
    /// This node.
    case node
}

extension OriginFailure {
    /// The party that is responsible for the failure.
    package var side: FailureSide {
        switch self {
        case .originNotAllowed, .addressRefused: .client
        case .overloaded, .shuttingDown: .node
        case .tls(_, let failure) where failure.side == .node: .node
        case .redirected(_, let failure) where failure.side == .node: .node
        default: .origin
        }
    }

    /// The failure without the ``redirected(to:_:)`` around it.
    package var underlying: OriginFailure {
        if case .redirected(_, let failure) = self { failure.underlying } else { self }
    }

    /// True if the failure counts towards opening the origin's circuit: no connection, or no
    /// complete, well-formed response in time.
    ///
    /// Name look-ups, limits on sizes, redirects and the whole time, certificates, TLS versions,
    /// and failures of this node do not count.
    package var isOriginFailure: Bool {
        switch self {
        // The whole fetch may have taken too long because its reader did.
        case .timedOut(.total, limit: _), .timedOut(.resolving, limit: _): false
        case .connectFailed, .timedOut, .closedBeforeResponse, .truncated, .reset,
            .closedWithoutNotify, .http2, .contentLengthExceeded, .malformed:
            true
        case .tls(_, let failure): failure.isOriginFailure
        default: false
        }
    }

    /// The status for the client, if no part of the response has been sent yet.
    package var status: UInt16 {
        switch self {
        // A different status would reveal names and ports, see ``problem``.
        case _ where isConnectionFailure: 502
        case .originNotAllowed, .addressRefused: 403
        case .timedOut: 504
        case .overloaded, .shuttingDown, .circuitOpen: 503
        // The refused URL is not the client's but the origin's.
        case .redirected(_, let failure): failure.side == .client ? 502 : failure.status
        default: 502
        }
    }

    /// The value of Retry-After for the client; `nil` if waiting does not help, or is not needed.
    package var retryAfter: Interval? {
        switch self {
        case .circuitOpen(_, let interval): interval
        case .overloaded, .shuttingDown: .seconds(1)
        case .redirected(_, let failure): failure.retryAfter
        default: nil
        }
    }

    /// True if the same request may succeed shortly.
    package var mayRetry: Bool {
        switch self {
        case .originNotAllowed, .addressRefused, .malformed, .contentLengthExceeded,
            .headTooLarge, .tooManyInterimResponses, .bodyTooLarge, .tooManyRedirects,
            .redirectLoop, .redirectRefused, .nameNotFound:
            false
        case .tls(_, let failure): failure.mayRetry
        case .http2(_, let byOrigin): byOrigin
        case .redirected(_, let failure): failure.mayRetry
        default: true
        }
    }

    /// True if a log line per fetch would add nothing: for an open circuit or a TLS failure, which
    /// the ``OriginCoordinator`` reports once per origin, and for a shutdown or overload of this
    /// node.
    package var isReportedOnce: Bool {
        if retryAfter != nil { return true }
        if case .tls = underlying { return true }
        return false
    }
}

extension TLSFailure {
    /// True if the origin's certificate fails a check, which neither another address nor a retry
    /// repairs.
    var isCertificateFailure: Bool {
        switch cause {
        case .certificateMissing, .expired, .notYetValid, .selfSigned, .unknownIssuer, .wrongHost,
            .wrongPin, .certificate:
            true
        default: false
        }
    }

    /// True if the failure counts against the origin or the path to it.
    ///
    /// Certificate and version errors do not: an operator has to fix them, and an open circuit
    /// would hide the exact cause.
    fileprivate var isOriginFailure: Bool {
        switch cause {
        case .truncated, .notTLS, .alert, .inputLimitExceeded, .malformed: true
        default: false
        }
    }

    /// ``message`` in the form of a clause, for use within another sentence.
    fileprivate var clause: String {
        let words = message.hasSuffix(".") ? message.dropLast() : message[...]
        return words.prefix(1).lowercased() + words.dropFirst()
    }
}

extension OriginFailure: CustomStringConvertible {
    /// The failure as a clause for the log.
    package var description: String {
        switch self {
        case .originNotAllowed(let origin):
            "fetching from \(origin) is not allowed by this node's configuration"
        case .addressRefused(let origin, _, let refusal):
            "\(origin.host) has a refused address: \(refusal)"
        case .nameNotFound(let host): "\(host) has no address"
        case .resolverFailed(let host, let reason): "looking up \(host) failed: \(reason)"
        case .connectFailed(let origin, let reason): "no connection to \(origin): \(reason)"
        case .tls(let origin, let failure): "no TLS connection to \(origin): \(failure.clause)"
        case .timedOut(let phase, let limit): phase.message(limit)
        case .closedBeforeResponse(0): "the origin closed the connection without a response"
        case .closedBeforeResponse(let bytes):
            "the origin closed the connection \(bytes) bytes into the head of its response"
        case .truncated(let expected?, let received):
            "the origin closed the connection after \(received) of \(expected) bytes"
        case .truncated(nil, let received):
            "the origin closed the connection after \(received) bytes of an unfinished body"
        case .reset(let received):
            "the connection to the origin broke after \(received) bytes of the body"
        case .closedWithoutNotify(let received):
            "the connection to the origin ended without close_notify after \(received) bytes "
                + "of a body whose length is not known"
        case .http2(let code, byOrigin: true): "the origin reset its response with \(code.name)"
        case .http2(let code, byOrigin: false):
            "the origin's response is not valid HTTP/2 (\(code.name))"
        case .malformed(let reason): "the origin's response is not valid HTTP/1.1: \(reason)"
        case .contentLengthExceeded: "the origin sent more bytes than Content-Length"
        case .headTooLarge(let bytesMax):
            "the head of the origin's response is larger than \(bytesMax) bytes"
        case .tooManyInterimResponses(let max):
            "the origin sent more than \(max) interim responses"
        case .bodyTooLarge(let bytesMax):
            "the body of the origin's response is larger than \(bytesMax) bytes"
        case .tooManyRedirects(let max): "the origin redirects more than \(max) times"
        case .redirectLoop: "the origin redirects in a loop"
        case .redirectRefused(let refusal):
            "the origin redirects to an invalid URL: \(refusal.message)"
        case .redirected(let origin, let failure): "after a redirect to \(origin): \(failure)"
        case .circuitOpen(let origin, _):
            "\(origin) has failed repeatedly; its circuit breaker is open"
        case .overloaded(.queue): "too many fetches wait for a connection to the origin"
        case .overloaded(.descriptors): "this node has no free descriptor or port"
        case .overloaded(.quota): "too many fetches of one client or site wait for the origin"
        case .overloaded(.queueTime): "no connection to the origin became free in time"
        case .overloaded(.connections): "too many connections to origins are open"
        case .overloaded(.lookups): "too many host names are being looked up"
        case .shuttingDown: "the node is shutting down"
        }
    }
}

extension TransactionPhase {
    fileprivate func message(_ limit: Interval) -> String {
        let limit = "\(limit.milliseconds) ms"
        return switch self {
        case .resolving: "no response from the resolver within \(limit)"
        case .connecting: "no connection to the origin within \(limit)"
        case .handshaking: "no TLS connection to the origin within \(limit)"
        case .awaitingHead: "no response from the origin within \(limit)"
        case .readingBody: "the origin sent nothing of the body for \(limit)"
        case .readingSlowly: "the origin sent less of the body than the minimum within \(limit)"
        case .total: "the complete response did not arrive within \(limit)"
        }
    }
}

extension HTTP2ErrorCode {
    /// The name in RFC 9113 §7.
    fileprivate var name: String {
        switch self {
        case .noError: "NO_ERROR"
        case .protocolError: "PROTOCOL_ERROR"
        case .internalError: "INTERNAL_ERROR"
        case .flowControlError: "FLOW_CONTROL_ERROR"
        case .settingsTimeout: "SETTINGS_TIMEOUT"
        case .streamClosed: "STREAM_CLOSED"
        case .frameSizeError: "FRAME_SIZE_ERROR"
        case .refusedStream: "REFUSED_STREAM"
        case .cancel: "CANCEL"
        case .compressionError: "COMPRESSION_ERROR"
        case .connectError: "CONNECT_ERROR"
        case .enhanceYourCalm: "ENHANCE_YOUR_CALM"
        case .inadequateSecurity: "INADEQUATE_SECURITY"
        case .http11Required: "HTTP_1_1_REQUIRED"
        default: "HTTP/2 error \(rawValue)"
        }
    }
}
