import Foundation
import Harness
import NIOCore
import NIOPosix
import Testing

extension Outside {
    /// Requests for an upgrade of their connection to another protocol (RFC 9110 §7.8).
    @Suite("WebSocket and other upgrades of a site")
    struct UpgradeTests {
        private static let handshake = [
            "Connection: keep-alive, Upgrade", "Upgrade: websocket",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ]
        private static let switched =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        private static let page = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"

        /// Starts a node with a site that permits `upgrade`.
        private func play(
            upgrade: String = "[websocket]", flags: [String] = [],
            _ scripts: [[ByteOrigin.Step]],
            _ test: (NodeProcess, ByteOrigin) throws -> Void
        ) async throws {
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton, scripts: scripts)
            let folder = try TemporaryFolder()
            let text =
                "sites:\n  a.example:\n    origin: http://127.0.0.1:\(origin.port)\n"
                + "    upgrade: \(upgrade)\n"
            let file = try folder.write(text, to: "nuthatch.yaml")
            let node = try NodeProcess(["--config", file.path] + flags)
            try test(node, origin)
            node.kill()
            try await origin.stop()
        }

        /// Opens a client connection that requests a WebSocket and sends `early` without waiting.
        private func open(_ node: NodeProcess, early: String = "") throws -> UpgradedConnection {
            let connection = try node.connect()
            let head = HTTPConnection.request(
                "/chat", host: "a.example", fields: Self.handshake)
            try connection.socket.send(head + Array(early.utf8))
            return UpgradedConnection(connection)
        }

        @Test("After a 101 each side receives the other's bytes unchanged")
        func passed() async throws {
            try await play(
                flags: ["--access-log", "combined", "--loops", "1"],
                [
                    [
                        .awaitRequestHead, .send(Self.switched + "hello"), .awaitBody(9),
                        .send("pong"),
                        .awaitBodyEnding("bye"), .send("bye"), .close,
                    ]
                ]
            ) { node, origin in
                // Bytes sent before the origin has switched wait for the switch.
                let client = try open(node, early: "early")
                let head = try client.read(through: "\r\n\r\n")
                #expect(head.hasPrefix("HTTP/1.1 101 "), "\(head)")
                for line in [
                    "Connection: Upgrade", "Upgrade: websocket",
                    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
                ] {
                    #expect(head.contains("\r\n\(line)\r\n"), "\(head)")
                }
                #expect(!head.lowercased().contains("connection: close"), "\(head)")
                #expect(try client.read(through: "hello") == "hello")
                try client.send("ping")
                #expect(try client.read(through: "pong") == "pong")
                try client.send("bye")
                #expect(try client.read(through: "bye") == "bye")
                #expect(client.connection.waitForEnd() == .truncated)
                let asked = try #require(origin.requests.first)
                for line in Self.handshake.dropFirst() + ["Connection: Upgrade"] {
                    #expect(asked.contains("\r\n\(line)\r\n"), "\(asked)")
                }
                #expect(origin.requests.count == 1)
                #expect(origin.bodies.map { String(buffer: $0) } == ["earlyping", "bye"])
                #expect(node.metric("nuthatch_upgrades_total{outcome=\"switched\"}") == 1)
                expectSoon(20, "\(node.output)") {
                    node.output.contains("\"GET /chat HTTP/1.1\" 101 12 ")
                }
                #expect(node.metric("nuthatch_fills_in_flight") == 0)
            }
        }

        @Test("Both sides send large amounts at once, limited by the receiver's speed")
        func flood() async throws {
            let count = 8_000_000
            try await play(
                [
                    [
                        .awaitRequestHead, .send(Self.switched), .flood(count), .awaitBody(count),
                        .send("!"), .close,
                    ]
                ]
            ) { node, origin in
                let client = try open(node)
                _ = try client.read(through: "\r\n\r\n")
                Thread.detachNewThread {
                    var rest = count
                    while rest > 0 {
                        let piece = min(rest, ByteOrigin.block.readableBytes)
                        let bytes = ByteOrigin.block.getBytes(at: 0, length: piece) ?? []
                        guard (try? client.send(bytes)) != nil else { return }
                        rest -= piece
                    }
                }
                let read = try client.read(bytes: count)
                #expect(ByteOrigin.isFlood(read))
                #expect(try client.read(through: "!") == "!")
                #expect(ByteOrigin.isFlood(try #require(origin.bodies.first)))
                #expect(origin.bodies.first?.readableBytes == count)
            }
        }

        private func expectBody(_ origin: ByteOrigin) {
            expectSoon(20) { origin.bodies.count == 1 }
        }

