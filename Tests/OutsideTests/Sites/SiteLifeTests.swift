import Harness
import Testing

extension Outside {
    @Suite("Life of a site's stored responses")
    struct SiteLifeTests {
        @Test("Responses, variants and their fields survive a restart")
        func restart() throws {
            let stage = try SiteStage("--disk-limit", "64MiB", keepsDisk: true)
            stage.origin.on("/it") { request in
                .text(
                    "of \(request.fields["Foo"] ?? "nobody")",
                    fields: [lasting, "Vary: Foo", "X-Odd: kept", "ETag: \"a\""])
            }
            stage.origin.on("/plain", .text("plain", status: "404 Not Found", fields: [lasting]))
            for value in ["1", "2"] { _ = try stage.get("/it", fields: ["Foo: \(value)"]) }
            _ = try stage.get("/plain?a=b")
            // A Vary record, its two variants, and the plain response.
            try stage.settle(entries: 4)
            try stage.restart()
            for value in ["1", "2"] {
                let response = try stage.get("/it", fields: ["Foo: \(value)"])
                #expect(response.isHit && response.text == "of \(value)", "\(response)")
                #expect(response["X-Odd"] == "kept" && response["Vary"] == "Foo")
            }
            let plain = try stage.get("/plain?a=b")
            #expect(plain.status == 404 && plain.isHit && plain.text == "plain", "\(plain)")
            #expect(stage.fetches("/it") == 2 && stage.fetches("/plain") == 1)
        }

        @Test("Large variants are served from disk, each to the clients that requested it")
        func largeVariants() throws {
            let stage = try SiteStage("--disk-limit", "256MiB", keepsDisk: true)
            let images = [505, 506].map {
                TestImage.generated(.png, byteCount: 2 << 20, seed: $0)
            }
            stage.origin.on("/it") { request in
                OriginResponse(
                    images[request.fields["Foo"] == "1" ? 1 : 0], fields: [lasting, "Vary: Foo"])
            }
            for value in 0...1 { _ = try stage.get("/it", fields: ["Foo: \(value)"]) }
            try stage.settle(entries: 3)
            try stage.restart()
            let plans = (0..<40).map { number in
                SwarmClientPlan(
                    "/it", host: SiteStage.host, fields: ["Foo: \(number % 2)"],
                    expecting: images[number % 2])
            }
            let responses = ClientSwarm(port: stage.node.port, plans).responses()
            for (number, response) in responses.enumerated() {
                #expect(response.matches(images[number % 2]), "\(number): \(response)")
            }
            #expect(stage.fetches("/it") == 2)
        }

        @Test(
            "RFC 5861 §3: a large body on disk is served stale, and revalidated in the background"
        )
        func largeStale() throws {
            let stage = try SiteStage("--disk-limit", "256MiB", keepsDisk: true)
            let image = TestImage.generated(.png, byteCount: 2 << 20, seed: 507)
            let fields = ["Cache-Control: max-age=10, stale-while-revalidate=1000", "Age: 100"]
            stage.origin.on("/it", OriginResponse(image, fields: fields))
            #expect(try stage.get("/it").matches(image))
            try stage.settle(entries: 1)
            try stage.restart()
            let gate = Gate()
            stage.origin.on("/it", OriginResponse(image, fields: fields).delayingHead(.gate(gate)))
            let response = try stage.get("/it")
            #expect(response.matches(image) && response.isHit, "\(response)")
            #expect(gate.waitForArrivals())
            #expect(stage.fetches("/it") == 2)
            gate.open()
        }

        @Test("Invalidations by POST just before the node is stopped survive the restart")
        func invalidated() throws {
            let stage = try SiteStage("--disk-limit", "64MiB", keepsDisk: true)
            let paths = (1...30).map { "/it/\($0)" }
            for path in paths {
                stage.origin.on(path) { .text($0.method, fields: [lasting]) }
                _ = try stage.get(path)
            }
            try stage.settle(entries: paths.count)
            for path in paths {
                #expect(try stage.send("POST", path, body: "x").text == "POST")
            }
            try stage.restart(inOrder: true)
            for path in paths {
                #expect(try stage.get(path).text == "GET")
                #expect(stage.fetches(path) == 3, "\(path)")
            }
        }

        @Test("A response stored under stale-if-error is served when the origin is down")
        func originGone() throws {
            let stage = try SiteStage()
            let granted = ["Cache-Control: max-age=10, stale-if-error=1000", "Age: 100"]
            stage.origin.on("/granted", .text("old", fields: granted))
            stage.origin.on(
                "/not", .text("old", fields: ["Cache-Control: max-age=10", "Age: 100"]))
            stage.origin.on(
                "/never",
                .text("old", fields: ["Cache-Control: max-age=10, must-revalidate", "Age: 100"]))
            stage.origin.on("/fresh", .text("new", fields: [lasting]))
            for path in ["/granted", "/not", "/never", "/fresh"] { _ = try stage.get(path) }
            stage.origin.stop()
            #expect(try stage.get("/granted").text == "old")
            #expect(try stage.get("/fresh").isHit)
            expectProblem(try stage.get("/not"), 502...504)
            expectProblem(try stage.get("/never"), 504)
            expectProblem(try stage.get("/cold"), 502...504)
        }

        @Test("A site beside images: their entries are separate")
        func besideImages() throws {
            let stage = try SiteStage("--allow-origin", "*")
            let image = TestImage.generated(.png, byteCount: 5_000, seed: 504)
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            let byURL = try stage.node.get(ImageRequestTarget.forURL(stage.origin.url(path)))
            #expect(byURL.matches(image) && !byURL.isHit)
            #expect(stage.fetches(path) == 2)
            #expect(try stage.get(path).isHit)
            #expect(try stage.node.get(ImageRequestTarget.forURL(stage.origin.url(path))).isHit)
        }

        @Test("A site's path that looks like the image interface belongs to the site")
        func imagePath() throws {
            let stage = try SiteStage()
            stage.origin.on("/v1/image", .text("the site's", fields: [lasting]))
            let response = try stage.get("/v1/image?url=http://elsewhere.example/a.png")
            #expect(response.text == "the site's", "\(response)")
        }

        @Test("Descriptors and memory of passed responses are released")
        func nothingIsLeft() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", .text("mine", fields: ["Cache-Control: no-store"]))
            for _ in 0..<200 { _ = try stage.get("/it") }
            expectSoon(20) {
                stage.node.metric("nuthatch_fills_in_flight") == 0
                    && stage.node.metric("nuthatch_waiters") == 0
            }
            #expect(stage.node.descriptorCount < 100)
            #expect(stage.fetches("/it") == 200)
        }
    }
}
