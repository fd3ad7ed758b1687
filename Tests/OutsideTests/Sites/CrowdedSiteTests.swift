import Harness
import Testing

extension Outside {
    /// Limits on the connections to a site's origin that one client can occupy.
    @Suite("No client takes all connections to a site's origin")
    struct CrowdedSiteTests {
        private static let host = SiteStage.host
        private let large = TestImage.generated(.jpeg, byteCount: 5_000_000, seed: 95)

        /// Starts an origin with a page and large uncacheable responses, and a node with few
        /// connections to it.
        private func start(_ flags: String...) throws -> (ScriptedOrigin, NodeProcess) {
            let origin = try ScriptedOrigin()
            origin.on("/page", .text("ok", fields: ["Cache-Control: no-store"]))
            origin.on("/large", OriginResponse(large, fields: ["Cache-Control: no-store"]))
            let node = try NodeProcess(
                Behind.flags + ["--site", "\(Self.host)=\(origin.url(""))"] + flags)
            return (origin, node)
        }

        private func expectPage(_ node: NodeProcess) throws {
            let response = try Behind.get(node, "/page", host: Self.host)
            #expect(response.status == 200 && response.text == "ok", "\(response)")
        }

        private func post(_ node: NodeProcess, as client: String, _ body: Int, of length: Int)
            throws -> HTTPConnection
        {
            let connection = try node.connect()
            let head = HTTPConnection.request(
                "/post", method: "POST", host: Self.host, fields: ["Content-Length: \(length)"])
            try connection.socket.send(
                Behind.header(of: client) + head + Array(repeating: 0x78, count: body))
            return connection
        }

        @Test("Slow small bodies take no connection until they are complete")
        func smallUploads() throws {
            let (origin, node) = try start("--origin-connections", "2")
            let dribbling = try (0..<256).map { number in
                try post(node, as: "203.0.113.\(number % 250)", 5, of: 10)
            }
            expectSoon { node.metric("nuthatch_fills_in_flight") == 256 }
            for _ in 0..<50 { try expectPage(node) }
            #expect(origin.requests("/post").isEmpty)
            for connection in dribbling { connection.socket.close() }
            expectSoon { node.metric("nuthatch_fills_in_flight") == 0 }
        }

        @Test("Slow bodies of any number of clients leave half of the fetches to others")
        func dribblingCrowd() throws {
            let (origin, node) = try start("--fills-limit", "40")
            let dribbling = try (0..<256).map { number in
                try post(node, as: "203.0.113.\(number % 32)", 5, of: 10)
            }
            expectSoon {
                node.metric("nuthatch_fills_in_flight") == 20
                    && node.metric("nuthatch_refused_total{reason=\"share\"}") == 236
            }
            for _ in 0..<50 { try expectPage(node) }
            #expect(origin.requests("/post").isEmpty)
            withExtendedLifetime(dribbling) {}
        }

        @Test("Large bodies that stall take at most half of the connections")
        func largeUploads() throws {
            let (origin, node) = try start(
                "--origin-connections", "16", "--origin-queue-timeout", "60s")
            let stopped = try (0..<100).map { number in
                try post(node, as: "203.0.113.\(number)", 100_000, of: 200_000)
            }
            expectSoon {
                node.metric("nuthatch_origin_connections") == 8
                    && node.metric("nuthatch_origin_waiting") == 92
            }
            for _ in 0..<50 { try expectPage(node) }
            #expect(origin.requests("/post").count <= 8)
            withExtendedLifetime(stopped) {}
        }

        @Test("A body has a total time limit, extended slightly by every byte")
        func wholeBody() throws {
            let (origin, node) = try start("--body-timeout", "300ms", "--body-min-rate", "1MiB")
            defer { withExtendedLifetime(origin) {} }
            let connection = try post(node, as: Behind.bad, 0, of: 1_000_000)
            expectSoon(20) {
                let isOver = (try? connection.socket.send("X")) == nil
                return isOver || connection.socket.waitForInput(seconds: 0.05)
            }
            let response = connection.readResponse(method: "POST")
            #expect([0, 408].contains(response.status), "\(response)")
            expectSoon { node.metric("nuthatch_fills_in_flight") == 0 }
        }

        /// Opens connections with 128 requests for large responses each, and reads nothing.
        private func shutWindows(
            _ node: NodeProcess, as clients: [String]
        ) throws -> [HTTP2Client] {
            try clients.enumerated().map { place, client in
                let connection = try HTTP2Client(
                    port: node.port, settings: [(4, 0)], behind: Behind.header(of: client))
                try connection.send(.settingsAcknowledgement)
                for number in 0..<128 {
                    try connection.send(
                        .request(
                            connection.nextStreamID(), "/large?\(place).\(number)",
                            host: Self.host))
                }
                return connection
            }
        }

        @Test("Closed windows take only their client's share")
        func windows() throws {
            let (origin, node) = try start("--origin-connections", "16")
            defer { withExtendedLifetime(origin) {} }
            let shut = try shutWindows(node, as: [Behind.bad, Behind.bad])
            expectSoon {
                node.metric("nuthatch_origin_connections") == 4
                    && (node.metric("nuthatch_origin_waiting") ?? 0) > 0
            }
            for _ in 0..<50 { try expectPage(node) }
            withExtendedLifetime(shut) {}
        }

        @Test("Responses with closed windows are ended while other requests wait for the origin")
        func contendedWindows() throws {
            let (origin, node) = try start(
                "--origin-connections", "8", "--send-timeout", "6s",
                "--origin-queue-timeout", "60s")
            defer { withExtendedLifetime(origin) {} }
            let shut = try shutWindows(node, as: (1...4).map { "203.0.113.\($0)" })
            expectSoon {
                node.metric("nuthatch_origin_connections") == 8
                    && (node.metric("nuthatch_origin_waiting") ?? 0) > 400
            }
            for _ in 0..<3 { try expectPage(node) }
            withExtendedLifetime(shut) {}
        }
    }
}
