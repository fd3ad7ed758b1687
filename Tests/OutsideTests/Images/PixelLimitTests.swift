import Harness
import Testing

extension Outside {
    @Suite("Images above the pixel limit")
    struct PixelLimitTests {
        /// 2³¹ pixels in 5 MB, of which only the start is needed.
        private static let bomb = TestImage.png(
            width: 65_536, height: 32_768, byteCount: 5_000_000)

        private func expectRefused(
            _ response: Response, _ note: String = "",
            at location: SourceLocation = #_sourceLocation
        ) {
            expectProblem(response, 502, note, at: location)
            #expect(
                response.text.contains("urn:nuthatch:problem:image-too-large")
                    && response.text.contains("65536 x 32768"), "\(note): \(response.text)",
                sourceLocation: location)
        }

        /// Expects that a fetch leaves no resources once its clients are served.
        private func expectNothingLeft(
            _ node: NodeProcess, at location: SourceLocation = #_sourceLocation
        ) {
            expectSoon(at: location) {
                node.metric("nuthatch_waiters") == 0 && node.metric("nuthatch_fills_in_flight") == 0
                    && node.metric("nuthatch_memory_used_bytes") == 0
            }
            #expect(node.metric("nuthatch_memory_entries") == 0, sourceLocation: location)
        }

