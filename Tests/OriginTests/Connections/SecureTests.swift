import Certificates
import Ground
import HTTPRules
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing
import Wire

@Suite("Origins over TLS")
struct SecureTests {
    /// Runs `body` with a client with the trust store `trust` and an origin with `certificate`.
    private func with(
        showing certificate: TestCertificate = Secure.good, trust: OriginTrustStore? = nil,
        notifies: Bool = true, protocols: [TLSApplicationProtocol] = [.http11],
        names: [String: [[String]]] = ["a.example": [["127.0.0.1"]]],
        _ scripts: [ByteOrigin.Step]..., body: (Rig, ByteOrigin) async throws -> Void
    ) async throws {
        let trust = try trust ?? Secure.trust()
        let server = try Secure.server(certificate, protocols: protocols)
        try await Rig.run(names: names, settings: { $0.trustStore = trust }) { rig in
            let origin = try await ByteOrigin.listening(
                on: rig.group, behind: Secure.behind(server, notifies: notifies), scripts: scripts)
            try await body(rig, origin)
            try await origin.stop()
        }
    }

    @Test("A response arrives by name and by address, and the connection is kept")
    func fetched() async throws {
        try await with(hi + hi) { rig, origin in
            for _ in 0..<2 {
                let outcome = try await rig.getSecure(origin.port, host: "a.example")
                #expect(outcome.text == "hi")
            }
            #expect(origin.connections == 1)
            #expect(try await rig.usage().idle == 1)
            #expect(origin.requests[0].contains("\r\nHost: a.example:\(origin.port)\r\n"))
            #expect(try await rig.getSecure(origin.port).text == "hi")
            #expect(origin.connections == 2)
        }
    }

    @Test("A certificate that fails a check is refused, and the failure names the check")
    func certificates() async throws {
        let authority = Secure.authority
        let stranger = TestCertificate("Stranger", isIssuer: true)
        let names = "DNS:a.example"
        let rows: [(String, TestCertificate)] = [
            (
                "expired on",
                TestCertificate("e", names: names, validity: .past, issuer: authority)
            ),
            (
                "is not valid before",
                TestCertificate("f", names: names, validity: .future, issuer: authority)
            ),
            ("is self-signed and not trusted", TestCertificate("s", names: names)),
            (
                "has no trusted issuer; the last issuer in its chain is “CN=Stranger”",
                TestCertificate("u", names: names, issuer: stranger)
            ),
            (
                "is not for a.example; it is for b.example",
                TestCertificate("w", names: "DNS:b.example", issuer: authority)
            ),
            // A common name is not used (RFC 9110 §4.3.4).
            (
                "is not for a.example; it is for no host",
                TestCertificate("a.example", issuer: authority)
            ),
        ]
        for (words, certificate) in rows {
            try await with(showing: certificate, hi) { rig, origin in
                let outcome = try await rig.getSecure(origin.port, host: "a.example")
                let failure = try #require(outcome.failure)
                #expect(failure.description.contains("the origin's certificate \(words)"))
                #expect(failure.problem.name == "origin-certificate-refused")
                #expect(failure.status == 502 && !failure.mayRetry && !failure.isOriginFailure)
                #expect(origin.connections == 1 && origin.requests.isEmpty)
            }
        }
    }

    @Test("An address must be in the certificate as an address")
    func addresses() async throws {
        let named = TestCertificate("n", names: "DNS:127.0.0.1", issuer: Secure.authority)
        try await with(showing: named, hi) { rig, origin in
            guard case .wrongHost? = try await rig.getSecure(origin.port).tlsCause else {
                Issue.record("a name was accepted for an address")
                return
            }
        }
    }

    @Test(
        "After a refused certificate no other address is tried; after a truncated handshake one is")
    func nextAddress() async throws {
        let names = ["a.example": [["127.0.0.1", "127.0.0.2"]]]
        let trust = try Secure.trust()
        let wrong = try Secure.server(TestCertificate("s", names: "DNS:a.example"))
        let right = try Secure.server()
        try await Rig.run(names: names, settings: { $0.trustStore = trust }) { rig in
            let bad = try await rig.origin(behind: Secure.behind(wrong), hi)
            let good = try await rig.origin(
                address: "127.0.0.2", port: Int(bad.port), behind: Secure.behind(right), hi)
            #expect(try await rig.getSecure(bad.port, host: "a.example").tlsCause == .selfSigned)
            #expect(good.connections == 0)
        }
        try await Rig.run(names: names, settings: { $0.trustStore = trust }) { rig in
            let cut = try await rig.origin([.close])
            let good = try await rig.origin(
                address: "127.0.0.2", port: Int(cut.port), behind: Secure.behind(right), hi)
            #expect(try await rig.getSecure(cut.port, host: "a.example").text == "hi")
            #expect(cut.connections == 1 && good.connections == 1)
        }
    }

