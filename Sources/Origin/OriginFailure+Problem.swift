package import HTTPRules

extension OriginFailure {
    /// What the client is told if nothing of the answer was handed on yet (RFC 9457).
    package var problem: ProblemDocument {
        let (name, title) = nameAndTitle
        return ProblemDocument(status: status, name: name, title: title, detail: description)
    }

    /// Names of failures that other URLs of the same origin would meet as well.
    package static let originWideNames: Set<String> = [
        "origin-name-not-found", "origin-name-lookup-failed", "origin-unreachable",
        "origin-certificate-refused", "origin-tls-failed", "origin-connect-timeout",
    ]

    /// The name is stable; the title says the same in words.
    private var nameAndTitle: (name: String, title: String) {
        switch self {
        case .originNotAllowed: ("origin-not-allowed", "Origin not allowed")
        case .addressRefused: ("origin-address-refused", "Origin address refused")
        case .nameNotFound: ("origin-name-not-found", "Origin name not found")
        case .resolverFailed: ("origin-name-lookup-failed", "Origin name look-up failed")
        case .connectFailed: ("origin-unreachable", "Origin unreachable")
        case .tls(_, let failure) where failure.isOfCertificate:
            ("origin-certificate-refused", "Origin certificate refused")
        case .tls: ("origin-tls-failed", "No TLS connection to the origin")
        case .timedOut(.resolving, limit: _), .timedOut(.connecting, limit: _),
            .timedOut(.handshaking, limit: _):
            ("origin-connect-timeout", "No connection to the origin in time")
        case .timedOut: ("origin-timeout", "Origin too slow")
        case .closedBeforeAnswer, .truncated, .reset, .endedWithoutNotify,
            .http2(_, byOrigin: true):
            ("origin-answer-truncated", "Origin answer truncated")
        case .malformed, .overlong, .headTooLarge, .tooManyInterimAnswers, .http2:
            ("origin-answer-invalid", "Origin answer invalid")
        case .bodyTooLarge: ("origin-answer-too-large", "Origin answer too large")
        case .tooManyRedirects, .redirectLoop:
            ("origin-redirects", "Origin redirects without end")
        case .redirectRefused: ("origin-redirect-refused", "Origin redirect refused")
        case .redirected(_, let failure) where failure.side == .client:
            ("origin-redirect-refused", "Origin redirect refused")
        case .redirected(_, let failure): failure.nameAndTitle
        case .circuitOpen: ("origin-circuit-open", "Origin left alone")
        case .overloaded: ("overloaded", "Overloaded")
        case .shutDown: ("shutting-down", "Shutting down")
        }
    }
}
