import Foundation
import Harness
import NIOCore
import NIOPosix
import Testing

extension Outside {
    /// Requests that would have their connection speak another protocol (RFC 9110 §7.8).
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

        /// The node's settings: a site that takes `upgrade`.
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

        /// A client that asks for a WebSocket, and says `early` without waiting for the answer.
        private func open(_ node: NodeProcess, early: String = "") throws -> Talk {
            let connection = try node.connect()
            let head = HTTPConnection.request(
                "/chat", host: "a.example", fields: Self.handshake)
            try connection.socket.send(head + Array(early.utf8))
            return Talk(connection)
        }

        @Test("After a 101 each side hears what the other says, byte for byte")
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
                // What is said before the origin has switched waits for that.
                let talk = try open(node, early: "early")
                let head = try talk.heard(through: "\r\n\r\n")
                #expect(head.hasPrefix("HTTP/1.1 101 "), "\(head)")
                for line in [
                    "Connection: Upgrade", "Upgrade: websocket",
                    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
                ] {
                    #expect(head.contains("\r\n\(line)\r\n"), "\(head)")
                }
                #expect(!head.lowercased().contains("connection: close"), "\(head)")
                #expect(try talk.heard(through: "hello") == "hello")
                try talk.say("ping")
                #expect(try talk.heard(through: "pong") == "pong")
                try talk.say("bye")
                #expect(try talk.heard(through: "bye") == "bye")
                #expect(talk.connection.waitForEnd() == .truncated)
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

        @Test("Much is said both ways at once, as fast as each side hears it")
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
                let talk = try open(node)
                _ = try talk.heard(through: "\r\n\r\n")
                Thread.detachNewThread {
                    var rest = count
                    while rest > 0 {
                        let piece = min(rest, ByteOrigin.block.readableBytes)
                        let bytes = ByteOrigin.block.getBytes(at: 0, length: piece) ?? []
                        guard (try? talk.say(bytes)) != nil else { return }
                        rest -= piece
                    }
                }
                let heard = try talk.heard(bytes: count)
                #expect(ByteOrigin.isFlood(heard))
                #expect(try talk.heard(through: "!") == "!")
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

        @Test("The end of one side is the end of the other", arguments: [true, false])
        func ends(inOrder: Bool) async throws {
            try await play([
                [.awaitRequestHead, .send(Self.switched), .awaitBodyEnding("bye"), .awaitGate]
            ]) {
                node, origin in
                let talk = try open(node)
                _ = try talk.heard(through: "\r\n\r\n")
                try talk.say("bye")
                expectBody(origin)
                talk.end(inOrder: inOrder)
                expectNothingOpen(node)
            }
        }

        @Test("An answer that switches nothing is one like any other, and so is what follows")
        func declined() async throws {
            try await play([
                [
                    .awaitRequestHead, .send("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"),
                    .awaitRequestHead,
                    .send(Self.page), .awaitGate,
                ]
            ]) { node, origin in
                // Nothing of it may reach the origin behind the request for a switch.
                let next = HTTPConnection.request("/next", host: "a.example")
                let talk = try open(node, early: String(decoding: next, as: UTF8.self))
                let response = talk.connection.readResponse()
                #expect(response.status == 403 && response.text == "no", "\(response)")
                #expect(talk.connection.readResponse().text == "page")
                #expect(origin.requests.count == 2 && origin.connections == 1)
                #expect(origin.requests.last?.contains("Via: 1.1 nuthatch") == true)
                #expect(origin.requests.last?.contains("Upgrade") == false)
            }
        }

        @Test("A switch to what nobody asked for is a failure of the origin")
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
            "What a site does not take is refused, and its origin is not asked",
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

        @Test("What asks for the same answer in another way is given it, stored or not")
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

        @Test("A connection on which nothing moves is ended in order, and its origin's too")
        func idle() async throws {
            try await play(
                flags: ["--idle-timeout", "300ms"],
                [[.awaitRequestHead, .send(Self.switched), .awaitGate]]
            ) { node, _ in
                let talk = try open(node)
                _ = try talk.heard(through: "\r\n\r\n")
                #expect(talk.connection.waitForEnd() == .truncated)
                expectSoon(20) { node.metric("nuthatch_origin_connections") == 0 }
            }
        }

        @Test("Connections that have switched leave half of an origin's to others")
        func share() async throws {
            try await play(
                flags: ["--origin-connections", "2"],
                [
                    [.awaitRequestHead, .send(Self.switched), .awaitGate],
                    [.awaitRequestHead, .send(Self.page), .awaitGate],
                ]
            ) { node, origin in
                let first = try open(node)
                _ = try first.heard(through: "\r\n\r\n")
                let second = try open(node)
                expectSoon(20) { node.metric("nuthatch_origin_waiting") == 1 }
                #expect(try node.get("/", host: "a.example").text == "page")
                #expect(second.connection.isIdle(seconds: 0))
                #expect(origin.connections == 2)
            }
        }

        @Test("The end of the node is that of connections which rest, and they do not hold it up")
        func drained() async throws {
            try await play([[.awaitRequestHead, .send(Self.switched), .awaitGate]]) { node, _ in
                let talk = try open(node)
                _ = try talk.heard(through: "\r\n\r\n")
                node.terminate()
                #expect(talk.connection.waitForEnd() == .truncated)
                #expect(node.waitForExit() == 0)
            }
        }

        @Test("A client over TLS is no different")
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

/// What is said on a connection that speaks no HTTP any more.
private final class Talk: @unchecked Sendable {
    let connection: HTTPConnection
    private var received = ByteBuffer()

    struct Silence: Error, CustomStringConvertible {
        let description: String
    }

    init(_ connection: HTTPConnection) {
        self.connection = connection
    }

    func say(_ text: String) throws {
        try connection.socket.send(text)
    }

    func say(_ bytes: [UInt8]) throws {
        try connection.socket.send(bytes)
    }

    /// What comes up to and with `text`.
    func heard(through text: String) throws -> String {
        while true {
            if let range = received.readableBytesView.firstRange(of: Array(text.utf8)) {
                let count = range.upperBound - received.readerIndex
                return received.readSlice(length: count).map { String(buffer: $0) } ?? ""
            }
            try hear()
        }
    }

    /// Says that there is nothing more, whereupon the other side has nothing more either; or breaks
    /// off.
    func end(inOrder: Bool) {
        guard inOrder else { return connection.socket.reset() }
        connection.socket.finishSending()
        #expect(connection.waitForEnd() == .truncated)
    }

    /// The next bytes.
    func heard(bytes count: Int) throws -> ByteBuffer {
        while received.readableBytes < count { try hear() }
        return received.readSlice(length: count) ?? ByteBuffer()
    }

    private func hear() throws {
        let arrival = connection.socket.receive(
            into: &received, bytesMax: 64 << 10, .seconds(30))
        guard case .bytes = arrival else {
            throw Silence(description: "\(arrival) after \(String(buffer: received).suffix(200))")
        }
    }
}
