import Ground
package import HTTPRules

extension OriginFailure {
    /// The problem document for the client, if no part of the response has been sent yet (RFC
    /// 9457).
    ///
    /// Contains no host or port, and does not tell why there is no connection: a client that may
    /// request any URL could otherwise use the node to probe names and ports. ``description`` is
    /// for the log.
    package var problem: ProblemDocument {
        let kind = kind
        return ProblemDocument(
            status: status, name: kind.name, title: kind.title, detail: kind.detail)
    }

    /// The problem names of failures that other URLs of the same origin would meet as well.
    package static let originWideNames: Set<String> = [
        ProblemKind.unreachable, .certificateRefused, .tlsFailed,
    ].reduce(into: []) { $0.insert($1.name) }

    /// True if no connection could be established, including for want of an address.
    ///
    /// A refused address that the URL itself contains is excluded: it reveals nothing about the
    /// network.
    var isConnectionFailure: Bool {
        switch self {
        case .addressRefused(let origin, _, _): IPAddress(origin.host) == nil
        case .nameNotFound, .resolverFailed, .connectFailed, .timedOut(.resolving, limit: _),
            .timedOut(.connecting, limit: _), .timedOut(.handshaking, limit: _):
            true
        default: false
        }
    }

    private var kind: ProblemKind {
        switch self {
        case _ where isConnectionFailure: .unreachable
        case .originNotAllowed: .notAllowed
        case .addressRefused: .addressRefused
        case .tls(_, let failure) where failure.isCertificateFailure: .certificateRefused
        case .tls: .tlsFailed
        case .timedOut: .timedOut
        case .closedBeforeResponse, .truncated, .reset, .closedWithoutNotify,
            .http2(_, byOrigin: true):
            .truncated
        case .bodyTooLarge: .tooLarge
        case .tooManyRedirects, .redirectLoop: .redirects
        case .redirectRefused: .redirectRefused
        case .redirected(_, let failure)
        where failure.side == .client && !failure.underlying.isConnectionFailure:
            .redirectRefused
        case .redirected(_, let failure): failure.kind
        case .circuitOpen: .circuitOpen
        case .overloaded: ProblemKind("overloaded", "Overloaded", description)
        case .shuttingDown: ProblemKind("shutting-down", "Shutting down", description)
        // The rest are responses that violate HTTP or a limit.
        case .malformed, .contentLengthExceeded, .headTooLarge, .tooManyInterimResponses, .http2,
            .nameNotFound,
            .resolverFailed, .connectFailed:
            .invalid
        }
    }
}

/// The client-facing text of one kind of failure; the name is stable, title and detail are prose.
private struct ProblemKind {
    let name: String
    let title: String
    let detail: String

    init(_ name: String, _ title: String, _ detail: String) {
        self.name = name
        self.title = title
        self.detail = detail
    }

    private static let inLog = " The node's log says why, under the id in X-Request-Id."

    static let notAllowed = ProblemKind(
        "origin-not-allowed", "Origin not allowed",
        "This node's configuration does not allow fetching from there.")
    static let addressRefused = ProblemKind(
        "origin-address-refused", "Origin address refused",
        "The URL has an address that this node does not fetch from.")
    static let unreachable = ProblemKind(
        "origin-unreachable", "Origin unreachable",
        "The origin cannot be reached: its name has no address that this node may fetch "
            + "from, or it does not respond." + inLog)
    static let certificateRefused = ProblemKind(
        "origin-certificate-refused", "Origin certificate refused",
        "The origin's certificate is not accepted." + inLog)
    static let tlsFailed = ProblemKind(
        "origin-tls-failed", "No TLS connection to the origin",
        "The origin and this node do not agree on TLS." + inLog)
    static let timedOut = ProblemKind(
        "origin-timeout", "Origin too slow", "The origin did not respond in time." + inLog)
    static let truncated = ProblemKind(
        "origin-answer-truncated", "Origin response truncated",
        "The connection to the origin ended before its response was complete." + inLog)
    static let invalid = ProblemKind(
        "origin-answer-invalid", "Origin response invalid",
        "The origin's response violates HTTP or exceeds a limit of this node." + inLog)
    static let tooLarge = ProblemKind(
        "origin-answer-too-large", "Origin response too large",
        "The body of the origin's response is larger than this node accepts." + inLog)
    static let redirects = ProblemKind(
        "origin-redirects", "Too many redirects",
        "The origin redirects in a loop or too often." + inLog)
    static let redirectRefused = ProblemKind(
        "origin-redirect-refused", "Origin redirect refused",
        "The origin redirects to a URL that this node does not fetch." + inLog)
    static let circuitOpen = ProblemKind(
        "origin-circuit-open", "Origin circuit open",
        "The origin has failed repeatedly; it is not tried again for a while.")
}
