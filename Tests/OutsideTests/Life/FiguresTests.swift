import Harness
import Testing

extension Outside {
    @Suite("Metrics match the events")
    struct FiguresTests {
        private let image = TestImage.generated(.jpeg, byteCount: 10_000, seed: 190)

        @Test("Each request is counted once, by the cache's part in it")
        func requests() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let (image, gate) = (image, Gate())
            stage.origin.on("/it") { request in
                guard !request.isConditional else {
                    return .notModified(["ETag: \"v\"", "Cache-Control: max-age=3600"])
                }
                return OriginResponse(image, fields: ["ETag: \"v\"", "Cache-Control: max-age=0"])
                    .delayingHead(.gate(gate))
            }
            let before = Self.requests(stage)
            let swarm = ClientSwarm(
                port: stage.node.port, count: 10, .init(stage.target("/it"), expecting: image))
            expectSoon(20) { stage.node.metric("nuthatch_waiters") == 10 }
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.matches(image) })
            for _ in 0..<3 { #expect(try stage.get("/it").matches(image)) }
            #expect(try stage.node.get("/missing").status == 404)
            let after = Self.requests(stage)
            let counted = zip(after, before).map { $0 - $1 }
            #expect(counted == [2, 1, 1, 9, 1], "\(counted)")
        }

        @Test("A malformed request is timed by its refusal only")
        func malformed() throws {
            let node = try NodeProcess()
            let connection = try node.connect()
            try connection.socket.send(Array("GET / HTTP/1.1\r\nno field\r\n\r\n".utf8))
            #expect(connection.readResponse(method: "GET").status == 400)
            let name = "nuthatch_request_duration_seconds"
            let count = try #require(node.metric("\(name)_count{cache=\"none\"}"))
            let sum = try #require(node.metric("\(name)_sum{cache=\"none\"}"))
            let status = try node.connectAdmin().get("/admin/v1/status").text
            let uptime = try #require(
                status.firstMatch(of: /"uptime_ms":(\d+)/).flatMap { Double($0.output.1) })
            #expect(count >= 1 && sum <= count * uptime / 1_000)
        }

        @Test("Requests that leave another's fetch are counted by their own")
        func sentAway() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on(
                "/it",
                OriginResponse(image, fields: ["Cache-Control: private"]).delayingHead(.gate(gate)))
            let before = Self.requests(stage)
            let swarm = ClientSwarm(
                port: stage.node.port, count: 5, .init(stage.target("/it"), expecting: image))
            expectSoon(20) { stage.node.metric("nuthatch_waiters") == 5 }
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.matches(image) })
            let counted = zip(Self.requests(stage), before).map { $0 - $1 }
            #expect(counted == [0, 0, 5, 0, 0], "\(counted)")
        }

        @Test("Sent bytes are counted with heads, bytes received from origins without")
        func bytes() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            let sent = stage.node.metric("nuthatch_sent_bytes_total") ?? 0
            #expect(try stage.get(path).matches(image))
            let more = (stage.node.metric("nuthatch_sent_bytes_total") ?? 0) - sent
            #expect(more > 10_100 && more < 11_000, "\(more)")
            #expect(stage.node.metric("nuthatch_origin_received_bytes_total") == 10_000)
        }

        /// Returns the requests so far: hit, revalidated, miss, collapsed, none.
        private static func requests(_ stage: Stage) -> [Double] {
            ["hit", "revalidated", "miss", "collapsed", "none"].map {
                stage.node.metric("nuthatch_requests_total{cache=\"\($0)\"}") ?? -1
            }
        }
    }
}