        @Test(
            "It is refused before it has fully arrived, is not stored, and leaks no resource",
            arguments: [OriginResponse.Framing.length, .chunked(bytesMax: 16), .close])
        func refused(_ framing: OriginResponse.Framing) throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on(
                "/it",
                OriginResponse(Self.bomb, framing: framing, fields: [lasting])
                    .stalling(at: 64, .gate(gate)))
            expectRefused(try stage.get("/it"))
            expectRefused(try stage.get("/it"))
            #expect(stage.fetches("/it") == 2)
            #expect(stage.origin.waitForConnections(atMost: 0), "the fetch is broken off")
            expectNothingLeft(stage.node)
            #expect(stage.node.metric("nuthatch_images_unfit_total{reason=\"too_large\"}") == 2)
            // Lines are written after the responses.
            expectSoon(30, "\(stage.node.output)") {
                stage.node.lineCount(containing: "origin response refused", "/it") == 2
            }
        }

        @Test("A short remaining body is read, and its connection is reused")
        func small() throws {
            let stage = try Stage("--loops", "1")
            defer { withExtendedLifetime(stage) {} }
            let bomb = TestImage.png(width: 65_536, height: 32_768, byteCount: 30_000)
            stage.origin.on("/it", OriginResponse(bomb).stalling(at: 40, .seconds(0.1)))
            for count in 1...3 {
                expectRefused(try stage.get("/it"))
                expectSoon {
                    stage.node.metric("nuthatch_origin_fetches_total{result=\"ok\"}")
                        == Double(count)
                }
            }
            #expect(stage.origin.connectionsOpened == 1)
            expectNothingLeft(stage.node)
        }

        @Test("Every kind of request gets the same refusal")
        func requests() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(Self.bomb, fields: [lasting], etag: "\"a\"")
            expectRefused(try stage.get(path, fields: ["Range: bytes=0-9"]), "range")
            expectRefused(try stage.get(path, fields: ["Range: bytes=0-1,5-9"]), "ranges")
            expectRefused(try stage.get(path, fields: ["If-None-Match: \"a\""]), "conditional")
            let head = try stage.get(path, method: "HEAD")
            #expect(head.status == 502 && head.isWhole && head.bodyByteCount == 0)
            let old = try stage.node.connect()
            try old.socket.send("GET \(stage.target(path)) HTTP/1.0\r\n\r\n")
            expectRefused(old.readResponse(), "HTTP/1.0")
            expectNothingLeft(stage.node)
        }

        @Test("Every waiting client gets the refusal")
        func waiting() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on("/it", OriginResponse(Self.bomb).stalling(at: 10, .gate(gate)))
            let swarm = ClientSwarm(port: stage.node.port, count: 50, .init(stage.target("/it")))
            expectSoon { stage.node.metric("nuthatch_waiters") == 50 }
            #expect(gate.waitForArrivals())
            gate.open()
            let responses = swarm.responses()
            #expect(responses.allSatisfy { $0.status == 502 && $0.isWhole })
            #expect(stage.fetches("/it") == 1)
            expectNothingLeft(stage.node)
        }

        @Test("The image's bytes decide the pixel count, not its declared type")
        func mislabelled() throws {
            let stage = try Stage("--allow-type", "application/octet-stream")
            defer { withExtendedLifetime(stage) {} }
            for type in ["image/jpeg", "image/svg+xml", "image/x-any", "application/octet-stream"] {
                let image = TestImage(
                    name: "it", contentType: type, bytes: Self.bomb.bytes(0..<900))
                let path = stage.origin.serve(image, fields: [lasting])
                expectRefused(try stage.get(path), type)
            }
            expectNothingLeft(stage.node)
        }

        @Test("An image with exactly as many pixels as the limit passes, and 0 means no limit")
        func limit() throws {
            let image = TestImage.png(width: 300, height: 200)
            for (limit, status) in [("60000", 200), ("59999", 502), ("1", 502), ("0", 200)] {
                let stage = try Stage("--pixel-limit", limit)
                defer { withExtendedLifetime(stage) {} }
                let path = stage.origin.serve(image, fields: [lasting])
                let response = try stage.get(path)
                #expect(response.status == status && response.isWhole, "\(limit): \(response)")
                let again = try stage.get(path)
                #expect(again.isHit == (status == 200), "\(limit): \(again)")
            }
            let stage = try Stage("--pixel-limit", "0")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(Self.bomb, fields: [lasting])
            #expect(try stage.get(path).matches(Self.bomb))
        }

        @Test("An image with a content coding, whose pixels cannot be counted, is refused")
        func coded() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            for coding in ["gzip", "br", "identity, zstd"] {
                let fields = [lasting, "Content-Encoding: \(coding)"]
                stage.origin.on("/it", OriginResponse(Self.bomb, fields: fields))
                let response = try stage.get("/it")
                expectProblem(response, 502, coding)
                #expect(response.text.contains(":image-coded\""), "\(response)")
            }
            #expect(stage.fetches("/it") == 3)
            #expect(stage.node.metric("nuthatch_images_unfit_total{reason=\"coded\"}") == 3)
            expectNothingLeft(stage.node)
        }

        @Test("identity is no coding, and SVG may have one")
        func uncoded() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let small = TestImage.png(width: 3, height: 3)
            let plain = stage.origin.serve(small, fields: ["Content-Encoding: identity"])
            #expect(try stage.get(plain).matches(small))
            stage.origin.on(
                "/svg",
                .text(
                    "coded", contentType: "image/svg+xml",
                    fields: [lasting, "Content-Encoding: gzip"]))
            let drawing = try stage.get("/svg")
            #expect(drawing.status == 200 && drawing.text == "coded", "\(drawing)")
        }

        @Test("A setting lets images with a content coding pass unchecked")
        func codedByChoice() throws {
            let stage = try Stage("--coded-images", "on")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(Self.bomb, fields: [lasting, "Content-Encoding: gzip"])
            #expect(try stage.get(path).matches(Self.bomb))
            #expect(try stage.get(path).isHit)
        }

        @Test("A replacement above the limit is refused, and the stored image is dropped")
        func replaced() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.png(width: 3, height: 3)
            stage.origin.on("/it", OriginResponse(image, fields: ["Cache-Control: max-age=0"]))
            #expect(try stage.get("/it").matches(image))
            stage.origin.on("/it", OriginResponse(Self.bomb))
            expectRefused(try stage.get("/it"))
            expectNothingLeft(stage.node)
        }

        @Test("A lower limit applies to later fetches")
        func lowered() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let image = TestImage.png(width: 300, height: 200)
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            try stage.settle()
            try stage.restart(gently: true, "--pixel-limit", "100")
            let stored = try stage.get(path)
            #expect(stored.matches(image) && stored.detail == "disk", "\(stored)")
            #expect(try stage.get(path).detail == "memory")
            stage.origin.on("/other", OriginResponse(image, fields: [lasting]))
            expectProblem(try stage.get("/other"), 502)
        }
    }
}
