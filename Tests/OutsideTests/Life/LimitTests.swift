import Harness
import Testing

extension Outside {
    @Suite("Limits hold, and hits go on")
    struct LimitTests {
        private let image = TestImage.generated(.jpeg, byteCount: 10_000, seed: 130)

        @Test("Connections above the limit are refused, and accepted again when others close")
        func connections() throws {
            let stage = try Stage("--connections-limit", "20")
            let (node, gate) = (stage.node, Gate())
            defer { gate.open() }
            var held = try stage.occupy(20, gate)
            let refused = try node.connect()
            try? refused.socket.send(HTTPConnection.request("/healthz"))
            let response = refused.readResponse(seconds: 2)
            #expect(response.status == 503 || !response.isWhole, "\(response)")
            gate.open()
            for connection in held { #expect(connection.readResponse().status == 200) }
            #expect(try held[0].get("/healthz").status == 200)
            refused.socket.close()
            held.removeAll()
            expectSoon { (try? node.get("/healthz", seconds: 2))?.status == 200 }
        }

        @Test("Operators can connect while clients fill the node, and see that it is full")
        func adminBesideFull() throws {
            let stage = try Stage("--connections-limit", "5")
            let (node, gate) = (stage.node, Gate())
            defer { gate.open() }
            var held = try stage.occupy(5, gate)
            expectSoon(20) {
                if let connection = try? node.connect() { held.append(connection) }
                return node.metric("nuthatch_connections_open") == 5
                    && (node.metric("nuthatch_connections_refused_total") ?? 0) > 0
            }
        }

        @Test("A URL above the limit is refused in every form")
        func url() throws {
            let stage = try Stage("--url-limit", "256B")
            defer { withExtendedLifetime(stage) {} }
            let path = "/" + String(repeating: "a", count: 300)
            stage.origin.on(path, OriginResponse(image))
            let plain = "/v1/image?url=" + stage.origin.url(path)
            for target in [plain, stage.target(path)] {
                expectProblem(try stage.node.get(target), 414, target)
            }
            let short = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(short).matches(image))
            #expect(stage.fetches(path) == 0)
        }

        @Test("Fetches above the limit get 503 with Retry-After while hits go on")
        func fetches() throws {
            let stage = try Stage("--fills-limit", "2")
            defer { withExtendedLifetime(stage) {} }
            let hot = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(hot).matches(image))
            stage.origin.on("/c", OriginResponse(image))
            let held = try ["/a", "/b"].map { path in
                try stage.begin(path) { OriginResponse(image).delayingHead(.gate($0)) }
            }
            let refused = try stage.get("/c")
            expectProblem(refused, 503)
            #expect(refused["Retry-After"] != nil)
            #expect(try stage.get(hot).isHit)
            #expect(stage.fetches("/c") == 0)
            for (client, gate) in held {
                gate.open()
                #expect(client.readResponse().matches(image))
            }
            #expect(try stage.get("/c").matches(image))
        }

        @Test("Hits go on while a thousand connections stall")
        func hitsGoOn() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let hot = stage.origin.serve(image, fields: [lasting])
            let large = TestImage.generated(.png, byteCount: 5_000_000, seed: 131)
            let big = stage.origin.serve(large, fields: [lasting])
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on("/held", OriginResponse(image).delayingHead(.gate(gate)))
            #expect(try stage.get(hot).matches(image))
            var half = SwarmClientPlan(stage.target(hot))
            half.request = Array(half.request.dropLast(4))
            let readers = SwarmClientPlan(stage.target(big), behaviour: .neverRead)
            let waiters = SwarmClientPlan(stage.target("/held"))
            let stalled = ClientSwarm(
                port: stage.node.port,
                [half, readers, waiters].flatMap {
                    Array(repeating: $0, count: 340)
                })
            #expect(stalled.waitForConnections() && gate.waitForArrivals())
            let connection = try stage.node.connect()
            for _ in 0..<1_000 {
                let hit = try connection.get(stage.target(hot), expecting: image)
                #expect(hit.matches(image) && hit.isHit)
            }
            #expect(try stage.node.get("/healthz").status == 200)
        }

        @Test(
            "No more images are stored than the entry limit permits; the others are fetched again"
        )
        func entries() throws {
            let stage = try Stage("--memory-entries", "10")
            defer { withExtendedLifetime(stage) {} }
            let images = (0..<40).map {
                TestImage.generated(.png, byteCount: 1_000, seed: UInt64($0))
            }
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            for (path, image) in zip(paths, images) { #expect(try stage.get(path).matches(image)) }
            let before = stage.origin.log.count
            #expect(before == 40)
            for (path, image) in zip(paths, images) { #expect(try stage.get(path).matches(image)) }
            #expect(stage.origin.log.count - before >= 30)
        }

        @Test("Descriptors are released however their connections end")
        func descriptors() throws {
            let stage = try Stage(origin: try ScriptedOrigin(requestsPerConnection: 1))
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.png, byteCount: 2_000_000, seed: 132)
            let path = stage.origin.serve(large, fields: [lasting])
            #expect(try stage.get(path, expecting: large).matches(large))
            #expect(stage.origin.waitForConnections(atMost: 0))
            let settled = try stage.settledDescriptors()
            stage.origin.on("/broken", OriginResponse(large).truncated(after: 500_000, .reset))
            let behaviours: [SwarmBehaviour] = [
                .readAll, .closeAfter(bodyBytes: 0), .closeAfter(bodyBytes: 100_000), .neverRead,
            ]
            let plans = [path, "/broken"].flatMap { path in
                behaviours.map { SwarmClientPlan(stage.target(path), behaviour: $0) }
            }
            let swarm = ClientSwarm(
                port: stage.node.port, Array(repeating: plans, count: 50).flatMap { $0 })
            #expect(swarm.waitForConnections())
            _ = swarm.responses(seconds: 5)
            swarm.stop()
            expectSoon(30, "\(settled), \(stage.node.descriptorCount) now") {
                stage.node.descriptorCount <= settled
            }
        }
    }
}
