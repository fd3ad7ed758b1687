import Harness
import Testing

extension Outside {
    @Suite("Client connections")
    struct ConnectionTests {
        private let image = TestImage.generated(.gif, byteCount: 3_000, seed: 90)

        /// Starts a node that can fetch the image, and returns its request target.
        private func stage() throws -> (Stage, String) {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            return (stage, stage.target(path))
        }

        @Test("Health and readiness respond")
        func health() throws {
            let node = try NodeProcess()
            for path in ["/healthz", "/readyz"] {
                #expect(try node.get(path).status == 200)
                let head = try node.get(path, method: "HEAD")
                #expect(head.status == 200 && head.isWhole && head.bodyByteCount == 0)
            }
        }

        @Test("A connection serves a hundred requests")
        func keepAlive() throws {
            let (stage, target) = try stage()
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            for _ in 0..<100 { #expect(try connection.get(target).matches(image)) }
        }

        @Test("Fifty requests in one write get responses in order, hits and misses mixed")
        func pipelining() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let images = (0..<50).map {
                TestImage.generated(.png, byteCount: 500 + $0 * 400, seed: UInt64($0))
            }
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            for index in stride(from: 0, to: 50, by: 3) { _ = try stage.get(paths[index]) }
            let connection = try stage.node.connect()
            try connection.socket.send(paths.flatMap { HTTPConnection.request(stage.target($0)) })
            for image in images {
                let response = connection.readResponse()
                #expect(response.matches(image), "\(image): \(response)")
            }
            #expect(paths.allSatisfy { stage.fetches($0) == 1 })
        }

        @Test("More pipelined requests than the limit all get responses in order")
        func pipelineLimit() throws {
            let stage = try Stage("--pipeline-limit", "4KiB")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            let connection = try stage.node.connect()
            let request = HTTPConnection.request(stage.target(path))
            try connection.socket.send((0..<200).flatMap { _ in request })
            for _ in 0..<200 { #expect(connection.readResponse().matches(image)) }
        }

        @Test("A request in single bytes is handled like one in a single piece")
        func dribbled() throws {
            let (stage, target) = try stage()
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            for byte in HTTPConnection.request(target) { try connection.socket.send([byte]) }
            #expect(connection.readResponse().matches(image))
        }

        @Test("An empty line before a request and an absolute-form target are accepted")
        func tolerance() throws {
            let (stage, target) = try stage()
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            try connection.socket.send("\r\nGET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(connection.readResponse().matches(image))
            let absolute = "GET http://localhost\(target) HTTP/1.1\r\nHost: localhost\r\n\r\n"
            try connection.socket.send(absolute)
            #expect(connection.readResponse().matches(image))
        }

        @Test("HTTP/1.0 gets a complete response without chunks and a closed connection")
        func http10() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            for framing in [OriginResponse.Framing.length, .chunked(bytesMax: 700)] {
                let path = "/\(stage.origin.log.count)"
                stage.origin.on(path, OriginResponse(image, framing: framing, fields: [lasting]))
                for _ in 0..<2 {
                    let connection = try stage.node.connect()
                    try connection.socket.send("GET \(stage.target(path)) HTTP/1.0\r\n\r\n")
                    let response = connection.readResponse()
                    #expect(response.matches(image), "\(response)")
                    #expect(response["Transfer-Encoding"] == nil)
                    #expect(connection.waitForEnd() == .truncated)
                }
            }
        }

        @Test("Connection: close is honoured and returned")
        func close() throws {
            let (stage, target) = try stage()
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            let response = try connection.get(target, fields: ["Connection: close"])
            #expect(response.matches(image))
            #expect(response["Connection"]?.lowercased() == "close")
            #expect(connection.waitForEnd() == .truncated)
        }

        @Test("A client that has shut down its sending side still gets its response")
        func halfClosed() throws {
            let (stage, target) = try stage()
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            try connection.socket.send(HTTPConnection.request(target))
            connection.socket.finishSending()
            #expect(connection.readResponse().matches(image))
        }

        static let bodies: [[String]] = [
            ["Content-Length: 22\r\n\r\n", "GET /evil HTTP/1.1\r\n\r\n"],
            [
                "Transfer-Encoding: chunked\r\n\r\n",
                "16\r\nGET /evil HTTP/1.1\r\n\r\n\r\n0\r\n\r\n",
            ],
            [
                "Transfer-Encoding: chunked\r\n\r\n",
                "3;a=b\r\nabc\r\n0\r\nTrailer: x\r\n\r\n",
            ],
            ["Content-Length: 0\r\n\r\n", ""],
        ]

        @Test("A body on GET is skipped and the next request is read where it begins")
        func bodies() throws {
            let (stage, target) = try stage()
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            for body in Self.bodies {
                let head = "GET \(target) HTTP/1.1\r\nHost: localhost\r\n"
                try connection.socket.send(head + body.joined())
                #expect(connection.readResponse().matches(image), "\(body)")
                try connection.socket.send(HTTPConnection.request("/healthz"))
                #expect(connection.readResponse().status == 200, "\(body)")
            }
            #expect(stage.origin.log.count == 1)
        }

        @Test("A client that expects 100 gets it, or the final response at once")
        func expectContinue() throws {
            let (stage, target) = try stage()
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            try connection.socket.send(
                "GET \(target) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                    + "Expect: 100-continue\r\n\r\n")
            #expect(connection.socket.waitForInput(seconds: 30))
            try connection.socket.send("hello")
            let response = connection.readResponse()
            #expect(response.matches(image), "\(response)")
            #expect(response.interim.allSatisfy { $0 == 100 } && response.interim.count <= 1)
            if response["Connection"]?.lowercased() != "close" {
                #expect(try connection.get(target).matches(image))
            }
        }
    }
}
