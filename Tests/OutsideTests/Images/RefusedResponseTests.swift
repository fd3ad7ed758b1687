import Harness
import Testing

extension Outside {
    @Suite("Responses that are not stored as images")
    struct RefusedResponseTests {
        @Test(
            "A body above the object limit is passed through and not stored",
            arguments: [OriginResponse.Framing.length, .chunked(bytesMax: 10_000), .close])
        func aboveLimit(_ framing: OriginResponse.Framing) throws {
            let stage = try Stage("--object-limit", "100KiB")
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.jpeg, byteCount: 300_000, seed: 50)
            stage.origin.on("/it", OriginResponse(image, framing: framing, fields: [lasting]))
            for _ in 0..<2 {
                let response = try stage.get("/it")
                #expect(response.matches(image) && !response.isHit, "\(response)")
            }
            #expect(stage.fetches("/it") == 2)
        }

        @Test("A body of exactly the object limit is stored, and one byte more is not")
        func atLimit() throws {
            let stage = try Stage("--object-limit", "100KiB")
            defer { withExtendedLifetime(stage) {} }
            for (byteCount, fetches) in [(102_400, 1), (102_401, 2)] {
                let image = TestImage.generated(.png, byteCount: byteCount, seed: 51)
                let path = stage.origin.serve(image, fields: [lasting])
                #expect(try stage.get(path).matches(image))
                #expect(try stage.get(path).matches(image))
                #expect(stage.fetches(path) == fetches, "\(byteCount) bytes")
            }
        }

        @Test(
            "An error of the origin gives a problem and is not stored",
            arguments: [
                "403 Forbidden", "500 Internal Server Error", "503 Service Unavailable",
            ])
        func errors(_ status: String) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on("/it", .text("sorry", status: status, fields: [lasting]))
            expectProblem(try stage.get("/it"), 400...599, status)
            let image = TestImage.generated(.png, byteCount: 2_000, seed: 52)
            stage.origin.on("/it", OriginResponse(image, fields: [lasting]))
            #expect(try stage.get("/it").matches(image))
        }

        @Test(
            "A response that is no image gives a problem and is not stored",
            arguments: ["text/html", "application/json", "application/octet-stream"])
        func notAnImage(_ contentType: String) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on(
                "/it", .text("<p>hello</p>", contentType: contentType, fields: [lasting]))
            expectProblem(try stage.get("/it"), 400...599, contentType)
            expectProblem(try stage.get("/it"), 400...599, contentType)
            #expect(stage.fetches("/it") == 2)
        }

        @Test("A body that does not match its type is not stored")
        func wrongMagic() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on(
                "/it", .text("<html>hello</html>", contentType: "image/png", fields: [lasting]))
            _ = try stage.get("/it")
            _ = try stage.get("/it")
            #expect(stage.fetches("/it") == 2)
        }

        @Test(
            "A body that does not match its type is cut off for clients that need all of it",
            arguments: ["chunked ranged", "chunked 1.0", "length ranges", "close ranged"])
        func wrongMagicWaitedFor(_ kind: String) throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let page = TestImage(
                name: "page", contentType: kind.hasPrefix("close") ? "image/svg+xml" : "image/png",
                bytes: Array("<html>hello</html>".utf8))
            let framing: OriginResponse.Framing =
                kind.hasPrefix("chunked")
                ? .chunked(bytesMax: 5) : kind.hasPrefix("close") ? .close : .length
            let gate = Gate()
            stage.origin.on(
                "/it",
                OriginResponse(page, framing: framing, fields: [lasting]).stalling(
                    at: 5, .gate(gate))
            )
            let client = try stage.node.connect()
            switch kind {
            case "chunked 1.0":
                try client.socket.send("GET \(stage.target("/it")) HTTP/1.0\r\n\r\n")
            case "length ranges":
                try client.socket.send(
                    HTTPConnection.request(
                        stage.target("/it"), fields: ["Range: bytes=0-1,9-10"]))
            default:
                try client.socket.send(
                    HTTPConnection.request(stage.target("/it"), fields: ["Range: bytes=0-9"]))
            }
            #expect(gate.waitForArrivals())
            gate.open()
            let response = client.readResponse(seconds: 10)
            #expect(response.isWhole && response.matches(page), "\(response)")
            #expect(try stage.node.get("/healthz", seconds: 5).status == 200)
            #expect(stage.node.stop(seconds: 20) == 0)
        }

        @Test(
            "A response with private or no-store is delivered and not stored",
            arguments: ["no-store", "private", "max-age=60, private", "no-store, max-age=60"])
        func notShared(_ control: String) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.png, byteCount: 2_000, seed: 53)
            let path = stage.origin.serve(image, fields: ["Cache-Control: \(control)"])
            for _ in 0..<2 {
                let response = try stage.get(path)
                #expect(response.matches(image) && !response.isHit, "\(response)")
            }
            #expect(stage.fetches(path) == 2)
            #expect(stage.origin.log.allSatisfy { !$0.isConditional })
        }
    }
}
