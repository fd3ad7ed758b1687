import Harness
import Testing

extension Outside {
    /// Resources of a node that one client or one URL can take from others.
    @Suite("No client crowds out the others")
    struct CrowdingTests {
        @Test("A URL on which the origin hangs up does not block the others of its site")
        func hangingUp() throws {
            let stage = try SiteStage()
            let bad = TestImage.generated(.gif, byteCount: 3_000, seed: 90)
            stage.origin.on("/bad", OriginResponse(bad).truncatedInHead(.reset))
            stage.origin.onAnyOtherPath { _ in .text("ok") }
            for number in 1...200 {
                expectProblem(try stage.get("/bad?\(number)"), 502)
                let response = try stage.get("/\(number)")
                #expect(response.status == 200 && response.text == "ok", "\(response)")
            }
            #expect(stage.node.metric("nuthatch_origin_circuit_openings_total") == 0)
            // The circuit breaker exists: without the origin, requests stop after a while.
            stage.origin.stop()
            for number in 1...20 { expectProblem(try stage.get("/off/\(number)"), 502) }
            expectProblem(try stage.get("/off/21"), 503)
        }

        private let image = TestImage.generated(.gif, byteCount: 3_000, seed: 91)

        @Test(
            "Hundreds of requests to a silent origin leave slots for others",
            arguments: [true, false])
        func silentOrigin(areOfOneClient: Bool) throws {
            let (slow, other) = (try ScriptedOrigin(), try ScriptedOrigin(host: "127.0.0.9"))
            let node = try NodeProcess(
                Behind.flags + ["--fills-limit", "40", "--default-ttl", "1h"])
            let gate = Gate()
            defer { gate.open() }
            slow.on("/it", OriginResponse(image).delayingHead(.gate(gate)))
            let hot = ImageRequestTarget.forURL(other.url("/hot"))
            other.onAnyOtherPath { [image] _ in OriginResponse(image, fields: [lasting]) }
            #expect(try Behind.get(node, hot, expecting: image).matches(image))
            let plans = (0..<400).map { number in
                let client =
                    areOfOneClient ? Behind.bad : "203.0.\(number / 250).\(number % 250)"
                return Behind.plan(client, ImageRequestTarget.forURL(slow.url("/it?\(number)")))
            }
            let crowd = ClientSwarm(port: node.port, plans)
            // A client has a quarter of the slots, an origin three quarters.
            let slots = areOfOneClient ? 10 : 30
            #expect(gate.waitForArrivals(slots))
            expectSoon {
                node.metric("nuthatch_refused_total{reason=\"share\"}") == Double(400 - slots)
            }
            for number in 0..<100 {
                let miss = try Behind.get(
                    node, ImageRequestTarget.forURL(other.url("/\(number)")), expecting: image)
                #expect(miss.matches(image), "\(miss)")
                let hit = try Behind.get(node, hot, expecting: image)
                #expect(hit.matches(image) && hit.isHit, "\(hit)")
            }
            gate.open()
            let responses = crowd.responses()
            #expect(responses.count { $0.status == 200 } == slots)
            let refused = responses.filter { $0.status == 503 }
            #expect(refused.count == 400 - slots)
            #expect(refused.allSatisfy { $0["Retry-After"] != nil })
        }

        /// Sends one request from each of eight clients, which disconnect once the origin has all
        /// requests.
        private func leave(_ stage: Stage, _ gate: Gate) throws {
            let leaving = try (0..<8).map { number in
                let client = try stage.node.connect()
                try client.socket.send(HTTPConnection.request(stage.target("/it?\(number)")))
                return client
            }
            #expect(gate.waitForArrivals(8))
            for client in leaving { client.socket.reset() }
        }

        @Test("A fetch without waiting clients gives up its slot to one with clients")
        func unwanted() throws {
            let stage = try Stage(
                "--fills-limit", "8", "--client-share", "100", "--origin-share", "100")
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on(
                "/it", OriginResponse(image, fields: [lasting]).stalling(at: 1_000, .gate(gate)))
            try leave(stage, gate)
            expectSoon {
                stage.node.metric("nuthatch_fills_in_flight") == 8
                    && stage.node.metric("nuthatch_waiters") == 0
            }
            let wanted = stage.origin.serve(
                TestImage.generated(.png, byteCount: 2_000, seed: 92), fields: [lasting])
            #expect(try stage.get(wanted).status == 200)
            expectSoon {
                stage.node.metric("nuthatch_origin_fetches_total{result=\"abandoned\"}") ?? 0 >= 1
            }
        }

        @Test("A large image without waiting clients is fetched only up to a small limit")
        func unreadBytes() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.bmp, byteCount: 40_000_000, seed: 93)
            let (client, gate) = try stage.begin {
                OriginResponse(large, fields: [lasting]).stalling(at: 100_000, .gate($0))
            }
            client.socket.reset()
            expectSoon { stage.node.metric("nuthatch_waiters") == 0 }
            gate.open()
            expectSoon { stage.node.metric("nuthatch_fills_in_flight") == 0 }
            #expect(stage.node.metric("nuthatch_memory_entries") == 0)
            #expect(stage.node.metric("nuthatch_origin_received_bytes_total") ?? 0 < 10_000_000)
        }

        @Test("A client that disconnects repeatedly has a limited quota of unread fetched bytes")
        func unreadBytesOfClient() throws {
            let stage = try Stage("--client-unread-limit", "1MiB")
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.bmp, byteCount: 2_000_000, seed: 94)
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on(
                "/it", OriginResponse(large, fields: [lasting]).stalling(at: 10_000, .gate(gate)))
            try leave(stage, gate)
            expectSoon { stage.node.metric("nuthatch_waiters") == 0 }
            gate.open()
            expectSoon { stage.node.metric("nuthatch_fills_in_flight") == 0 }
            // The last read may have exceeded the rest of the quota.
            let unread = stage.node.metric("nuthatch_origin_unread_bytes_total") ?? 0
            #expect((1_048_576..<3_145_728).contains(unread), "\(unread)")
            #expect(stage.node.metric("nuthatch_memory_entries") ?? 8 < 8)
        }

        @Test("An origin that sends its body byte by byte is abandoned")
        func dripping() throws {
            let stage = try Stage("--origin-idle-timeout", "300ms")
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on(
                "/it",
                OriginResponse(image, fields: [lasting]).dripping(bytesMax: 1, seconds: 0.02))
            let response = try stage.get("/it")
            #expect(response.status == 504 || !response.isWhole, "\(response)")
            #expect(stage.node.metric("nuthatch_timeouts_total{kind=\"origin_idle\"}") == 1)
            #expect(stage.node.metric("nuthatch_fills_in_flight") == 0)
        }

        @Test("A site's event stream may be slow and long")
        func events() throws {
            // Its rate is far below the minimum rate, and it lasts longer than the idle timeout.
            let stage = try SiteStage("--origin-idle-timeout", "1s")
            let events = TestImage(
                name: "events", contentType: "text/event-stream", bytes: Array("data: x\n\n".utf8))
            stage.origin.on(
                "/it",
                OriginResponse(events, framing: .close, fields: ["Cache-Control: no-store"])
                    .dripping(bytesMax: 1, seconds: 0.2))
            let response = try stage.get("/it")
            #expect(response.status == 200 && response.text == "data: x\n\n", "\(response)")
        }
    }
}
