import Harness
import Testing

extension Outside {
    @Suite("Fetches without clients, or with impossible lengths")
    struct AbandonedTests {
        private let image = TestImage.generated(.jpeg, byteCount: 2_000, seed: 300)

        /// Requests a path and disconnects once the origin has the request and is held at `gate`.
        private func leave(_ stage: Stage, _ path: String, at gate: Gate) throws {
            let client = try stage.node.connect()
            try client.socket.send(HTTPConnection.request(stage.target(path)))
            #expect(gate.waitForArrivals())
            let descriptors = stage.node.descriptorCount
            client.socket.reset()
            expectSoon { stage.node.descriptorCount < descriptors }
        }

        @Test(
            "An uncacheable response may arrive complete after its only client has left",
            arguments: [OriginResponse.Framing.length, .chunked(bytesMax: 500), .close])
        func notKept(_ framing: OriginResponse.Framing) throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on(
                "/it",
                OriginResponse(image, framing: framing, fields: ["Cache-Control: no-store"])
                    .delayingHead(.gate(gate)))
            try leave(stage, "/it", at: gate)
            gate.open()
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            #expect(try stage.node.get("/healthz").status == 200)
        }

        @Test("An unread body of unknown length may exceed the memory")
        func outgrows() throws {
            let stage = try Stage("--memory-limit", "16MiB", "--object-limit", "16MiB")
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.bmp, byteCount: 20_000_000, seed: 301)
            let gate = Gate()
            stage.origin.on(
                "/it",
                OriginResponse(large, framing: .chunked(bytesMax: 60_000), fields: [lasting])
                    .stalling(at: 1_000_000, .gate(gate)))
            try leave(stage, "/it", at: gate)
            gate.open()
            #expect(stage.origin.waitForConnections(atMost: 0))
            #expect(try stage.node.get("/healthz").status == 200)
            #expect(try stage.get("/it", expecting: large).matches(large))
        }

        @Test(
            "A length beyond all memory does no harm",
            arguments: ["9223372036854775808", "18446744073709551615", "9223372036854775807"])
        func absurdLength(_ length: String) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: \(length)\r\n"
            stage.origin.on(
                "/it", .raw(Array("\(head)\(lasting)\r\n\r\nbytes".utf8)).closingConnection())
            let response = try stage.get("/it")
            #expect(!response.isWhole || response.status == 502, "\(response)")
            #expect(try stage.node.get("/healthz").status == 200)
        }
    }
}
