package import Ground
package import HTTPRules
package import Wire

/// Why a fetch brought no answer, or not the whole of one.
///
/// After any failure nothing of the answer may be stored, and what was handed on is not the whole.
package indirect enum OriginFailure: Error, Hashable, Sendable {
    /// No `allow-origin` pattern matches.
    case originNotAllowed(OriginAuthority)
    /// Every address of the host is one that the address guard refuses; the first is named.
    case addressRefused(OriginAuthority, IPAddress, AddressRefusal)
    /// The name does not exist or has no address.
    case nameNotFound(String)
    /// The resolver gave no answer; carries its reason.
    case resolverFailed(String, reason: String)
    /// No address of the origin took the connection; carries the last reason.
    case connectFailed(OriginAuthority, reason: String)
    /// There is no TLS connection to the origin, or it broke; carries what went wrong.
    case tls(OriginAuthority, TLSFailure)
    /// A time limit passed.
    case timedOut(TransactionPhase, limit: Interval)
    /// The connection ended before the answer's head was whole.
    case closedBeforeResponse(bytesReceived: Int)
    /// The connection ended before the body was whole; `expected` is its Content-Length if it had
    /// one.
    case truncated(expected: UInt64?, received: UInt64)
    /// The connection broke while a body ran that only its orderly end would have completed (RFC
    /// 9112 §8).
    case reset(received: UInt64)
    /// The connection ended without close_notify while a body ran that only that would have
    /// completed: somebody may have cut it (RFC 8446 §6.1).
    case closedWithoutNotify(received: UInt64)
    /// The answer was ended with an error of HTTP/2: by the origin, or here, because it breaks the
    /// rules (RFC 9113 §5.4).
    case http2(HTTP2ErrorCode, byOrigin: Bool)
    /// More came on a stream of HTTP/2 than its answer's Content-Length says (RFC 9113 §8.1.1).
    case contentLengthExceeded
    /// The answer breaks the rules of HTTP/1.1; carries what was wrong.
    case malformed(String)
    /// The answer's head is larger than the limit.
    case headTooLarge(bytesMax: Int)
    /// More interim answers than the limit.
    case tooManyInterimResponses(max: Int)
    /// The answer's body is larger than the limit.
    case bodyTooLarge(bytesMax: UInt64)
    /// More redirects in succession than the limit.
    case tooManyRedirects(max: Int)
    /// A redirect to a URL that was asked for before.
    case redirectLoop
    /// A redirect to what names nothing that can be fetched.
    case redirectRefused(URLRefusal)
    /// It happened to the origin that the first one redirected to.
    case redirected(to: OriginAuthority, OriginFailure)
    /// The origin fails too often and is left alone for so long.
    case circuitOpen(OriginAuthority, retryAfter: Interval)
    /// A limit of this node is reached.
    case overloaded(OriginLimit)
    /// The client is being shut down.
    case shuttingDown
}

/// What a fetch was doing when its time ran out.
package enum TransactionPhase: Hashable, Sendable {
    /// The name is looked up; its limit is that of connecting.
    case resolving
    case connecting
    /// TLS is being agreed on; its limit is that of connecting.
    case handshaking
    case awaitingHead
    case readingBody
    /// Bytes of the body came, but too few.
    case readingSlowly
    /// The limit on the whole fetch, whatever it was doing.
    case total
}

/// A limit of ``OriginSettings`` that refuses work.
package enum OriginLimit: Hashable, Sendable {
    case connections
    case lookups
    /// As many fetches wait for this origin as are allowed.
    case queue
    /// A fetch waited too long for a connection to its origin.
    case queueTime
    /// As many wait for this origin as are allowed of one client, or with bodies.
    case quota
    /// The system gives this process no further descriptor or port.
    case descriptors
}

/// Whose fault a failure is.
package enum FailureSide: Hashable, Sendable {
    /// What was asked for is not allowed.
    case client
    /// The origin, its name, or the way to it.
    case origin
    /// This node.
    case node
}

extension OriginFailure {
    /// Whose fault it is.
    package var side: FailureSide {
        switch self {
        case .originNotAllowed, .addressRefused: .client
        case .overloaded, .shuttingDown: .node
        case .tls(_, let failure) where failure.side == .node: .node
        case .redirected(_, let failure) where failure.side == .node: .node
        default: .origin
        }
    }

    /// What happened, whichever origin it happened to.
    package var underlying: OriginFailure {
        if case .redirected(_, let failure) = self { failure.underlying } else { self }
    }

    /// True if it speaks against the origin, or the way to it, and not against one answer's content
    /// or this node: what an origin is left alone for.
    package var isOriginFailure: Bool {
        switch self {
        // The whole may have taken too long because its reader did.
        case .timedOut(.total, limit: _), .timedOut(.resolving, limit: _): false
        case .connectFailed, .timedOut, .closedBeforeResponse, .truncated, .reset,
            .closedWithoutNotify, .http2, .contentLengthExceeded, .malformed:
            true
        case .tls(_, let failure): failure.isOriginFailure
        default: false
        }
    }

