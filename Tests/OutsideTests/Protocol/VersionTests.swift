import Harness
import NIOPosix
import Testing

extension Outside {
    @Suite("Unusual versions and large heads")
    struct VersionTests {
        @Test(
            "RFC 9110 §2.5: a request in HTTP/1.2 is handled as HTTP/1.1 and keeps its connection"
        )
        func requests() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", .text("here", fields: [lasting]))
            let connection = try stage.node.connect()
            for minor in [2, 9] {
                try connection.socket.send(
                    "GET /it HTTP/1.\(minor)\r\nHost: \(SiteStage.host)\r\n\r\n")
                let response = connection.readResponse()
                #expect(response.status == 200 && response.text == "here", "\(response)")
                #expect(response.version == "HTTP/1.1")
            }
            #expect(stage.origin.requests("/it").first?.version == "HTTP/1.1")
        }

        @Test("A response in HTTP/1.2 is handled as HTTP/1.1, and is stored")
        func responses() async throws {
            let response =
                "HTTP/1.2 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok"
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton,
                [
                    .awaitRequestHead, .send(response), .awaitRequestHead, .send(response),
                    .awaitGate,
                ])
            let node = try NodeProcess(["--site", "a.example=http://127.0.0.1:\(origin.port)"])
            for path in ["/one", "/two"] {
                let response = try node.get(path, host: "a.example")
                #expect(response.status == 200 && response.text == "ok", "\(response)")
                #expect(response.version == "HTTP/1.1")
                #expect(try node.get(path, host: "a.example").isHit)
            }
            #expect(origin.connections == 1)
            try await origin.stop()
        }

        @Test("A head of 200 KB over HTTP/2 gets 431, and its connection stays open")
        func largeHead() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", .text("here"))
            let client = try HTTP2Client(port: stage.node.port)
            let lines = (0..<50).flatMap {
                FieldBlock.line("x-\($0)", String(repeating: "a", count: 4_000))
            }
            var block = FieldBlock.request(host: SiteStage.host) + lines
            #expect(block.count > 200_000)
            let stream = client.nextStreamID()
            var frames: [HTTP2Frame] = []
            while !block.isEmpty {
                let piece = Array(block.prefix(16_000))
                block.removeFirst(piece.count)
                let end = block.isEmpty ? HTTP2Frame.endHeaders : 0
                frames.append(
                    frames.isEmpty
                        ? HTTP2Frame(
                            .headers, flags: HTTP2Frame.endStream, stream: stream, payload: piece)
                        : HTTP2Frame(.continuation, flags: end, stream: stream, payload: piece))
            }
            try client.send(frames)
            let refused = try client.response(on: stream)
            #expect(refused.isWhole)
            #expect(String(decoding: refused.body, as: UTF8.self).contains("\"status\":431"))
            #expect(try client.get("/it", host: SiteStage.host).status == 200)
        }
    }
}