    @Test("Plain text, an alert and an old version give different failures")
    func handshakes() async throws {
        let rows: [([ByteOrigin.Step], TLSFailureCause)] = [
            ([.send("HTTP/1.1 400 Bad Request\r\n\r\n"), .awaitGate], .notTLS(firstByte: 0x48)),
            ([.sendBytes([21, 3, 1, 0, 2, 2, 70]), .awaitGate], .versionTooOld),
            ([.sendBytes([21, 3, 1, 0, 2, 2, 112]), .awaitGate], .alert(112)),
            ([.close], .truncated),
        ]
        let trust = try Secure.trust()
        for (script, cause) in rows {
            try await Rig.run(settings: { $0.trustStore = trust }) { rig in
                let origin = try await rig.origin(script)
                #expect(try await rig.getSecure(origin.port).tlsCause == cause)
            }
        }
    }

    @Test("A stalled handshake ends with the connect limit and is named in the failure")
    func handshakeTimesOut() async throws {
        let trust = try Secure.trust()
        try await Rig.run(settings: {
            $0.trustStore = trust
            $0.connectLimit = .milliseconds(300)
        }) { rig in
            let origin = try await rig.origin([.awaitGate])
            let outcome = try await rig.getSecure(origin.port)
            #expect(outcome.failure == .timedOut(.handshaking, limit: .milliseconds(300)))
        }
    }

    @Test("No byte is sent to an address that the guard refuses")
    func guarded() async throws {
        let trust = try Secure.trust()
        try await Rig.run(opening: [], settings: { $0.trustStore = trust }) { rig in
            let origin = try await rig.origin([.awaitRequestHead])
            guard case .addressRefused? = try await rig.getSecure(origin.port).failure else {
                Issue.record("the address guard was bypassed")
                return
            }
            #expect(origin.connections == 0)
        }
    }

    @Test("A body delimited by close is complete with close_notify and truncated without")
    func untilClose() async throws {
        let script: [ByteOrigin.Step] = [
            .awaitRequestHead, .send("HTTP/1.1 200 OK\r\n\r\nhello"), .close,
        ]
        try await with(script) { rig, origin in
            let outcome = try await rig.getSecure(origin.port)
            #expect(outcome.end == .ended(delimitedByClose: true) && outcome.text == "hello")
        }
        try await with(notifies: false, script) { rig, origin in
            let outcome = try await rig.getSecure(origin.port)
            #expect(outcome.failure == .closedWithoutNotify(received: 5))
        }
    }

    @Test("A body with explicit framing needs no close_notify")
    func framed() async throws {
        for framing in [
            "Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ] {
            let script: [ByteOrigin.Step] = [
                .awaitRequestHead, .send("HTTP/1.1 200 OK\r\nConnection: close\r\n\(framing)"),
                .close,
            ]
            try await with(notifies: false, script) { rig, origin in
                let outcome = try await rig.getSecure(origin.port)
                #expect(outcome.end == .ended(delimitedByClose: false) && outcome.text == "hi")
            }
        }
    }

    @Test("A truncated body is incomplete, whatever ended it")
    func truncated() async throws {
        let script: [ByteOrigin.Step] = [
            .awaitRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close,
        ]
        for notifies in [true, false] {
            try await with(notifies: notifies, script) { rig, origin in
                let outcome = try await rig.getSecure(origin.port)
                #expect(outcome.failure == .truncated(expected: 10, received: 5))
            }
        }
    }

    @Test("A redirect from http to https is followed")
    func redirected() async throws {
        try await with(hi) { rig, secure in
            let plain = try await rig.origin(
                [
                    .awaitRequestHead,
                    .send(
                        "HTTP/1.1 302 Found\r\nLocation: https://a.example:\(secure.port)/s.png\r\n"
                            + "Content-Length: 0\r\n\r\n"),
                ])
            let outcome = try await rig.get(plain.port)
            #expect(outcome.text == "hi")
            #expect(outcome.redirects == ["https://a.example:\(secure.port)/s.png"])
            #expect(secure.requests[0].hasPrefix("GET /s.png "))
        }
    }

    @Test("A redirect from https to http is followed, subject to the guard")
    func redirectedDown() async throws {
        let trust = try Secure.trust()
        let server = try Secure.server()
        try await Rig.run(settings: { $0.trustStore = trust }) { rig in
            let plain = try await rig.origin(hi)
            let secure = try await rig.origin(
                behind: Secure.behind(server),
                [
                    .awaitRequestHead,
                    .send(
                        "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:\(plain.port)/p.png\r\n"
                            + "Content-Length: 0\r\n\r\n"),
                ])
            let outcome = try await rig.getSecure(secure.port)
            #expect(outcome.text == "hi")
            #expect(outcome.redirects == ["http://127.0.0.1:\(plain.port)/p.png"])
        }
    }

