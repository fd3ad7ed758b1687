import Harness
import Testing

extension Outside {
    @Suite("No byte of a response is sent before its first bytes identify it")
    struct HeldResponseTests {
        private let image = TestImage.generated(.jpeg, byteCount: 50_000, seed: 330)

        private func expectNobodyWaits(
            _ node: NodeProcess, at location: SourceLocation = #_sourceLocation
        ) {
            expectSoon(at: location) {
                node.metric("nuthatch_waiters") == 0 && node.metric("nuthatch_fills_in_flight") == 0
            }
        }

        @Test(
            "An origin that stalls in the first bytes keeps clients waiting until it continues",
            arguments: [OriginResponse.Framing.length, .chunked(bytesMax: 3), .close])
        func stalls(_ framing: OriginResponse.Framing) throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let (client, gate) = try stage.begin {
                OriginResponse(image, framing: framing, fields: [lasting]).stalling(
                    at: 25, .gate($0))
            }
            #expect(stage.origin.waitForBodyBytes(25))
            #expect(client.isIdle(seconds: 0.3))
            gate.open()
            #expect(client.readResponse().matches(image))
            #expect(try stage.get("/it").isHit)
            expectNobodyWaits(stage.node)
        }

        @Test("An origin that stalls too long in the first bytes gives a problem")
        func stallsTooLong() throws {
            let stage = try Stage("--origin-idle-timeout", "200ms")
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on("/it", OriginResponse(image).stalling(at: 25, .gate(gate)))
            expectProblem(try stage.get("/it"), 504)
            expectNobodyWaits(stage.node)
        }