    /// The status that the client gets if nothing of the answer was handed on yet.
    package var status: UInt16 {
        switch self {
        // A status of its own would tell names and ports apart, see ``problem``.
        case _ where isConnectionFailure: 502
        case .originNotAllowed, .addressRefused: 403
        case .timedOut: 504
        case .overloaded, .shuttingDown, .circuitOpen: 503
        // Not what the client asked for is refused, but what the origin made of it.
        case .redirected(_, let failure): failure.side == .client ? 502 : failure.status
        default: 502
        }
    }

    /// How long a client should wait before it asks again; nil if that will not help, or helps at
    /// once.
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

    /// True if the client says it to its ``OriginCoordinator`` once for the origin, so that a line
    /// for each fetch would say nothing new.
    package var isReportedOnce: Bool {
        if retryAfter != nil { return true }
        if case .tls = underlying { return true }
        return false
    }
}

extension TLSFailure {
    /// True if the origin's certificate fails a check, which another address or a second attempt
    /// would not mend.
    var isCertificateFailure: Bool {
        switch cause {
        case .certificateMissing, .expired, .notYetValid, .selfSigned, .unknownIssuer, .wrongHost,
            .wrongPin, .certificate:
            true
        default: false
        }
    }

    /// True if it speaks against the origin, or the way to it.
    ///
    /// Certificates and versions do not: those are settled by people, who are to read each time
    /// which of them it is.
    fileprivate var isOriginFailure: Bool {
        switch cause {
        case .truncated, .notTLS, .alert, .inputLimitExceeded, .malformed: true
        default: false
        }
    }

    /// ``sentence`` as a part of another.
    fileprivate var clause: String {
        let words = message.hasSuffix(".") ? message.dropLast() : message[...]
        return words.prefix(1).lowercased() + words.dropFirst()
    }
}

extension OriginFailure: CustomStringConvertible {
    /// The clause for the log.
    package var description: String {
        switch self {
        case .originNotAllowed(let origin):
            "fetching from \(origin) is not allowed by this node's configuration"
        case .addressRefused(let origin, _, let refusal):
            "\(origin.host) has an address that is not fetched from: \(refusal)"
        case .nameNotFound(let host): "no address is known for \(host)"
        case .resolverFailed(let host, let reason): "looking up \(host) failed: \(reason)"
        case .connectFailed(let origin, let reason): "no connection to \(origin): \(reason)"
        case .tls(let origin, let failure): "no TLS connection to \(origin): \(failure.clause)"
        case .timedOut(let phase, let limit): phase.message(limit)
        case .closedBeforeResponse(0): "the origin closed the connection without an answer"
        case .closedBeforeResponse(let bytes):
            "the origin closed the connection \(bytes) bytes into the head of its answer"
        case .truncated(let expected?, let received):
            "the origin closed the connection after \(received) of \(expected) bytes"
        case .truncated(nil, let received):
            "the origin closed the connection after \(received) bytes of an unfinished body"
        case .reset(let received):
            "the connection to the origin broke after \(received) bytes of the body"
        case .closedWithoutNotify(let received):
            "the connection to the origin was cut, without close_notify, after \(received) bytes "
                + "of a body whose length is not known"
        case .http2(let code, byOrigin: true): "the origin ended its answer with \(code.name)"
        case .http2(let code, byOrigin: false):
            "the origin's answer is not valid HTTP/2 (\(code.name))"
        case .malformed(let reason): "the origin's answer is not valid HTTP/1.1: \(reason)"
        case .contentLengthExceeded: "the origin sent more than the length of its answer"
        case .headTooLarge(let bytesMax):
            "the head of the origin's answer is larger than \(bytesMax) bytes"
        case .tooManyInterimResponses(let max):
            "the origin sent more than \(max) interim answers"
        case .bodyTooLarge(let bytesMax):
            "the body of the origin's answer is larger than \(bytesMax) bytes"
        case .tooManyRedirects(let max): "the origin redirects more than \(max) times"
        case .redirectLoop: "the origin redirects to a URL that was asked for before"
        case .redirectRefused(let refusal):
            "the origin redirects to what is no URL of an image: \(refusal.message)"
        case .redirected(let origin, let failure): "after a redirect to \(origin): \(failure)"
        case .circuitOpen(let origin, _):
            "\(origin) fails too often and is left alone for a while"
        case .overloaded(.queue): "too many fetches wait for a connection to the origin"
        case .overloaded(.descriptors): "this node has no descriptor or port left"
        case .overloaded(.quota): "too many fetches of one kind wait for the origin"
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
        case .resolving: "no answer from the resolver within \(limit)"
        case .connecting: "no connection to the origin within \(limit)"
        case .handshaking: "no TLS connection to the origin within \(limit)"
        case .awaitingHead: "no answer from the origin within \(limit)"
        case .readingBody: "the origin sent nothing of the body for \(limit)"
        case .readingSlowly: "the origin sent less of the body than it must within \(limit)"
        case .total: "the whole answer did not arrive within \(limit)"
        }
    }
}

extension HTTP2ErrorCode {
    /// Its name in RFC 9113 §7.
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
        default: "error \(rawValue) of HTTP/2"
        }
    }
}
