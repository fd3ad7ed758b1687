import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Slow clients are disconnected")
    struct TimeoutTests {
        private let image = TestImage.generated(.jpeg, byteCount: 3_000, seed: 120)

        /// Waits for the end of a connection; a preceding response must have this status.
        private func expectEnd(
            _ connection: HTTPConnection, status: Int?,
            at location: SourceLocation = #_sourceLocation
        ) {
            let response = connection.readResponse(seconds: 20)
            #expect(
                response.status == 0 || response.status == status, "\(response)",
                sourceLocation: location)
            #expect(
                connection.waitForEnd(seconds: 20) != .timedOut, sourceLocation: location)
        }

        @Test("An unfinished head gets 408 or a closed connection")
        func head() throws {
            let node = try NodeProcess(["--head-timeout", "200ms"])
            let connection = try node.connect()
            try connection.socket.send("GET /healthz HTTP/1.1\r\nHost: a\r\n")
            expectEnd(connection, status: 408)
        }

        @Test("A head that arrives byte by byte times out too")
        func drippingHead() throws {
            let node = try NodeProcess(["--head-timeout", "200ms", "--idle-timeout", "200ms"])
            let connection = try node.connect()
            try connection.socket.send("GET /healthz HTTP/1.1\r\nHost: a\r\n")
            expectSoon(20) {
                let isOver = (try? connection.socket.send("X")) == nil
                return isOver || connection.socket.waitForInput(seconds: 0.05)
            }
            expectEnd(connection, status: 408)
        }

        @Test("A body that does not arrive times out")
        func body() throws {
            let node = try NodeProcess(["--body-timeout", "200ms"])
            for fields in [
                "Content-Length: 100\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n9\r\nab",
            ] {
                let connection = try node.connect()
                try connection.socket.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\(fields)")
                let response = connection.readResponse(seconds: 20)
                #expect([0, 200, 408].contains(response.status), "\(response)")
                #expect(connection.waitForEnd(seconds: 20) != .timedOut)
            }
        }

        @Test("A body that arrives byte by byte times out too")
        func drippingBody() throws {
            let node = try NodeProcess(["--body-timeout", "200ms", "--idle-timeout", "200ms"])
            let connection = try node.connect()
            try connection.socket.send(
                "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n")
            expectSoon(20) {
                let isOver = (try? connection.socket.send("X")) == nil
                return isOver || connection.socket.waitForInput(seconds: 0.05)
            }
            expectEnd(connection, status: 408)
        }

        @Test("A connection without a request is closed, new or used")
        func idle() throws {
            let stage = try Stage("--idle-timeout", "200ms")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            let unused = try stage.node.connect()
            let used = try stage.node.connect()
            #expect(try used.get(stage.target(path)).matches(image))
            #expect(unused.waitForEnd(seconds: 20) != .timedOut)
            #expect(used.waitForEnd(seconds: 20) != .timedOut)
        }

        @Test("A connection that waits for its response is not idle")
        func waitingIsNotIdle() throws {
            let stage = try Stage("--idle-timeout", "100ms", "--head-timeout", "100ms")
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on("/it", OriginResponse(image).delayingHead(.seconds(0.4)))
            #expect(try stage.get("/it").matches(image))
        }

        @Test(
            "A client that reads nothing is disconnected, and its response does not look complete"
        )
        func stalledReader() throws {
            let stage = try Stage(
                "--send-timeout", "400ms", origin: try ScriptedOrigin(requestsPerConnection: 1))
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.bmp, byteCount: 40_000_000, seed: 121)
            let path = stage.origin.serve(large, fields: [lasting])
            #expect(try stage.get(path, expecting: large).matches(large))
            #expect(stage.origin.waitForConnections(atMost: 0))
            let settled = try stage.settledDescriptors()
            let connection = try stage.node.connect(receiveBufferBytes: 4_096)
            try connection.socket.send(HTTPConnection.request(stage.target(path)))
            #expect(connection.socket.waitForInput(seconds: 20))
            #expect(stage.node.descriptorCount > settled)
            expectSoon { stage.node.descriptorCount <= settled }
            let response = connection.readResponse(expecting: large, seconds: 20)
            #expect(!response.isWhole && response.isAsExpected, "\(response)")
        }

        @Test("A client that reads slowly but steadily is not disconnected")
        func slowReader() throws {
            let stage = try Stage("--send-timeout", "1s", "--idle-timeout", "1s")
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.bmp, byteCount: 8_000_000, seed: 122)
            let path = stage.origin.serve(large, fields: [lasting])
            let swarm = ClientSwarm(
                port: stage.node.port, count: 1,
                .init(
                    stage.target(path), expecting: large,
                    behaviour: .readSlowly(bytesMax: 20_000, milliseconds: 10)))
            let responses = swarm.responses()
            #expect(responses.allSatisfy { $0.matches(large) }, "\(responses)")
        }
    }
}