        @Test(
            "An origin that disconnects in the first bytes gives a problem, not a partial body",
            arguments: [OriginResponse.Disconnect.close, .reset])
        func breaksOff(_ how: OriginResponse.Disconnect) throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on("/it", OriginResponse(image).truncated(after: 25, how))
            expectProblem(try stage.get("/it"), 502)
            expectNobodyWaits(stage.node)
        }

        @Test(
            "A body that ends before its type is known is not stored; one without a size is",
            arguments: [OriginResponse.Framing.length, .chunked(bytesMax: 7)])
        func ends(_ framing: OriginResponse.Framing) throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            for (count, isKept) in [(0, false), (1, false), (3, true), (25, true)] {
                let piece = TestImage(
                    name: "piece-\(count)", contentType: "image/jpeg",
                    bytes: image.bytes(0..<count))
                stage.origin.on(
                    "/\(count)", OriginResponse(piece, framing: framing, fields: [lasting]))
                for isFirst in [true, false] {
                    let response = try stage.get("/\(count)")
                    #expect(response.matches(piece), "\(response)")
                    #expect(response.isHit == (isKept && !isFirst), "\(response)")
                    let isStored = response.cacheStatus["stored"] != nil
                    #expect(isStored == (isKept && isFirst), "\(response)")
                    #expect(response["X-Content-Type-Options"] == "nosniff")
                }
                #expect(try stage.get("/\(count)", method: "HEAD").status == 200)
                #expect(stage.fetches("/\(count)") == (isKept ? 1 : 3))
            }
            expectNobodyWaits(stage.node)
            #expect(stage.node.metric("nuthatch_memory_entries") == 2)
            let unreadable = "nuthatch_images_unfit_total{reason=\"unreadable\"}"
            #expect(stage.node.metric(unreadable) == 2)
            #expect(stage.node.output.contains("image not stored"))
        }

        @Test("When its only client leaves in the first bytes, an image is fetched and stored")
        func clientLeaves() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let (client, gate) = try stage.begin {
                OriginResponse(image, fields: [lasting]).stalling(at: 25, .gate($0))
            }
            client.socket.reset()
            expectSoon { stage.node.metric("nuthatch_waiters") == 0 }
            gate.open()
            expectNobodyWaits(stage.node)
            #expect(try stage.get("/it").isHit)
            #expect(stage.fetches("/it") == 1)
        }

        @Test("A range or HTTP/1.0 request during the wait gets the right response")
        func others() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on(
                "/it",
                OriginResponse(image, framing: .chunked(bytesMax: 5_000), fields: [lasting])
                    .stalling(at: 25, .gate(gate)))
            let part = try stage.node.connect()
            try part.socket.send(
                HTTPConnection.request(stage.target("/it"), fields: ["Range: bytes=10-19"]))
            let old = try stage.node.connect()
            try old.socket.send("GET \(stage.target("/it")) HTTP/1.0\r\n\r\n")
            let head = try stage.node.connect()
            try head.socket.send(HTTPConnection.request(stage.target("/it"), method: "HEAD"))
            expectSoon { stage.node.metric("nuthatch_waiters") == 3 }
            #expect(gate.waitForArrivals())
            gate.open()
            let piece = part.readResponse()
            #expect(piece.status == 206 && piece.body == image.bytes(10..<20), "\(piece)")
            #expect(old.readResponse().matches(image))
            #expect(head.readResponse(method: "HEAD").status == 200)
            #expect(stage.fetches("/it") == 1)
        }

        @Test("A header after a large colour profile is found, whether the image is stored or not")
        func largeProfile() throws {
            let stage = try Stage("--object-limit", "1500KiB")
            defer { withExtendedLifetime(stage) {} }
            for (profileBytes, isKept) in [(1_200_000, true), (1_800_000, false)] {
                let image = TestImage.jpeg(profileBytes: profileBytes, seed: 331)
                for framing in [OriginResponse.Framing.length, .chunked(bytesMax: 50_000), .close] {
                    let path = "/\(stage.origin.log.count)"
                    stage.origin.on(
                        path, OriginResponse(image, framing: framing, fields: [lasting]))
                    #expect(try stage.get(path).matches(image), "\(framing)")
                    let again = try stage.get(path)
                    #expect(again.matches(image) && again.isHit == isKept, "\(framing) \(again)")
                }
            }
            #expect(stage.node.metric("nuthatch_images_unfit_total{reason=\"unreadable\"}") == 0)
        }

        @Test("A header after more bytes than are examined is not waited for")
        func tooLargeProfile() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.jpeg(profileBytes: 2_400_000, seed: 332)
            let gate = Gate()
            stage.origin.on(
                "/it", OriginResponse(image, fields: [lasting]).stalling(at: 2_200_000, .gate(gate))
            )
            let client = try stage.node.connect()
            try client.socket.send(HTTPConnection.request(stage.target("/it")))
            let part = client.readResponse(bodyBytesMax: 100_000)
            #expect(part.status == 200 && part.cacheStatus["stored"] != nil, "\(part)")
            gate.open()
            #expect(try stage.get("/it").matches(image))
            #expect(stage.fetches("/it") == 1)
            let unreadable = "nuthatch_images_unfit_total{reason=\"unreadable\"}"
            #expect(stage.node.metric(unreadable) == 1)
        }

        @Test("Held bytes are counted, and without memory for them the response is 503")
        func memory() throws {
            let stage = try Stage("--memory-limit", "16MiB")
            defer { withExtendedLifetime(stage) {} }
            let (gate, clients) = (Gate(), 20)
            let images = (0..<clients).map {
                TestImage.jpeg(profileBytes: 1_980_000, seed: UInt64(340 + $0))
            }
            for image in images {
                stage.origin.on(
                    "/" + image.name,
                    OriginResponse(image, framing: .chunked(bytesMax: 60_000), fields: [lasting])
                        .stalling(at: 1_900_000, .gate(gate)))
            }
            let swarm = ClientSwarm(
                port: stage.node.port,
                images.map { .init(stage.target("/" + $0.name), expecting: $0) })
            expectSoon(60) {
                (stage.node.metric("nuthatch_answers_total{status=\"5xx\"}") ?? 0) > 0
                    && stage.origin.log.count == clients
            }
            #expect(swarm.waitForConnections())
            let held = stage.node.metric("nuthatch_memory_used_bytes") ?? 0
            #expect(held > 1_800_000 && held <= Double(16 << 20), "\(held)")
            gate.open()
            let responses = swarm.responses()
            let refused = responses.filter { $0.status == 503 && $0["Retry-After"] != nil }
            let served = zip(responses, images).filter { $0.matches($1) }
            #expect(!refused.isEmpty && !served.isEmpty)
            #expect(refused.count + served.count == clients)
            expectNobodyWaits(stage.node)
        }
    }
}