    @Test("A session is resumed with the ticket of the previous one")
    func resumed() async throws {
        let keys = TicketKeys(
            now: bootClock(), entropy: (0..<TicketKeys.entropyBytes).map { UInt8($0) })
        let server = try Secure.server()
        server.setTicketKeys(keys)
        let resumed = LockedBox<[Bool]>([])
        let trust = try Secure.trust()
        let script = hi + [.close]
        try await Rig.run(settings: { $0.trustStore = trust }) { rig in
            let origin = try await rig.origin(
                behind: Secure.behind(server) { parameters in
                    resumed.change { $0.append(parameters.isResumed) }
                }, script)
            for _ in 0..<3 {
                #expect(try await rig.getSecure(origin.port).text == "hi")
                try await rig.until { $0.connections == 0 }
            }
            #expect(resumed.value == [false, true, true])
        }
    }

    @Test("A pinned key needs no issuer, and any other is refused")
    func pinned() async throws {
        let alone = TestCertificate("alone", names: "IP:127.0.0.1")
        let pin = try #require(TLSPin(alone.pin))
        let trust = try Secure.trust(nil, pins: [pin])
        try await with(showing: alone, trust: trust, hi) { rig, origin in
            let outcome = try await rig.getSecure(origin.port)
            #expect(outcome.text == "hi")
        }
        try await with(showing: Secure.good, trust: trust, hi) { rig, origin in
            let cause = try await rig.getSecure(origin.port).tlsCause
            #expect(cause == .wrongPin(Secure.good.pin))
        }
    }

    @Test("Connections under a site's own trust are not used under another's")
    func trusts() async throws {
        let other = TestCertificate("Other authority", isIssuer: true)
        let trust = try Secure.trust()
        let strange = try Secure.trust(other)
        try await with(hi + hi) { rig, origin in
            func fetch(_ trust: OriginTrustStore?) async throws -> Outcome {
                let head = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8)
                let request = OriginFetchRequest(
                    origin: OriginAuthority(
                        host: "127.0.0.1", port: origin.port, isSecure: true, trustStore: trust),
                    method: .get, head: head, isSafeToRetry: true)
                return try await rig.begin(request).get()
            }
            let plain = try await fetch(nil)
            let refused = try await fetch(strange)
            #expect(plain.text == "hi")
            #expect(refused.tlsCause == .unknownIssuer("CN=Origins' authority"))
            let own = try await fetch(trust)
            // Another value with equal content.
            let again = try await fetch(Secure.trust())
            #expect(own.text == "hi" && again.text == "hi")
            #expect(origin.connections == 3)
        }
    }

    @Test("A changed trust closes existing connections and applies to new ones")
    func reloaded() async throws {
        let other = try Secure.trust(TestCertificate("Other authority", isIssuer: true))
        try await with(hi + hi) { rig, origin in
            #expect(try await rig.getSecure(origin.port).text == "hi")
            #expect(try await rig.usage().idle == 1)
            try await rig.with { client in
                var settings = client.settings
                settings.trustStore = other
                client.reconfigure(
                    settings: settings, addressGuard: client.addressGuard,
                    patterns: [.everything])
            }
            #expect(try await rig.usage().idle == 0)
            let cause = try await rig.getSecure(origin.port).tlsCause
            #expect(cause == .unknownIssuer("CN=Origins' authority"))
        }
    }

    @Test("Through a proxy TLS runs inside the tunnel")
    func tunnelled() async throws {
        let trust = try Secure.trust()
        let server = try Secure.server()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let proxy = try await TunnelProxy.listening(on: group)
        let authority = OriginAuthority(host: "127.0.0.1", port: proxy.port)
        try await Rig.run(
            names: ["a.example": [["127.0.0.1"]]],
            settings: {
                $0.trustStore = trust
                $0.proxy = ForwardProxy(authority, resolvesNames: false)
            }
        ) { rig in
            let origin = try await rig.origin(behind: Secure.behind(server), hi)
            #expect(try await rig.getSecure(origin.port, host: "a.example").text == "hi")
            #expect(proxy.asked.value == ["CONNECT 127.0.0.1:\(origin.port) HTTP/1.1"])
        }
        try await proxy.stop()
        try await group.shutdownGracefully()
    }

    @Test("A TLS failure is reported once for each reason, and its end once")
    func reported() async throws {
        let server = try Secure.server()
        let pin = try #require(TLSPin(Self.pin))
        let pinned = try Secure.trust(nil, pins: [pin])
        try await Rig.run(settings: { $0.trustStore = pinned }) { rig in
            let origin = try await rig.origin(behind: Secure.behind(server), hi + hi)
            for _ in 0..<3 { _ = try await rig.getSecure(origin.port) }
            #expect(rig.events.value.count == 1)
            try await rig.with { client in
                var settings = client.settings
                settings.trustStore = try Secure.trust()
                client.reconfigure(
                    settings: settings, addressGuard: client.addressGuard,
                    patterns: [.everything])
            }
            for _ in 0..<2 { #expect(try await rig.getSecure(origin.port).text == "hi") }
            #expect(rig.events.value.count == 2)
            guard case .tlsSucceeded? = rig.events.value.last else {
                Issue.record("the end of the failure is not reported")
                return
            }
        }
    }

    static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
}