        private func expectNothingOpen(_ node: NodeProcess) {
            expectSoon(20) {
                node.metric("nuthatch_origin_connections") == 0
                    && node.metric("nuthatch_fills_in_flight") == 0
            }
        }

        @Test("The end of one side ends the other", arguments: [true, false])
        func ends(inOrder: Bool) async throws {
            try await play([
                [.awaitRequestHead, .send(Self.switched), .awaitBodyEnding("bye"), .awaitGate]
            ]) {
                node, origin in
                let client = try open(node)
                _ = try client.read(through: "\r\n\r\n")
                try client.send("bye")
                expectBody(origin)
                client.end(inOrder: inOrder)
                expectNothingOpen(node)
            }
        }

        @Test("A response that does not switch is handled normally, and so are further requests")
        func declined() async throws {
            try await play([
                [
                    .awaitRequestHead, .send("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"),
                    .awaitRequestHead,
                    .send(Self.page), .awaitGate,
                ]
            ]) { node, origin in
                // None of it may reach the origin after the upgrade request.
                let next = HTTPConnection.request("/next", host: "a.example")
                let client = try open(node, early: String(decoding: next, as: UTF8.self))
                let response = client.connection.readResponse()
                #expect(response.status == 403 && response.text == "no", "\(response)")
                #expect(client.connection.readResponse().text == "page")
                #expect(origin.requests.count == 2 && origin.connections == 1)
                #expect(origin.requests.last?.contains("Via: 1.1 nuthatch") == true)
                #expect(origin.requests.last?.contains("Upgrade") == false)
            }
        }

        @Test("A switch to an unrequested protocol is a failure of the origin")
        func other() async throws {
            let switched = Self.switched.replacing("Upgrade: websocket", with: "Upgrade: chat")
            try await play([[.awaitRequestHead, .send(switched + "hello"), .awaitGate]]) {
                node, _ in
                let connection = try node.connect()
                let response = try connection.get(
                    "/chat", host: "a.example", fields: Self.handshake)
                expectProblem(response, 502)
            }
        }

        @Test(
            "An upgrade that a site does not permit is refused without an origin request",
            arguments: [
                ("[]", "websocket", "GET"), ("[]", "WebSocket", "GET"), ("[]", "odd/1", "GET"),
                ("[]", "h2c, websocket", "GET"), ("[chat]", "websocket", "GET"),
                ("[websocket]", "websocket", "POST"),
            ])
        func refused(upgrade: String, asked: String, method: String) async throws {
            try await play(upgrade: upgrade, [[.awaitRequestHead, .send(Self.page), .awaitGate]]) {
                node, origin in
                let connection = try node.connect()
                let fields = ["Connection: upgrade", "Upgrade: \(asked)"]
                let head = HTTPConnection.request(
                    "/chat", method: method, host: "a.example",
                    fields: method == "GET" ? fields : fields + ["Content-Length: 1"])
                try connection.socket.send(head + (method == "GET" ? [] : [0x78]))
                let response = connection.readResponse()
                expectProblem(response, 501)
                #expect(response.text.contains("upgrade-refused"), "\(response)")
                #expect(origin.connections == 0)
                #expect(node.metric("nuthatch_upgrades_total{outcome=\"refused\"}") == 1)
                if method == "GET" {
                    #expect(try connection.get("/", host: "a.example").text == "page")
                }
            }
        }

        @Test("A request with an optional upgrade gets the normal response, stored or not")
        func ignored() async throws {
            let stored = Self.page.replacing("OK\r\n", with: "OK\r\nCache-Control: max-age=60\r\n")
            try await play(upgrade: "[]", [[.awaitRequestHead, .send(stored), .awaitGate]]) {
                node, origin in
                let connection = try node.connect()
                for fields in [
                    [
                        "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
                        "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
                    ],
                    ["Connection: Upgrade", "Upgrade: TLS/1.2, HTTP/2.0"],
                    ["Upgrade: websocket"], ["Connection: Upgrade"],
                ] {
                    let response = try connection.get("/", host: "a.example", fields: fields)
                    #expect(response.status == 200 && response.text == "page", "\(response)")
                }
                let old = try node.connect()
                try old.socket.send(
                    "GET / HTTP/1.0\r\nHost: a.example\r\nConnection: Upgrade\r\n"
                        + "Upgrade: websocket\r\n\r\n")
                #expect(old.readResponse().text == "page")
                #expect(origin.requests.count == 1)
                #expect(origin.requests.first?.lowercased().contains("upgrade") == false)
            }
        }

