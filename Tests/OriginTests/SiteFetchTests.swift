import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing
import Wire

@Suite("Fetches for sites")
struct SiteFetchTests {
    static let whole = Outcome.End.ended(delimitedByClose: false)

    @Test("The head is written as given")
    func head() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi)
            let outcome = try await rig.begin(siteRequest(origin.port)).get()
            #expect(outcome.text == "hi" && outcome.end == Self.whole)
            #expect(origin.requests == ["GET /a?b HTTP/1.1\r\nHost: site.example\r\nX: y\r\n\r\n"])
        }
    }

    @Test("A redirect is a response like any other")
    func redirect() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead,
                    .send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 2\r\n\r\nhi"),
                ])
            let outcome = try await rig.begin(siteRequest(origin.port)).get()
            #expect(outcome.status == 302 && outcome.text == "hi" && outcome.redirects.isEmpty)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Interim responses are delivered in order before the final one")
    func interim() async throws {
        let interims = [
            "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n", "HTTP/1.1 199\r\n\r\n",
        ]
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [.awaitRequestHead, .drip(interims.joined())] + hi.dropFirst())
            let outcome = try await rig.begin(siteRequest(origin.port)).get()
            #expect(outcome.interims == interims)
            #expect(outcome.status == 200 && outcome.text == "hi")
            #expect(try await rig.usage().idle == 1)
        }
    }

    @Test("A switch of protocols that was not requested is a failure")
    func upgrade() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead,
                    .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
                ])
            let outcome = try await rig.begin(siteRequest(origin.port)).get()
            #expect(outcome.failure == .malformed("The origin switches protocols unexpectedly."))
            #expect(outcome.failure?.status == 502)
        }
    }

    @Test("Trailers come after the body and before the end")
    func trailers() async throws {
        let response =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
            + "2\r\nhi\r\n0\r\nX-Sum: \u{E9}\r\ny:\r\n\r\n"
        try await Rig.run { rig in
            let origin = try await rig.origin([
                .awaitRequestHead, .send(response), .awaitRequestHead, .drip(response),
            ])
            for _ in 1...2 {
                let outcome = try await rig.begin(siteRequest(origin.port)).get()
                #expect(outcome.text == "hi" && outcome.end == Self.whole)
                #expect(outcome.trailers == "X-Sum: \u{E9}\r\ny:\r\n")
            }
            #expect(origin.connections == 1)
        }
    }

    @Test(
        "Forbidden trailers and an oversized trailer section make the response invalid",
        arguments: ["Content-Length: 1\r\n\r\n", String(repeating: "A: b\r\n", count: 2000)])
    func badTrailers(section: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"
        try await Rig.run { rig in
            let origin = try await rig.origin([.awaitRequestHead, .send(head + section)])
            let outcome = try await rig.begin(siteRequest(origin.port)).get()
            #expect(outcome.failure?.underlying.status == 502 && outcome.trailers.isEmpty)
            try await rig.until { $0.connections == 0 }
        }
    }

    @Test("A response to HEAD has no body, whatever its fields say")
    func headMethod() async throws {
        try await Rig.run { rig in
            let responses = ["Content-Length: 7", "Transfer-Encoding: chunked", "X: y"]
            let steps = responses.flatMap {
                [ByteOrigin.Step.awaitRequestHead, .send("HTTP/1.1 200 OK\r\n\($0)\r\n\r\n")]
            }
            let origin = try await rig.origin(steps)
            for _ in responses {
                let outcome = try await rig.begin(siteRequest(origin.port, .head)).get()
                #expect(outcome.status == 200 && outcome.bodyLength == 0)
                #expect(outcome.text.isEmpty && outcome.end == Self.whole)
            }
            #expect(origin.connections == 1 && origin.requests[0].hasPrefix("HEAD /a?b "))
        }
    }

    @Test("A body after a response to HEAD costs the connection, not the response")
    func headWithBody() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
                    .awaitGate,
                ])
            let outcome = try await rig.begin(siteRequest(origin.port, .head)).get()
            #expect(outcome.text.isEmpty && outcome.end == Self.whole)
            try await rig.until { $0.connections == 0 }
        }
    }

    @Test(
        "Any status and reason are delivered",
        arguments: [
            ("200 \u{E9}t\u{E9}", 200), ("299 ", 299), ("418 I'm a teapot", 418), ("599", 599),
            ("600 X", 600), ("999 X", 999),
        ])
    func anyStatus(line: String, status: UInt16) async throws {
        try await Rig.run { rig in
            let head = "HTTP/1.1 \(line)\r\nX: \u{E9}\r\nContent-Length: 2\r\n\r\n"
            let origin = try await rig.origin([.awaitRequestHead, .send(head + "hi")])
            let outcome = try await rig.begin(siteRequest(origin.port)).get()
            #expect(outcome.status == status && outcome.head == head && outcome.text == "hi")
        }
    }

    @Test("A response to POST that is delimited by close is complete")
    func untilClose() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [.awaitRequestHead, .awaitBody(2), .send("HTTP/1.0 200 OK\r\n\r\nhi"), .close])
            let request = siteRequest(origin.port, .post, body: .length(2))
            let outcome = try await rig.begin(request) { _, fetch in
                fetch.send(body: ByteBuffer(string: "ab"))
            }.get()
            #expect(outcome.text == "hi" && outcome.end == .ended(delimitedByClose: true))
        }
    }

    // MARK: Stale connections

    @Test(
        "An unsafe request is not retried when a reused connection ends without a response",
        arguments: [ByteOrigin.Step.close, .reset])
    func notRetried(how: ByteOrigin.Step) async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi + [.awaitRequestHead, how], hi)
            #expect(try await rig.begin(siteRequest(origin.port)).get().text == "hi")
            let request = siteRequest(origin.port, .post, body: .length(0))
            let second = try await rig.begin(request).get()
            #expect(second.failure == .closedBeforeResponse(bytesReceived: 0))
            #expect(origin.connections == 1 && origin.requests.count == 2)
        }
    }

    @Test("A safe request is retried once", arguments: [RequestMethod.get, .head])
    func retried(method: RequestMethod) async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi + [.awaitRequestHead, .close], hi)
            #expect(try await rig.begin(siteRequest(origin.port)).get().text == "hi")
            let second = try await rig.begin(siteRequest(origin.port, method)).get()
            #expect(second.status == 200 && second.end == Self.whole)
            #expect(origin.connections == 2 && origin.requests.count == 3)
        }
    }

    @Test("A safe request is not retried once a byte of its body was sent")
    func bodySent() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi + [.awaitRequestHead, .awaitBody(1), .close], hi)
            #expect(try await rig.begin(siteRequest(origin.port)).get().text == "hi")
            let request = siteRequest(
                origin.port, .put, body: .length(2), isSafeToRetry: true)
            let second = try await rig.begin(request) { _, fetch in
                fetch.send(body: ByteBuffer(string: "a"))
            }.get()
            #expect(second.failure == .closedBeforeResponse(bytesReceived: 0))
            #expect(origin.connections == 1)
        }
    }

    @Test("Until a byte of the body is sent, another connection may be used")
    func bodyNotSent() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                hi + [.awaitRequestHead, .close],
                [.awaitRequestHead, .awaitBody(2)] + hi.dropFirst())
            #expect(try await rig.begin(siteRequest(origin.port)).get().text == "hi")
            let request = siteRequest(
                origin.port, .put, body: .length(2), isSafeToRetry: true)
            let second = try await rig.begin(request) { recorder, fetch in
                var connections = 0
                recorder.whenMoreIsTaken = { _ in
                    connections += 1
                    if connections == 2 { fetch.send(body: ByteBuffer(string: "ab")) }
                }
            }.get()
            #expect(second.text == "hi" && second.end == Self.whole)
            #expect(origin.bodies.map { String(buffer: $0) } == ["ab"])
        }
    }

    // MARK: Allowed origins

    @Test("The origin of a site needs no permission, which does not extend to clients' URLs")
    func named() async throws {
        try await Rig.run(
            opening: [], patterns: [], names: ["in.example": [["127.0.0.1"]]]
        ) { rig in
            let origin = try await rig.origin(hi + hi)
            let site = try await rig.begin(siteRequest(origin.port, host: "in.example")).get()
            #expect(site.text == "hi")
            let authority = OriginAuthority(host: "in.example", port: origin.port)
            let url = try await rig.get(origin.port, host: "in.example")
            #expect(url.failure == .originNotAllowed(authority))
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A client's URL does not bypass the address guard on a site's connection")
    func connectionsApart() async throws {
        try await Rig.run(opening: []) { rig in
            let origin = try await rig.origin(hi + hi)
            #expect(try await rig.begin(siteRequest(origin.port)).get().text == "hi")
            #expect(try await rig.usage().idle == 1)
            guard case .addressRefused? = try await rig.get(origin.port).failure else {
                Issue.record("a refused address was used")
                return
            }
            #expect(try await rig.begin(siteRequest(origin.port)).get().text == "hi")
            #expect(origin.connections == 1 && origin.requests.count == 2)
        }
    }

    @Test("Limits of the request override the client's")
    func ownLimits() async throws {
        let change: @Sendable (inout OriginSettings) -> Void = {
            $0.bodyBytesMax = 1
            $0.totalLimit = .milliseconds(5)
        }
        try await Rig.run(settings: change) { rig in
            let silent = try await rig.origin([.awaitRequestHead, .awaitGate])
            #expect(
                try await rig.begin(siteRequest(silent.port)).get().failure
                    == .timedOut(.total, limit: .milliseconds(5)))
            let origin = try await rig.origin(hi)
            var request = siteRequest(origin.port)
            request.totalLimit = .seconds(600)
            #expect(
                try await rig.begin(request).get().failure == .bodyTooLarge(bytesMax: 1))
            request.bodyBytesMax = .max
            #expect(try await rig.begin(request).get().text == "hi")
        }
    }

    @Test("A failing site's origin opens the circuit, which can be queried without a fetch")
    func circuit() async throws {
        let change: @Sendable (inout OriginSettings) -> Void = {
            $0.admission.circuit = CircuitLimits(failures: 1, openInterval: .seconds(600))
        }
        try await Rig.run(settings: change) { rig in
            let origin = try await rig.origin([.awaitRequestHead, .close])
            let authority = OriginAuthority(host: "127.0.0.1", port: origin.port)
            #expect(try await rig.with { $0.circuitRefusal(ofSite: authority) } == nil)
            _ = try await rig.begin(siteRequest(origin.port)).get()
            let refusal = try await rig.with { $0.circuitRefusal(ofSite: authority) }
            #expect(refusal?.retryAfter != nil)
            guard case .circuitOpen? = try await rig.begin(siteRequest(origin.port)).get().failure
            else {
                Issue.record("a failing origin was used again")
                return
            }
            #expect(origin.requests.count == 1)
        }
    }
}
