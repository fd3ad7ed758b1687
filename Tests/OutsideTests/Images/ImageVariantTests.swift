import Harness
import Testing

extension Outside {
    @Suite("A response to one Accept is not used for another")
    struct ImageVariantTests {
        private let webp = TestImage.generated(.webp, byteCount: 9_000, seed: 901)
        private let vary = "Vary: Accept"
        private static let accepts = ["Accept: image/webp"]

        /// Returns a route that serves an image to clients that accept WebP, and `refusal` to
        /// others.
        private func route(
            _ refusal: OriginResponse, _ gate: Gate? = nil
        ) -> @Sendable (OriginRequest) -> OriginResponse {
            { [webp, vary] request in
                guard request.fields["Accept"]?.contains("webp") != true else {
                    return OriginResponse(webp, fields: [lasting, vary])
                }
                return gate.map { refusal.delayingHead(.gate($0)) } ?? refusal
            }
        }

        private func refusal(_ status: String, _ fields: String...) -> OriginResponse {
            OriginResponse(nil, status: status, fields: ["Content-Length: 0"] + fields)
        }

        @Test(
            "A refusal does not end the wait of requests with another Accept",
            arguments: ["403 Forbidden", "404 Not Found"])
        func refused(status: String) throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on("/it", route(refusal(status, vary), gate))
            let first = try stage.node.connect()
            try first.socket.send(
                HTTPConnection.request(stage.target("/it"), fields: ["Accept: image/png"]))
            #expect(gate.waitForArrivals())
            let second = try stage.node.connect()
            try second.socket.send(
                HTTPConnection.request(stage.target("/it"), fields: Self.accepts))
            expectSoon { stage.node.metric("nuthatch_waiters") == 2 }
            gate.open()
            #expect(400...499 ~= first.readResponse().status)
            let other = second.readResponse()
            #expect(other.matches(webp), "\(other)")
        }

        @Test("The same holds where another node owns the image")
        func refusedByOwner() throws {
            let stage = try ClusterStage(3)
            for index in stage.nodes.indices {
                let (path, gate) = ("/it\(index)", Gate())
                stage.origin.on(path, route(refusal("404 Not Found", vary), gate))
                let node = stage.nodes[index]
                let first = try node.connect()
                try first.socket.send(
                    HTTPConnection.request(stage.target(path), fields: ["Accept: image/png"]))
                #expect(gate.waitForArrivals())
                let second = try node.connect()
                try second.socket.send(
                    HTTPConnection.request(stage.target(path), fields: Self.accepts))
                expectSoon { node.metric("nuthatch_waiters") == 2 }
                gate.open()
                #expect(first.readResponse().status == 404)
                let other = second.readResponse()
                #expect(other.matches(webp), "\(other)")
            }
        }

        @Test("An earlier negative response hides no fresh variant")
        func forgotten() throws {
            let stage = try SettingsStage(opened + "images: {negative-ttl: {404: 1s}}\n")
            let coded = ["Accept: image/webp", "Accept-Encoding: gzip"]
            stage.origin.on("/it") { [webp, vary] request in
                request.fields["Accept-Encoding"] == "gzip"
                    ? OriginResponse(webp, fields: [lasting, "Vary: Accept, Accept-Encoding"])
                    : OriginResponse(
                        nil, status: "404 Not Found", fields: [vary, "Content-Length: 0"])
            }
            #expect(try stage.get("/it", fields: coded).matches(webp))
            #expect(try stage.get("/it", fields: Self.accepts).status == 404)
            stage.origin.on("/it", refusal("500 Internal Server Error"))
            try expectSoon { try stage.get("/it", fields: Self.accepts).status != 404 }
            let response = try stage.get("/it", fields: coded)
            #expect(response.matches(webp) && response.isHit, "\(response)")
        }

        @Test("A variant on disk is found, and a negative response for another Accept is not used")
        func onDisk() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            stage.origin.on("/it", route(refusal("404 Not Found")))
            let target = ImageRequestTarget.forURL(stage.origin.url("/it"))
            #expect(try stage.node.get(target, fields: Self.accepts).matches(webp))
            try stage.settle()
            try stage.restart()
            #expect(try stage.node.get(target).status == 404)
            let response = try stage.node.get(target, fields: Self.accepts)
            #expect(response.matches(webp) && response.detail == "disk", "\(response)")
            #expect(stage.fetches("/it") == 2)
        }

        @Test("A negative response is never written to disk, whatever it varies by")
        func inMemoryAlone() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            for number in 0..<20 {
                stage.origin.on("/\(number)", refusal("404 Not Found", "Vary: Accept-Encoding"))
                for _ in 0..<2 { #expect(try stage.get("/\(number)").status == 404) }
                #expect(stage.fetches("/\(number)") == 1)
            }
            try stage.settle()
            #expect(try stage.figure("nuthatch_disk_entries") == 0)
            // An image that later exists is there after a restart.
            stage.origin.on("/0", OriginResponse(webp, fields: [lasting, "Vary: Accept-Encoding"]))
            #expect(try stage.node.purge("{\"everything\": true}").isConfirmedByAll)
            #expect(try stage.get("/0", expecting: webp).matches(webp))
            try stage.settle()
            try stage.restart()
            #expect(try stage.get("/0", expecting: webp).detail == "disk")
        }

        @Test("A redirect's Vary appears once, however often the image is revalidated")
        func redirected() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on(
                "/it", refusal("302 Found", "Location: \(stage.origin.url("/there"))", vary))
            stage.origin.on("/there") { [webp] request in
                let fields = ["Cache-Control: max-age=0", "ETag: \"a\""]
                return request.isConditional
                    ? .notModified(fields) : OriginResponse(webp, fields: fields)
            }
            for _ in 0..<4 {
                let response = try stage.get("/it")
                #expect(response.matches(webp), "\(response)")
                #expect(response.fields.all("Vary") == ["Accept"], "\(response)")
            }
        }
    }
}
