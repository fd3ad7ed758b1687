import Harness
import NIOPosix
import Testing

extension Outside {
    @Suite("Bytes after a complete response")
    struct OverrunTests {
        private static let ok = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"

        /// Starts a node in front of an origin with one script per connection.
        private func play(
            _ scripts: [[ByteOrigin.Step]], _ test: (NodeProcess, ByteOrigin) throws -> Void
        ) async throws {
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton, scripts: scripts)
            let node = try NodeProcess(["--site", "a.example=http://127.0.0.1:\(origin.port)"])
            try test(node, origin)
            try await origin.stop()
        }

        @Test(
            "RFC 9112 §6.3: the response is valid and stored; its connection is not reused",
            arguments: [
                ("Content-Length: 5\r\n\r\n", "hello", "\r\n"),
                ("Content-Length: 5\r\n\r\n", "hello", "HTTP/1.1 200 OK\r\n\r\n"),
                ("Transfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "\r\n"),
            ])
        func stored(fields: String, body: String, behind: String) async throws {
            let next = Self.ok + "Content-Length: 4\r\n\r\nnext"
            try await play(
                [
                    [
                        .awaitRequestHead, .send(Self.ok + fields + body + behind),
                        .awaitRequestHead, .awaitGate,
                    ],
                    [.awaitRequestHead, .send(next), .awaitGate],
                ]
            ) { node, origin in
                let response = try node.get("/it", host: "a.example")
                #expect(response.status == 200 && response.text == "hello", "\(response)")
                #expect(try node.get("/it", host: "a.example").isHit)
                #expect(try node.get("/next", host: "a.example").text == "next")
                #expect(origin.connections == 2)
                #expect(node.metric("nuthatch_origin_overruns_total") == 1)
            }
        }

        @Test(
            "Responses without body end at their heads, whatever bytes the origin sends after them"
        )
        func bodiless() async throws {
            for (method, response, status) in [
                ("GET", "HTTP/1.1 204 No Content\r\n\r\nhello", 204),
                ("GET", "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", 204),
                ("GET", "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 204),
                ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200),
            ] {
                try await play(
                    [
                        [.awaitRequestHead, .send(response), .awaitRequestHead, .awaitGate],
                        [
                            .awaitRequestHead, .send(Self.ok + "Content-Length: 4\r\n\r\nnext"),
                            .awaitGate,
                        ],
                    ]
                ) { node, origin in
                    let response = try node.get("/it", method: method, host: "a.example")
                    #expect(response.status == status && response.isWhole, "\(response)")
                    #expect(try node.get("/next", host: "a.example").text == "next", "\(response)")
                    #expect(origin.connections == 2, "\(response)")
                }
            }
        }

        @Test("A 304 with a body after it confirms the stored response")
        func confirmed() async throws {
            let first =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"a\"\r\n"
                + "Content-Length: 5\r\n\r\nhello"
            try await play(
                [
                    [.awaitRequestHead, .send(first), .awaitRequestHead]
                        + [
                            .send("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\nhello"),
                            .awaitGate,
                        ]
                ]
            ) { node, origin in
                for _ in 1...2 {
                    let response = try node.get("/it", host: "a.example")
                    #expect(response.status == 200 && response.text == "hello", "\(response)")
                }
                #expect(origin.requests.count == 2)
            }
        }
    }
}
