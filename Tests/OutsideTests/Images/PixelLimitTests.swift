import Harness
import Testing

extension Outside {
    @Suite("Images of more pixels than are allowed")
    struct PixelLimitTests {
        /// 2³¹ pixels in 5 MB, which nobody has to send to the end.
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

        /// Nothing of a fetch is left once its readers are served.
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
            "One is refused before it has come, is not stored, and leaves nothing behind",
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
            // Lines are written behind the answers.
            expectSoon(30, "\(stage.node.output)") {
                stage.node.lineCount(containing: "origin answer refused", "/it") == 2
            }
        }

        @Test("What little there is to come of one is read, and its connection used again")
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

        @Test("Whatever is asked of one, and however, the answer is the same")
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

        @Test("Everybody who waits for one is told")
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

        @Test("It is the bytes that say how many pixels there are, and not the type")
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

        @Test("A limit is met by what has as many pixels, and 0 is none")
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

        @Test("A coded image, whose pixels nobody can count, is refused and not kept")
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

        @Test("identity is no coding, and SVG may be coded")
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

        @Test("A setting lets coded images pass unseen")
        func codedByChoice() throws {
            let stage = try Stage("--coded-images", "on")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(Self.bomb, fields: [lasting, "Content-Encoding: gzip"])
            #expect(try stage.get(path).matches(Self.bomb))
            #expect(try stage.get(path).isHit)
        }

        @Test("What takes the place of a stored image is refused, and the old one is gone")
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

        @Test("A lower limit is for what is fetched from then on")
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
