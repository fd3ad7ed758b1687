import Harness
import Testing

extension Outside {
    @Suite("Browsers do not execute served content")
    struct ContentTypeTests {
        private static let policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

        private static let svg = TestImage.generated(.svg, byteCount: 3_000, seed: 360)
        private static let json = text("data", "application/json", "{\"a\": [1, 2, 3]}")
        private static let page = text("page", "text/html", "<script>alert(1)</script>")
        private static let unknown = text("unknown", "image/x-any", "<svg onload='alert(1)'/>")

        private static func text(_ name: String, _ type: String, _ text: String) -> TestImage {
            TestImage(name: name, contentType: type, bytes: Array(text.utf8))
        }

        /// Response fields of the origin that contradict the safety fields.
        private static let contrary = [
            "Content-Security-Policy: script-src 'unsafe-inline' *",
            "X-Content-Type-Options: sniff", "Content-Disposition: inline; filename=a.txt",
        ]

        private func expectGuards(
            _ response: Response, _ status: Int, of image: TestImage, isDocument: Bool,
            at location: SourceLocation = #_sourceLocation
        ) {
            #expect(response.status == status && response.isWhole, sourceLocation: location)
            #expect(
                response.fields.all("Content-Security-Policy") == [Self.policy],
                "\(image) \(response)", sourceLocation: location)
            #expect(
                response.fields.all("X-Content-Type-Options") == ["nosniff"],
                "\(image) \(response)", sourceLocation: location)
            guard status != 304 else { return }
            let disposition = (isDocument ? "attachment" : "inline") + "; filename=a.txt"
            #expect(
                response.fields.all("Content-Disposition") == [disposition],
                "\(image) \(response)", sourceLocation: location)
        }

        @Test("Safety fields are set from origin, memory and disk: complete, in part, not modified")
        func guards() throws {
            let stage = try DiskStage(
                "--disk-limit", "64MiB", "--allow-type", "application/json", "--allow-type",
                "text/html")
            for (image, isDocument) in [
                (Self.svg, false), (Self.unknown, false), (Self.json, true), (Self.page, true),
            ] {
                let path = stage.origin.serve(
                    image, fields: [lasting] + Self.contrary, etag: "\"a\"")
                let target = ImageRequestTarget.forURL(stage.origin.url(path))
                for detail in ["origin", "memory", "disk"] {
                    let whole = try stage.get(path)
                    #expect(whole.matches(image) && whole.detail == detail, "\(whole)")
                    expectGuards(whole, 200, of: image, isDocument: isDocument)
                    guard detail != "origin" else { continue }
                    for (status, method, fields) in [
                        (200, "HEAD", []), (206, "GET", ["Range: bytes=1-3"]),
                        (206, "GET", ["Range: bytes=1-3,6-9"]),
                        (304, "GET", ["If-None-Match: \"a\""]),
                    ] {
                        let response = try stage.node.get(target, method: method, fields: fields)
                        #expect(response.isHit, "\(response)")
                        expectGuards(response, status, of: image, isDocument: isDocument)
                    }
                    try stage.settle()
                    if detail == "memory" { try stage.restart(gently: true) }
                }
                #expect(stage.fetches(path) == 1)
            }
        }

        @Test("Safety fields are set on a range and a 304 of an image that is not stored yet")
        func coldGuards() throws {
            let stage = try Stage("--allow-type", "text/html")
            defer { withExtendedLifetime(stage) {} }
            for (image, isDocument) in [(Self.svg, false), (Self.page, true)] {
                for (status, fields) in [
                    (206, "Range: bytes=1-3"), (206, "Range: bytes=1-3,6-9"),
                    (304, "If-None-Match: \"a\""),
                ] {
                    let path = "/\(stage.origin.log.count)"
                    stage.origin.on(
                        path,
                        OriginResponse(image, fields: [lasting, "ETag: \"a\""] + Self.contrary))
                    let response = try stage.get(path, fields: [fields])
                    expectGuards(response, status, of: image, isDocument: isDocument)
                }
            }
        }

        @Test("A 304 of the origin does not remove the safety fields")
        func freshened() throws {
            let stage = try Stage("--allow-type", "text/html")
            defer { withExtendedLifetime(stage) {} }
            for (image, isDocument) in [(Self.svg, false), (Self.page, true)] {
                let path = stage.origin.serve(
                    image, fields: ["Cache-Control: max-age=0"] + Self.contrary, etag: "\"a\"")
                for _ in 0..<3 {
                    let response = try stage.get(path)
                    #expect(response.matches(image))
                    expectGuards(response, 200, of: image, isDocument: isDocument)
                }
                #expect(stage.origin.requests(path).map(\.isConditional) == [false, true, true])
            }
        }

        @Test("An added type is served, in any case and with parameters")
        func allowed() throws {
            let stage = try Stage("--allow-type", "application/json")
            defer { withExtendedLifetime(stage) {} }
            for type in ["application/json", "Application/JSON; charset=utf-8"] {
                let body = Self.text("it-\(type.count)", type, "[]")
                let path = stage.origin.serve(body, fields: [lasting])
                #expect(try stage.get(path).matches(body))
                let hit = try stage.get(path)
                #expect(hit.matches(body) && hit.isHit && hit["Content-Type"] == type, "\(hit)")
            }
            for type in ["application/jso", "application/json2", "text/html"] {
                stage.origin.on("/no", .text("[]", contentType: type, fields: [lasting]))
                expectProblem(try stage.get("/no"), 502, type)
            }
        }

        @Test("Raster images have the origin's type and are not sniffed")
        func pixels() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            for kind in TestImage.Kind.allCases where kind != .svg {
                let image = TestImage.generated(kind, byteCount: 900, seed: 361)
                let path = stage.origin.serve(image, fields: [lasting] + Self.contrary)
                for _ in 0..<2 {
                    let response = try stage.get(path)
                    #expect(response.matches(image))
                    #expect(response["Content-Security-Policy"] == nil, "\(response)")
                    #expect(response.fields.all("X-Content-Type-Options") == ["nosniff"])
                    #expect(response["Content-Disposition"] == "inline; filename=a.txt")
                }
            }
        }
    }
}
