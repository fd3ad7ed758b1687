import Harness
import Testing

extension Outside {
    @Suite("Images whose origin fails or no longer has them")
    struct FailingOriginTests {
        private let image = TestImage.generated(.jpeg, byteCount: 12_000, seed: 911)
        /// Fields of a response that is stored and revalidated on every request.
        private let stale = ["Cache-Control: max-age=0", "ETag: \"1\""]
        private let failing = OriginResponse(nil, status: "503 Service Unavailable")

        @Test(
            "A stale image is served while the origin fails, and reports it",
            arguments: [false, true])
        func standsIn(isGone: Bool) throws {
            let stage = try Stage()
            stage.origin.on("/it", OriginResponse(image, fields: stale))
            #expect(try stage.get("/it").matches(image))
            stage.origin.on("/it", isGone ? OriginResponse(image).truncatedInHead(.reset) : failing)
            for _ in 0..<2 {
                let response = try stage.get("/it", expecting: image)
                #expect(response.matches(image) && !response.isHit, "\(response)")
                #expect(response.cacheStatus["fwd"] == "stale" && response.detail == "stored")
                #expect(response.cacheStatus["fwd-status"] == (isGone ? nil : "503"))
            }
            #expect(try stage.get("/it", fields: ["If-None-Match: \"1\""]).status == 304)
            stage.origin.on("/it", OriginResponse(image, fields: [lasting]))
            #expect(try stage.get("/it").matches(image))
            #expect(try stage.get("/it").isHit)
        }

        @Test("No stale image is served if forbidden, purged, or without stale-if-error")
        func standsNotIn() throws {
            let stage = try SettingsStage(opened + "images:\n  grace: 0s\n")
            stage.origin.on("/it", OriginResponse(image, fields: stale))
            #expect(try stage.get("/it").matches(image))
            stage.origin.on("/it", failing)
            expectProblem(try stage.get("/it"), 502)
            try stage.change(opened + "images: {grace: 1h}\n")
            #expect(try stage.get("/it").matches(image))
            #expect(stage.node.lineCount(containing: "images, grace: 1h") == 1)
            let url = stage.origin.url("/it")
            #expect(try stage.node.purge("{\"url\":\"\(url)\"}").isConfirmedByAll)
            expectProblem(try stage.get("/it"), 502)

            stage.origin.on(
                "/strict",
                OriginResponse(image, fields: ["Cache-Control: max-age=0, must-revalidate"]))
            #expect(try stage.get("/strict").matches(image))
            stage.origin.on("/strict", failing)
            expectProblem(try stage.get("/strict"), 502)
        }

        @Test(
            "A missing image is remembered for a while",
            arguments: ["404 Not Found", "410 Gone"])
        func missing(status: String) throws {
            let stage = try Stage()
            stage.origin.on("/it", OriginResponse(nil, status: status))
            let first = try stage.get("/it")
            let code = first.status
            #expect(status.hasPrefix("\(code)"))
            #expect(first.cacheStatus["fwd-status"] == "\(code)", "\(first)")
            for method in ["GET", "HEAD", "GET"] {
                let response = try stage.get(
                    "/it", method: method, fields: ["Range: bytes=0-1", "If-None-Match: *"])
                #expect(response.status == code && response.isHit, "\(response)")
                if method == "GET" { expectProblem(response, code) }
                #expect(response.fields.all("Cache-Control") == ["no-store"])
            }
            #expect(stage.fetches("/it") == 1)
            let url = stage.origin.url("/it")
            #expect(try stage.node.purge("{\"url\":\"\(url)\"}").isConfirmedByAll)
            stage.origin.on("/it", OriginResponse(image, fields: [lasting]))
            #expect(try stage.get("/it").matches(image))
            #expect(stage.fetches("/it") == 2)
        }

        @Test("A missing image for one Accept says nothing about another")
        func variants() throws {
            let stage = try Stage()
            let none = OriginResponse(
                nil, status: "404 Not Found", fields: ["Vary: Accept", lasting, "Cache-Tag: t1"])
            let image = OriginResponse(image, fields: ["Vary: Accept", lasting])
            stage.origin.on("/it") { request in
                request.fields["Accept"]?.contains("image/avif") == true ? image : none
            }
            let (modern, plain) = (["Accept: image/avif,image/*"], ["Accept: image/png"])
            for round in 0..<3 {
                let missing = try stage.get("/it", fields: plain)
                expectProblem(missing, 404)
                let found = try stage.get("/it", fields: modern, expecting: self.image)
                #expect(found.matches(self.image), "\(found)")
                #expect(missing.isHit == (round > 0) && found.isHit == (round > 0))
            }
            #expect(stage.fetches("/it") == 2)
            #expect(try stage.node.purge("{\"tag\":\"t1\"}").isConfirmedByAll)
            #expect(try stage.get("/it", fields: modern).isHit)
            #expect(!(try stage.get("/it", fields: plain)).isHit)
            #expect(stage.fetches("/it") == 3)
        }

