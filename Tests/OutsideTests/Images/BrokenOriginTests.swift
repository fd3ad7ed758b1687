import Harness
import Testing

extension Outside {
    @Suite("A response truncated by the origin is never complete and never stored")
    struct BrokenOriginTests {
        /// A way to truncate a response.
        struct Damage: CustomTestStringConvertible, Sendable {
            let name: String
            let response: @Sendable (TestImage) -> OriginResponse
            var testDescription: String { name }

            init(_ name: String, _ response: @escaping @Sendable (TestImage) -> OriginResponse) {
                self.name = name
                self.response = response
            }
        }

        static let damages: [Damage] = [
            Damage("length, closed half-way") {
                OriginResponse($0).truncated(after: 150_000, .close)
            },
            Damage("length, reset half-way") {
                OriginResponse($0).truncated(after: 150_000, .reset)
            },
            Damage("length, closed before the body") {
                OriginResponse($0).truncated(after: 0, .close)
            },
            Damage("length, closed one byte early") {
                OriginResponse($0).truncated(after: $0.byteCount - 1, .close)
            },
            Damage("chunked, closed half-way") { chunked($0).truncated(after: 150_000, .close) },
            Damage("chunked, reset half-way") { chunked($0).truncated(after: 150_000, .reset) },
            Damage("chunked, without its last chunk") {
                chunked($0).truncated(after: $0.byteCount, .close)
            },
            Damage("ended by close, reset half-way") {
                OriginResponse($0, framing: .close).truncated(after: 150_000, .reset)
            },
            Damage("closed in the head") { OriginResponse($0).truncatedInHead(.close) },
            Damage("reset in the head") { OriginResponse($0).truncatedInHead(.reset) },
            Damage("chunked with a bad size") { _ in
                .raw(Array((badChunkHead + "zz\r\n").utf8)).closingConnection()
            },
        ]

        private static let badChunkHead =
            "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nTransfer-Encoding: chunked\r\n\r\n"

        private static func chunked(_ image: TestImage) -> OriginResponse {
            OriginResponse(image, framing: .chunked(bytesMax: 8_000), fields: [lasting])
        }

        @Test("Fifty clients of a truncated response detect the truncation", arguments: damages)
        func broken(_ damage: Damage) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.jpeg, byteCount: 300_000, seed: 40)
            let gate = Gate()
            stage.origin.on("/it", damage.response(image).delayingHead(.gate(gate)))
            let swarm = ClientSwarm(
                port: stage.node.port, count: 50, .init(stage.target("/it"), expecting: image))
            #expect(gate.waitForArrivals() && swarm.waitForConnections())
            gate.open()
            let responses = swarm.responses()
            let fooled = responses.filter { $0.isWhole && $0.status < 400 }
            #expect(fooled.isEmpty, "\(fooled.count) look whole, such as \(fooled.prefix(2))")
            #expect(responses.allSatisfy { $0.ending != .timedOut })
            let before = stage.fetches("/it")
            stage.origin.on("/it", OriginResponse(image, fields: [lasting]))
            let retry = try stage.get("/it")
            #expect(retry.matches(image) && !retry.isHit, "\(retry)")
            #expect(stage.fetches("/it") == before + 1)
            #expect(try stage.get("/it").isHit)
        }

        @Test("A client that has part of the body is disconnected when the origin fails")
        func cutInMidBody() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.png, byteCount: 3_000_000, seed: 41)
            let gate = Gate()
            stage.origin.on(
                "/it",
                OriginResponse(image).stalling(at: 1_500_000, .gate(gate))
                    .truncated(after: 1_500_000, .close))
            let connection = try stage.node.connect()
            try connection.socket.send(HTTPConnection.request(stage.target("/it")))
            let part = connection.readResponse(expecting: image, bodyBytesMax: 1_000_000)
            #expect(part.status == 200 && part.isAsExpected, "the body streams before it is whole")
            gate.open()
            #expect(connection.waitForEnd() != .timedOut)
        }

        @Test(
            "An image closed by the connection before its end is not stored",
            arguments: [TestImage.Kind.jpeg, .png])
        func closedEarly(_ kind: TestImage.Kind) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(kind, byteCount: 300_000, seed: 42)
            stage.origin.on(
                "/it",
                OriginResponse(image, framing: .close, fields: [lasting])
                    .truncated(after: 150_000, .close))
            _ = try stage.get("/it")
            stage.origin.on("/it", OriginResponse(image, fields: [lasting]))
            #expect(try stage.get("/it").matches(image))
            #expect(stage.fetches("/it") == 2)
        }

        @Test(
            "An uncacheable image closed before its end does not look complete",
            arguments: [TestImage.Kind.jpeg, .png, .gif])
        func closedEarlyNotKept(_ kind: TestImage.Kind) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(kind, byteCount: 2_000_000, seed: 46)
            stage.origin.on(
                "/it",
                OriginResponse(image, framing: .close, fields: ["Cache-Control: no-store"])
                    .truncated(after: 1_900_000, .close))
            for _ in 0..<3 {
                let response = try stage.get("/it")
                #expect(!(response.isWhole && response.status < 400), "\(response)")
            }
        }

        @Test("Bytes after the declared length cost the connection, not the response")
        func overLong() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.jpeg, byteCount: 10_000, seed: 43)
            stage.origin.on(
                "/it", OriginResponse(image, framing: .falseLength(9_000), fields: [lasting]))
            let response = try stage.get("/it")
            #expect(response.status == 200 && response.isWhole, "\(response)")
            #expect(response.bodyByteCount == 9_000)
            #expect(try stage.get("/it").isHit)
            #expect(stage.fetches("/it") == 1)
        }

        @Test("A pooled origin connection closed between requests fails no request")
        func staleConnection() throws {
            let stage = try Stage(origin: try ScriptedOrigin(requestsPerConnection: 1))
            defer { withExtendedLifetime(stage) {} }
            for seed in 0..<20 {
                let image = TestImage.generated(.png, byteCount: 2_000, seed: UInt64(seed))
                let path = stage.origin.serve(image, fields: [lasting])
                #expect(try stage.get(path).matches(image))
            }
        }

        @Test("An origin that is down gives a problem, and is tried again for the next request")
        func down() throws {
            let port = try ReservedPort.forProcess()
            let node = try NodeProcess()
            let target = ImageRequestTarget.forURL("http://127.0.0.1:\(port)/it.png")
            expectProblem(try node.get(target), 500...504)
            expectProblem(try node.get(target), 500...504)
        }

        @Test("An origin that is too slow gives a problem")
        func slow() throws {
            let stage = try Stage("--origin-first-byte-timeout", "200ms")
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            defer { gate.open() }
            let image = TestImage.generated(.png, byteCount: 2_000, seed: 44)
            stage.origin.on("/it", OriginResponse(image).delayingHead(.gate(gate)))
            expectProblem(try stage.get("/it"), 504)
        }

        @Test("An origin that stalls too long in mid-body is abandoned")
        func stalls() throws {
            let stage = try Stage("--origin-idle-timeout", "200ms")
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            defer { gate.open() }
            let image = TestImage.generated(.png, byteCount: 300_000, seed: 45)
            stage.origin.on("/it", OriginResponse(image).stalling(at: 150_000, .gate(gate)))
            let response = try stage.get("/it")
            #expect(!response.isWhole && response.ending != .timedOut, "\(response)")
        }
    }
}
