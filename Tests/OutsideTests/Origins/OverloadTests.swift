import Harness
import Testing

extension Outside {
    @Suite("Under overload misses get 503 and hits go on")
    struct OverloadTests {
        private static let hot = TestImage.generated(.png, byteCount: 9_000, seed: 70)

        /// Starts a stage whose node has one image in memory.
        private func stage(_ flags: String...) throws -> Stage {
            let origin = try ScriptedOrigin()
            origin.on("/hot", OriginResponse(Self.hot, fields: [lasting]))
            let node = try NodeProcess(flags)
            let stage = Stage(origin: origin, node: node)
            #expect(try stage.get("/hot").matches(Self.hot))
            return stage
        }

        private func expectHit(_ stage: Stage) throws {
            let response = try stage.get("/hot")
            #expect(response.isHit && response.matches(Self.hot), "\(response)")
        }

        private func expectRefused(
            _ response: Response, _ reason: String, _ stage: Stage, count: Double
        ) {
            expectProblem(response, 503)
            #expect(response["Retry-After"].flatMap { Int($0) } ?? 0 >= 1, "\(response)")
            #expect(stage.node.metric("nuthatch_refused_total{reason=\"\(reason)\"}") == count)
        }

        @Test("Requests beyond an origin's slots and queue are refused")
        func queue() throws {
            let stage = try stage(
                "--origin-connections", "2", "--origin-queue-limit", "3",
                "--origin-queue-timeout", "60s", "--client-share", "100", "--origin-share", "100")
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            let image = TestImage.generated(.gif, byteCount: 3_000, seed: 71)
            for number in 0..<6 {
                stage.origin.on("/\(number)", OriginResponse(image).delayingHead(.gate(gate)))
            }
            let waiting = try (0..<5).map { number in
                let connection = try stage.node.connect()
                try connection.socket.send(
                    "GET \(stage.target("/\(number)")) HTTP/1.1\r\nHost: a\r\n\r\n")
                return connection
            }
            expectSoon(20) { stage.node.metric("nuthatch_origin_waiting") == 3 }
            expectRefused(try stage.get("/5"), "origin_queue", stage, count: 1)
            try expectHit(stage)
            gate.open()
            for connection in waiting {
                #expect(connection.readResponse(expecting: image).matches(image))
            }
        }

        @Test("Requests are refused after the maximum wait, and the fetch goes on for others")
        func waitTime() throws {
            let stage = try stage("--wait-timeout", "300ms")
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            let image = TestImage.generated(.gif, byteCount: 3_000, seed: 72)
            stage.origin.on(
                "/it", OriginResponse(image, fields: [lasting]).delayingHead(.gate(gate)))
            expectRefused(try stage.get("/it"), "wait_time", stage, count: 1)
            try expectHit(stage)
            #expect(stage.node.metric("nuthatch_waiters") == 0)
            gate.open()
            expectSoon(20) { stage.node.metric("nuthatch_memory_entries") == 2 }
            #expect(try stage.get("/it").isHit)
            #expect(stage.fetches("/it") == 1)
        }

        @Test("After repeated failures an origin is not tried, which is logged once and shown")
        func circuit() throws {
            let stage = try stage(
                "--origin-circuit-failures", "3", "--origin-circuit-time", "60s")
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.gif, byteCount: 3_000, seed: 73)
            for number in 1...3 {
                stage.origin.on("/bad\(number)", OriginResponse(image).truncatedInHead(.reset))
            }
            stage.origin.on("/good", OriginResponse(image, fields: [lasting]))
            for number in 1...3 { expectProblem(try stage.get("/bad\(number)"), 502) }
            for number in 1...5 {
                let response = try stage.get("/good")
                expectRefused(response, "origin_circuit", stage, count: Double(number))
                #expect((1...60).contains(response["Retry-After"].flatMap { Int($0) } ?? 0))
            }
            try expectHit(stage)
            #expect(stage.fetches("/good") == 0)
            #expect(stage.node.metric("nuthatch_origin_circuits_open") == 1)
            let document = try stage.node.document("/admin/v1/origins")
            let rows = document["origins"] as? [[String: Any]]
            #expect(rows?.count == 1 && rows?.first?["circuit"] as? String == "open")
            #expect(rows?.first?["origin"] as? String == "127.0.0.1:\(stage.origin.port)")
            expectProblem(try stage.node.get("/admin/v1/origins"), 404)
            let lines = stage.node.output.split(separator: "\n")
            #expect(lines.count { $0.contains("circuit breaker opened") } == 1)
            #expect(lines.count { $0.contains("origin fetch failed") } == 3)
        }

        @Test("Unstored bodies leave half of the memory to stored ones")
        func memory() throws {
            let stage = try stage("--memory-limit", "16MiB", "--object-limit", "16KiB")
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.jpeg, byteCount: 2_000_000, seed: 74)
            stage.origin.on("/large", OriginResponse(large))
            // Clients that read nothing: each has its own buffer, since uncacheable responses are
            // not shared.
            let stalled = try (0..<400).map { number in
                let connection = try stage.node.connect(receiveBufferBytes: 4_096)
                let target = stage.target("/large?\(number)")
                try connection.socket.send("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
                return connection
            }
            expectSoon(60) {
                (stage.node.metric("nuthatch_refused_total{reason=\"memory\"}") ?? 0) > 0
            }
            #expect((stage.node.metric("nuthatch_memory_used_bytes") ?? 0) < Double(16 << 20))
            try expectHit(stage)
            withExtendedLifetime(stalled) {}
        }
    }
}