        @Test("A refusal by the origin invalidates stale copies, but an overload response does not")
        func refused() throws {
            let stage = try Stage()
            for (path, status, stands) in [
                ("/403", "403 Forbidden", false), ("/404", "404 Not Found", false),
                ("/429", "429 Too Many Requests", true),
            ] {
                stage.origin.on(path, OriginResponse(image, fields: stale))
                #expect(try stage.get(path).matches(image))
                let none = OriginResponse(nil, status: status, fields: ["Cache-Control: no-store"])
                stage.origin.on(path, none)
                expectProblem(try stage.get(path), 400...499, path)
                stage.origin.on(path, failing)
                let response = try stage.get(path)
                #expect(response.matches(image) == stands, "\(path): \(response)")
            }
            stage.origin.on("/text", OriginResponse(image, fields: stale))
            #expect(try stage.get("/text").matches(image))
            stage.origin.on("/text", .text("text"))
            expectProblem(try stage.get("/text"), 502)
            stage.origin.on("/text", failing)
            expectProblem(try stage.get("/text"), 502)
        }

        @Test("Other failures, and responses with no-store, are not remembered")
        func forgotten() throws {
            let stage = try Stage()
            let responses: [(status: String, fields: [String])] = [
                ("403 Forbidden", [lasting]), ("500 Internal Server Error", [lasting]),
                ("404 Not Found", ["Cache-Control: no-store"]),
                ("404 Not Found", ["Cache-Control: private, max-age=60"]),
            ]
            for (number, (status, fields)) in responses.enumerated() {
                let path = "/\(number)"
                stage.origin.on(path, OriginResponse(nil, status: status, fields: fields))
                for _ in 0..<2 { expectProblem(try stage.get(path), 400...599, status) }
                #expect(stage.fetches(path) == 2)
            }
        }

        @Test("Waiting clients get the negative response, and the configuration sets its lifetime")
        func settings() throws {
            let stage = try SettingsStage(opened + "images: {negative-ttl: {403: 1h}}\n")
            stage.origin.on("/no", OriginResponse(nil, status: "403 Forbidden"))
            stage.origin.on("/none", OriginResponse(nil, status: "404 Not Found"))
            for path in ["/no", "/none"] {
                for _ in 0..<3 { expectProblem(try stage.get(path), 400...499) }
            }
            #expect(stage.origin.requests("/no").count == 1)
            #expect(stage.origin.requests("/none").count == 3)
            let shown = try stage.node.document("/admin/v1/configuration")
            #expect(shown["images"] as? [String: String] == ["negative-ttl": "{403: 1h}"])
            let refused = try stage.reload(opened + "images: {grase: 1h, host: client}\n")
            #expect(
                refused.contains("grase") && refused.contains("perhaps grace"), "\(refused)")
            for status in [200, 407, 429, 503] {
                let text = opened + "images: {negative-ttl: {404: 1s, \(status): 5s}}\n"
                let failure = try stage.reload(text)
                #expect(failure.contains("images: negative-ttl"), "\(failure)")
                #expect(failure.contains("\(status)") && failure.contains("400"), "\(failure)")
            }
        }

        @Test("After the negative response expires, the origin gets an unconditional request")
        func expired() throws {
            let stage = try SettingsStage(opened + "images: {negative-ttl: {404: 1s}}\n")
            stage.origin.on("/it", OriginResponse(nil, status: "404 Not Found"))
            expectProblem(try stage.get("/it"), 404)
            stage.origin.on("/it", OriginResponse(image, fields: [lasting]))
            var response = try stage.get("/it")
            let isAsked = try Deadline.seconds(30).waitUntil {
                if response.isHit { response = try stage.get("/it") }
                return !response.isHit
            }
            #expect(isAsked && response.matches(image), "\(response)")
            #expect(response.cacheStatus["fwd"] == "uri-miss", "\(response)")
            #expect(stage.origin.requests("/it").allSatisfy { !$0.isConditional })
        }

        @Test("Within stale-while-revalidate a stale image is served at once and revalidated once")
        func whileRevalidate() throws {
            let stage = try Stage()
            let gate = Gate()
            let fields = ["Cache-Control: max-age=0, stale-while-revalidate=600", "ETag: \"1\""]
            stage.origin.on("/it", OriginResponse(image, fields: fields))
            #expect(try stage.get("/it").matches(image))
            stage.origin.on("/it", OriginResponse.notModified([lasting]).delayingHead(.gate(gate)))
            for _ in 0..<5 {
                let response = try stage.get("/it", expecting: image)
                #expect(response.matches(image) && response.isHit, "\(response)")
            }
            #expect(gate.waitForArrivals())
            #expect(stage.fetches("/it") == 2)
            #expect(stage.origin.requests("/it").last?.fields["If-None-Match"] == "\"1\"")
            gate.open()
            try expectSoon { (Int(try stage.get("/it").cacheStatus["ttl"] ?? "") ?? 0) > 0 }
            #expect(stage.fetches("/it") == 2)
        }

        @Test("Cache-Status of every error describes the origin request")
        func status() throws {
            let stage = try Stage()
            stage.origin.on("/it", failing)
            let failed = try stage.get("/it")
            #expect(failed.cacheStatus["fwd"] == "uri-miss", "\(failed)")
            #expect(failed.cacheStatus["fwd-status"] == "503" && failed.detail == "origin")
            let malformed = try stage.node.get("/v1/image?url=nonsense")
            #expect(malformed.status == 400)
            #expect(malformed.fields.all("Cache-Status") == ["nuthatch"], "\(malformed)")
        }
    }
}
