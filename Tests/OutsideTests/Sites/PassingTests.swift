import Harness
import NIOPosix
import Testing

extension Outside {
    @Suite("Requests and responses passed through a site")
    struct PassingTests {
        private let large = TestImage.generated(.jpeg, byteCount: 50_000_000, seed: 501)
        private let pieceBytesMax = 1_000_000

        /// Returns the image in pieces, chunked or not.
        private func pieces(inChunks: Bool) -> [[UInt8]] {
            stride(from: 0, to: large.byteCount, by: pieceBytesMax).map { start in
                let piece = large.bytes(start..<min(start + pieceBytesMax, large.byteCount))
                guard inChunks else { return piece }
                let size = String(piece.count, radix: 16)
                return Array("\(size)\r\n".utf8) + piece + Array("\r\n".utf8)
            }
        }

        @Test("A POST of 50 MB streams to the origin, and its response of 50 MB streams back")
        func largeBodies() throws {
            for isChunked in [false, true] {
                let stage = try SiteStage()
                stage.origin.expectBody(large, at: "/it")
                stage.origin.on("/it", OriginResponse(large))
                let framing =
                    isChunked
                    ? "Transfer-Encoding: chunked" : "Content-Length: \(large.byteCount)"
                let connection = try stage.node.connect()
                try connection.socket.send(
                    HTTPConnection.request(
                        "/it", method: "POST", host: SiteStage.host, fields: [framing]))
                let pieces = pieces(inChunks: isChunked)
                for (index, piece) in pieces.enumerated() {
                    try connection.socket.send(piece)
                    // Half of it must have arrived before the rest is sent.
                    if index == pieces.count / 2 {
                        #expect(stage.origin.waitForBody(large.byteCount / 3, "/it"))
                    }
                }
                if isChunked { try connection.socket.send("0\r\n\r\n") }
                let response = connection.readResponse(method: "POST", expecting: large)
                #expect(response.matches(large), "\(response)")
                let request = try #require(stage.origin.requests("/it").first)
                let body = stage.origin.body(of: request)
                #expect(body.isComplete && body.isAsExpected)
                #expect(body.byteCount == large.byteCount)
                #expect(stage.node.residentBytesMax < 600_000_000)
            }
        }

        @Test("A response that refuses a body arrives before the body is sent")
        func earlyRefusal() throws {
            let stage = try SiteStage("--origin-circuit-failures", "0")
            let connection = try stage.node.connect()
            stage.origin.on("/it", .text("no", status: "413 Content Too Large"))
            try connection.socket.send(
                HTTPConnection.request(
                    "/it", method: "POST", host: SiteStage.host,
                    fields: ["Content-Length: 10"]) + Array("0123456789".utf8))
            let response = connection.readResponse(method: "POST")
            #expect(response.status == 413 && response.text == "no", "\(response)")
        }

        @Test("Interim responses reach the client before the final response")
        func interim() async throws {
            let early = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
            let last = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\n\r\nok"
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton,
                [.awaitRequestHead, .send(early), .awaitGate, .send(last), .awaitGate])
            let node = try NodeProcess(["--site", "a.example=http://127.0.0.1:\(origin.port)"])
            let connection = try node.connect()
            try connection.socket.send(HTTPConnection.request("/it", host: "a.example"))
            #expect(connection.socket.waitForInput(seconds: 30))
            origin.openGate()
            let response = connection.readResponse()
            #expect(response.status == 200 && response.text == "ok", "\(response)")
            #expect(response.interim == [103])
            #expect(response.interimFields.first?["Link"] == "</a.css>; rel=preload")
            #expect(try node.get("/it", host: "a.example").isHit)
            try await origin.stop()
        }

        @Test("A body reaches the client as the origin sends it")
        func streamedDown() throws {
            let stage = try SiteStage()
            let gate = Gate()
            let image = TestImage.generated(.png, byteCount: 400_000, seed: 502)
            stage.origin.on(
                "/it",
                OriginResponse(image, fields: [lasting]).stalling(at: 200_000, .gate(gate)))
            let connection = try stage.node.connect()
            try connection.socket.send(HTTPConnection.request("/it", host: SiteStage.host))
            #expect(gate.waitForArrivals())
            #expect(connection.socket.waitForInput(seconds: 30))
            gate.open()
            #expect(connection.readResponse(expecting: image).matches(image))
        }

        @Test("A POST is not retried when its connection is lost")
        func notRepeated() async throws {
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton,
                [
                    .awaitRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
                    .awaitRequestHead,
                    .close,
                ], [.awaitRequestHead, .close])
            let node = try NodeProcess(["--site", "a.example=http://127.0.0.1:\(origin.port)"])
            #expect(try node.get("/first", host: "a.example").text == "ok")
            let connection = try node.connect()
            try connection.socket.send(
                HTTPConnection.request(
                    "/it", method: "POST", host: "a.example", fields: ["Content-Length: 1"])
                    + Array("x".utf8))
            let response = connection.readResponse(method: "POST")
            expectProblem(response, 502)
            #expect(origin.requests.count { $0.hasPrefix("POST") } == 1, "\(origin.requests)")
            try await origin.stop()
        }

        @Test("A site supports HTTP/1.0 clients: no chunks, no interim responses")
        func oldClients() throws {
            let stage = try SiteStage()
            stage.origin.on(
                "/it",
                OriginResponse(
                    TestImage.generated(.png, byteCount: 30_000, seed: 503),
                    framing: .chunked(bytesMax: 10_000)))
            let connection = try stage.node.connect()
            try connection.socket.send("GET /it HTTP/1.0\r\nHost: \(SiteStage.host)\r\n\r\n")
            let response = connection.readResponse()
            #expect(response.status == 200 && response.isWhole, "\(response)")
            #expect(response["Transfer-Encoding"] == nil && response.bodyByteCount == 30_000)
        }
    }
}
