import Harness
import Testing

extension Outside {
    /// Many concurrent requests that memory cannot serve.
    @Suite("Fair queueing of requests")
    struct TurnTests {
        private static let host = SiteStage.host
        private static let crowd = 8
        private static let each = 100

        /// Starts a node with one event loop, and an origin that accepts everything.
        private func start(fetches: Int = 2_000) throws -> (ScriptedOrigin, NodeProcess) {
            let origin = try ScriptedOrigin()
            origin.onAnyOtherPath { request in
                .text(request.path, fields: ["Cache-Control: max-age=60"])
            }
            let node = try NodeProcess(
                Behind.flags + [
                    "--loops", "1", "--site", "\(Self.host)=\(origin.url(""))",
                    "--client-share", "100", "--origin-connections", "4",
                    "--origin-queue-limit", "2000", "--origin-queue-timeout", "60s",
                    "--fills-limit", String(fetches), "--access-log", "json",
                ])
            return (origin, node)
        }

        /// Opens connections of one client with many requests each, and returns them with their
        /// streams.
        private func ask(_ node: NodeProcess) throws -> [(HTTP2Client, [UInt32])] {
            try (0..<Self.crowd).map { index in
                let connection = try HTTP2Client(
                    port: node.port, behind: Behind.header(of: Behind.bad))
                try connection.send(.settingsAcknowledgement)
                let streams = (0..<Self.each).map { _ in connection.nextStreamID() }
                try connection.send(
                    streams.map { .request($0, "/greedy/\(index)-\($0)", host: Self.host) })
                return (connection, streams)
            }
        }

        @Test("A hit precedes hundreds of earlier misses, and another client's miss follows soon")
        func others() throws {
            // Nearly all requests of the crowd are refused, and so end in the order they were
            // handled.
            let (origin, node) = try start(fetches: 2)
            defer { withExtendedLifetime(origin) {} }
            #expect(try Behind.get(node, "/hit", host: Self.host).status == 200)
            let (hit, miss) = (try node.connect(), try node.connect())
            for connection in [hit, miss] {
                try connection.socket.send(
                    Behind.header(of: Behind.good)
                        + HTTPConnection.request("/warm", host: Self.host))
                #expect(connection.readResponse().status == 200)
            }
            // All requests have arrived when the node resumes.
            node.pause()
            let greedy = try ask(node)
            try hit.socket.send(HTTPConnection.request("/hit", host: Self.host))
            try miss.socket.send(HTTPConnection.request("/miss", host: Self.host))
            node.resume()
            #expect(hit.readResponse().isHit)
            #expect([200, 503].contains(miss.readResponse().status))
            for (connection, streams) in greedy {
                #expect(connection.bodies(on: streams).allSatisfy { $0 != nil })
                connection.socket.close()
            }
            for connection in [hit, miss] { connection.socket.close() }
            #expect(node.stop() == 0)
            let lines = node.standardOutput.split(separator: "\n")
            #expect(lines.count { $0.contains("/greedy/") } == Self.crowd * Self.each)
            for name in ["/hit", "/miss"] {
                let position = try #require(lines.lastIndex { $0.contains(name) })
                #expect(position < 100, "\(name) was the \(position)th")
            }
        }

        @Test("A waiting request whose client leaves is removed, and no other one is")
        func leaving() throws {
            let (origin, node) = try start()
            defer { withExtendedLifetime(origin) {} }
            node.pause()
            let greedy = try ask(node)
            for (connection, _) in greedy.dropFirst() { connection.socket.close() }
            node.resume()
            let (stays, streams) = greedy[0]
            #expect(stays.bodies(on: streams) == streams.map { "/greedy/0-\($0)" })
            expectSoon { node.metric("nuthatch_fills_in_flight") == 0 }
        }

        @Test("Pipelined requests on a connection, some with bodies, stay in order")
        func pipelined() throws {
            let (origin, node) = try start()
            defer { withExtendedLifetime(origin) {} }
            let body = "a=b"
            origin.on("/post", .text("posted"))
            node.pause()
            let greedy = try ask(node)
            let connection = try node.connect()
            let plain = { (name: String) in HTTPConnection.request("/\(name)", host: Self.host) }
            let post = HTTPConnection.request(
                "/post", method: "POST", host: Self.host,
                fields: ["Content-Length: \(body.utf8.count)"])
            try connection.socket.send(
                Behind.header(of: Behind.good) + plain("one") + post + Array(body.utf8)
                    + plain("two") + plain("one"))
            node.resume()
            for expected in ["/one", "posted", "/two", "/one"] {
                let response = connection.readResponse()
                #expect(response.text == expected, "\(response)")
            }
            withExtendedLifetime(greedy) {}
        }
    }
}

extension HTTP2Client {
    /// Returns the response bodies of these streams as text, in order; `nil` for an incomplete one.
    fileprivate func bodies(on streams: [UInt32]) -> [String?] {
        var bodies: [UInt32: [UInt8]] = [:]
        var ended: Set<UInt32> = []
        while ended.count < streams.count, let frame = next() {
            if frame.kind == .data { bodies[frame.stream, default: []] += frame.payload }
            if frame.kind == .reset { bodies[frame.stream] = nil }
            let isEnd = frame.kind == .reset || frame.isSet(HTTP2Frame.endStream)
            if isEnd, streams.contains(frame.stream) { ended.insert(frame.stream) }
        }
        return streams.map { stream in
            guard ended.contains(stream) else { return nil }
            return bodies[stream].map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
