import Ground
import HTTPRules
import Origin
import Testing
import Wire

@Suite("Failures of a fetch")
struct OriginFailureTests {
    static let origin = OriginAuthority(host: "::1", port: 80)
    static let inner = OriginAuthority(host: "db.internal", port: 5432)
    static let refusal = AddressRefusal(range: .loopback, embedding: nil)

    private static func tls(_ cause: TLSFailureCause) -> OriginFailure {
        .tls(origin, TLSFailure(cause, as: .client))
    }

    /// A failure, its status, its side, whether a retry is allowed, and its stable name.
    static let rows: [(OriginFailure, UInt16, FailureSide, Bool, String)] = [
        (.originNotAllowed(origin), 403, .client, false, "origin-not-allowed"),
        (
            .addressRefused(origin, .v6(1), refusal), 403, .client, false,
            "origin-address-refused"
        ),
        (
            .addressRefused(inner, .v6(1), refusal), 502, .client, false, "origin-unreachable"
        ),
        (.nameNotFound("a"), 502, .origin, false, "origin-unreachable"),
        (.resolverFailed("a", reason: "b"), 502, .origin, true, "origin-unreachable"),
        (.connectFailed(origin, reason: "refused"), 502, .origin, true, "origin-unreachable"),
        (.timedOut(.total, limit: .seconds(1)), 504, .origin, true, "origin-timeout"),
        (.timedOut(.awaitingHead, limit: .seconds(2)), 504, .origin, true, "origin-timeout"),
        (.closedBeforeResponse(bytesReceived: 0), 502, .origin, true, "origin-answer-truncated"),
        (.truncated(expected: 2, received: 1), 502, .origin, true, "origin-answer-truncated"),
        (.reset(received: 1), 502, .origin, true, "origin-answer-truncated"),
        (.closedWithoutNotify(received: 1), 502, .origin, true, "origin-answer-truncated"),
        (.http2(.internalError, byOrigin: true), 502, .origin, true, "origin-answer-truncated"),
        (.http2(.protocolError, byOrigin: false), 502, .origin, false, "origin-answer-invalid"),
        (tls(.selfSigned), 502, .origin, false, "origin-certificate-refused"),
        (tls(.wrongPin("p")), 502, .origin, false, "origin-certificate-refused"),
        (tls(.versionTooOld), 502, .origin, false, "origin-tls-failed"),
        (tls(.truncated), 502, .origin, true, "origin-tls-failed"),
        (tls(.internalError(reason: "x")), 502, .node, false, "origin-tls-failed"),
        (.timedOut(.resolving, limit: .seconds(1)), 502, .origin, true, "origin-unreachable"),
        (.timedOut(.connecting, limit: .seconds(1)), 502, .origin, true, "origin-unreachable"),
        (.timedOut(.handshaking, limit: .seconds(1)), 502, .origin, true, "origin-unreachable"),
        (.malformed("x"), 502, .origin, false, "origin-answer-invalid"),
        (.headTooLarge(bytesMax: 1), 502, .origin, false, "origin-answer-invalid"),
        (.tooManyInterimResponses(max: 1), 502, .origin, false, "origin-answer-invalid"),
        (.bodyTooLarge(bytesMax: 1), 502, .origin, false, "origin-answer-too-large"),
        (.tooManyRedirects(max: 1), 502, .origin, false, "origin-redirects"),
        (.redirectLoop, 502, .origin, false, "origin-redirects"),
        (.redirectRefused(.scheme), 502, .origin, false, "origin-redirect-refused"),
        (
            .redirected(to: origin, .addressRefused(origin, .v6(1), refusal)), 502, .origin,
            false, "origin-redirect-refused"
        ),
        (
            .redirected(to: inner, .addressRefused(inner, .v6(1), refusal)), 502, .origin,
            false, "origin-unreachable"
        ),
        (
            .redirected(to: origin, .timedOut(.total, limit: .seconds(1))), 504, .origin, true,
            "origin-timeout"
        ),
        (.redirected(to: origin, .overloaded(.queue)), 503, .node, true, "overloaded"),
        (.circuitOpen(origin, retryAfter: .seconds(3)), 503, .origin, true, "origin-circuit-open"),
        (.overloaded(.queueTime), 503, .node, true, "overloaded"),
        (.contentLengthExceeded, 502, .origin, false, "origin-answer-invalid"),
        (.overloaded(.lookups), 503, .node, true, "overloaded"),
        (.shuttingDown, 503, .node, true, "shutting-down"),
    ]

    @Test(
        "A failure determines the side at fault, the client's status and whether to retry",
        arguments: rows)
    func table(
        failure: OriginFailure, status: UInt16, side: FailureSide, mayRetry: Bool, name: String
    ) {
        #expect(failure.status == status)
        #expect(failure.side == side)
        #expect(failure.mayRetry == mayRetry)
        #expect(failure.problem.name == name)
    }

    @Test("Clients learn no host or port, and the same text for every failure to connect")
    func disclosed() {
        let failures =
            Self.rows.map(\.0) + [
                .connectFailed(Self.inner, reason: "refused"), .originNotAllowed(Self.inner),
                .nameNotFound(Self.inner.host), .resolverFailed(Self.inner.host, reason: "b"),
                .tls(Self.inner, TLSFailure(.selfSigned, as: .client)),
                .circuitOpen(Self.inner, retryAfter: .seconds(3)),
            ]
        var documents: [String: Set<String>] = [:]
        for failure in failures {
            let problem = failure.problem
            #expect(!problem.detail.contains("internal") && !problem.detail.contains("5432"))
            #expect(!problem.detail.contains("::1"))
            documents[problem.name, default: []].insert("\(problem.status) \(problem.detail)")
        }
        #expect(documents["origin-unreachable"]?.count == 1)
        for (name, details) in documents where name != "overloaded" {
            #expect(details.count == 1, "\(name): \(details)")
        }
    }

    @Test("Exactly the failures with status 503 have a Retry-After", arguments: rows)
    func retryAfter(
        failure: OriginFailure, status: UInt16, side: FailureSide, mayRetry: Bool, name: String
    ) {
        #expect((failure.retryAfter != nil) == (status == 503))
    }

    @Test("Failures of the origin count against it; bad requests and local failures do not")
    func countsAgainstOrigin() {
        let against: [OriginFailure] = [
            .connectFailed(Self.origin, reason: "refused"),
            .timedOut(.awaitingHead, limit: .seconds(2)), .closedBeforeResponse(bytesReceived: 0),
            .truncated(expected: 2, received: 1), .reset(received: 1), .contentLengthExceeded,
            .malformed("x"),
            .closedWithoutNotify(received: 1), .http2(.internalError, byOrigin: true),
            .http2(.protocolError, byOrigin: false), Self.tls(.truncated),
            .timedOut(.handshaking, limit: .seconds(1)),
            .timedOut(.connecting, limit: .seconds(1)),
        ]
        let counted = Self.rows.map(\.0).filter(\.isOriginFailure)
        #expect(Set(counted) == Set(against))
    }
}