        @Test("An idle upgraded connection is closed in order, and its origin connection too")
        func idle() async throws {
            try await play(
                flags: ["--idle-timeout", "300ms"],
                [[.awaitRequestHead, .send(Self.switched), .awaitGate]]
            ) { node, _ in
                let client = try open(node)
                _ = try client.read(through: "\r\n\r\n")
                #expect(client.connection.waitForEnd() == .truncated)
                expectSoon(20) { node.metric("nuthatch_origin_connections") == 0 }
            }
        }

        @Test("Upgraded connections leave half of an origin's connections to others")
        func share() async throws {
            try await play(
                flags: ["--origin-connections", "2"],
                [
                    [.awaitRequestHead, .send(Self.switched), .awaitGate],
                    [.awaitRequestHead, .send(Self.page), .awaitGate],
                ]
            ) { node, origin in
                let first = try open(node)
                _ = try first.read(through: "\r\n\r\n")
                let second = try open(node)
                expectSoon(20) { node.metric("nuthatch_origin_waiting") == 1 }
                #expect(try node.get("/", host: "a.example").text == "page")
                #expect(second.connection.isIdle(seconds: 0))
                #expect(origin.connections == 2)
            }
        }

        @Test("The node's stop ends idle upgraded connections, which do not delay it")
        func drained() async throws {
            try await play([[.awaitRequestHead, .send(Self.switched), .awaitGate]]) { node, _ in
                let client = try open(node)
                _ = try client.read(through: "\r\n\r\n")
                node.terminate()
                #expect(client.connection.waitForEnd() == .truncated)
                #expect(node.waitForExit() == 0)
            }
        }

        @Test("Upgrades work over TLS as well")
        func secure() async throws {
            let leaf = try SecureStage.authority.get().leaf(
                "upgrades", hosts: ["a.example"], addresses: ["127.0.0.1"])
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton,
                scripts: [
                    [.awaitRequestHead, .send(Self.switched), .awaitBody(4), .send("pong"), .close]
                ])
            let folder = try TemporaryFolder()
            let text =
                "sites:\n  a.example:\n    origin: http://127.0.0.1:\(origin.port)\n"
                + "    upgrade: [websocket]\n"
            let file = try folder.write(text, to: "nuthatch.yaml")
            let node = try NodeProcess(["--config", file.path], certificates: [leaf])
            let head = HTTPConnection.request("/chat", host: "a.example", fields: Self.handshake)
            let client = try OpenSSLClient(
                port: node.securePort, name: "a.example", authority: SecureStage.authority.get(),
                ["-alpn", "http/1.1"], sending: String(decoding: head, as: UTF8.self) + "ping")
            #expect(client.output.contains("HTTP/1.1 101 "), "\(client.output)")
            #expect(client.output.contains("pong"), "\(client.output)")
            #expect(origin.bodies.map { String(buffer: $0) } == ["ping"])
            node.kill()
            try await origin.stop()
        }
    }
}

/// A client connection after an upgrade to another protocol.
private final class UpgradedConnection: @unchecked Sendable {
    let connection: HTTPConnection
    private var received = ByteBuffer()

    struct Silence: Error, CustomStringConvertible {
        let description: String
    }

    init(_ connection: HTTPConnection) {
        self.connection = connection
    }

    func send(_ text: String) throws {
        try connection.socket.send(text)
    }

    func send(_ bytes: [UInt8]) throws {
        try connection.socket.send(bytes)
    }

    /// Reads up to and including `text`.
    func read(through text: String) throws -> String {
        while true {
            if let range = received.readableBytesView.firstRange(of: Array(text.utf8)) {
                let count = range.upperBound - received.readerIndex
                return received.readSlice(length: count).map { String(buffer: $0) } ?? ""
            }
            try receive()
        }
    }

    /// Shuts down the sending side and expects the other side to close, or resets the connection.
    func end(inOrder: Bool) {
        guard inOrder else { return connection.socket.reset() }
        connection.socket.finishSending()
        #expect(connection.waitForEnd() == .truncated)
    }

    /// Reads the next `count` bytes.
    func read(bytes count: Int) throws -> ByteBuffer {
        while received.readableBytes < count { try receive() }
        return received.readSlice(length: count) ?? ByteBuffer()
    }

    private func receive() throws {
        let arrival = connection.socket.receive(
            into: &received, bytesMax: 64 << 10, .seconds(30))
        guard case .bytes = arrival else {
            throw Silence(description: "\(arrival) after \(String(buffer: received).suffix(200))")
        }
    }
}
