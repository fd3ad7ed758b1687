import Harness
import Testing

extension Outside {
    /// Tests use the origin's log to count the node's requests, so it must be right.
    @Suite("The scripted origin follows its script and logs its requests")
    struct OriginSelfTests {
        private let image = TestImage.generated(.png, byteCount: 70_000, seed: 2)

        @Test("The log holds every request in order, with connection, target and fields")
        func log() throws {
            let origin = try ScriptedOrigin()
            let path = origin.serve(image)
            let first = try HTTPConnection(port: origin.port)
            let second = try HTTPConnection(port: origin.port)
            _ = try first.get(path + "?a=1", fields: ["X-Test: one"])
            _ = try second.get("/missing")
            _ = try first.get(path, method: "HEAD")
            let log = origin.log
            #expect(log.map(\.number) == [0, 1, 2])
            #expect(log.map(\.method) == ["GET", "GET", "HEAD"])
            #expect(log.map(\.target) == [path + "?a=1", "/missing", path])
            #expect(log[0].connection == log[2].connection)
            #expect(log[0].connection != log[1].connection)
            #expect(log[0].fields["x-test"] == "one")
            #expect(log[0].instant < log[1].instant)
            #expect(origin.requests(path).count == 2)
            #expect(origin.connectionsOpened == 2)
        }

        @Test("Pipelined requests get responses in order")
        func pipelining() throws {
            let origin = try ScriptedOrigin()
            for index in 0..<20 { origin.on("/\(index)", .text("\(index)")) }
            let connection = try HTTPConnection(port: origin.port)
            try connection.socket.send((0..<20).flatMap { HTTPConnection.request("/\($0)") })
            let responses = (0..<20).map { _ in connection.readResponse().text }
            #expect(responses == (0..<20).map(String.init))
        }

        @Test("A held head is sent when the gate opens and not before")
        func heldHead() throws {
            let origin = try ScriptedOrigin()
            let gate = Gate()
            origin.on("/it", OriginResponse(image).delayingHead(.gate(gate)))
            let connection = try HTTPConnection(port: origin.port)
            try connection.socket.send(HTTPConnection.request("/it"))
            #expect(gate.waitForArrivals())
            #expect(connection.isIdle(seconds: 0.05))
            gate.open()
            #expect(connection.readResponse().matches(image))
        }

        @Test("A stalled body stops at the given offset and continues when the gate opens")
        func stalledBody() throws {
            let origin = try ScriptedOrigin()
            let gate = Gate()
            origin.on("/it", OriginResponse(image).stalling(at: 30_000, .gate(gate)))
            let connection = try HTTPConnection(port: origin.port)
            try connection.socket.send(HTTPConnection.request("/it"))
            #expect(gate.waitForArrivals())
            #expect(origin.waitForBodyBytes(30_000))
            #expect(origin.bodyBytesSent == 30_000)
            gate.open()
            #expect(connection.readResponse().matches(image))
            #expect(origin.waitForBodyBytes(70_000))
        }

        @Test("Pieces sent one after the other form the complete body")
        func dripping() throws {
            let origin = try ScriptedOrigin()
            origin.on("/it", OriginResponse(image).dripping(bytesMax: 10_000, seconds: 0.001))
            #expect(try HTTPConnection(port: origin.port).get("/it").matches(image))
        }

        @Test("Matching validators get 304 and everything else the complete response")
        func validators() throws {
            let origin = try ScriptedOrigin()
            let date = "Sun, 06 Nov 1994 08:49:37 GMT"
            let path = origin.serve(
                image, fields: ["Cache-Control: max-age=9"], etag: "\"a\"", lastModified: date)
            let connection = try HTTPConnection(port: origin.port)
            let match = try connection.get(path, fields: ["If-None-Match: \"b\", \"a\""])
            #expect(match.status == 304)
            #expect(match["Cache-Control"] == "max-age=9")
            #expect(try connection.get(path, fields: ["If-None-Match: \"b\""]).matches(image))
            #expect(try connection.get(path, fields: ["If-Modified-Since: \(date)"]).status == 304)
            #expect(try connection.get(path).matches(image))
            #expect(origin.log.map(\.isConditional) == [true, true, true, false])
        }

        @Test("A connection is closed without announcement after its last request")
        func requestsPerConnection() throws {
            let origin = try ScriptedOrigin(requestsPerConnection: 2)
            let path = origin.serve(image)
            let connection = try HTTPConnection(port: origin.port)
            #expect(try connection.get(path).matches(image))
            #expect(try connection.get(path).matches(image))
            #expect(connection.waitForEnd() == .truncated)
            #expect(origin.waitForConnections(atMost: 0))
        }

        @Test("A peer that does not read stops the origin once its buffers are full")
        func backPressure() throws {
            let origin = try ScriptedOrigin()
            let large = TestImage.generated(.bmp, byteCount: 200_000_000, seed: 3)
            origin.on("/large", OriginResponse(large))
            let connection = try HTTPConnection(port: origin.port, receiveBufferBytes: 4_096)
            try connection.socket.send(HTTPConnection.request("/large"))
            #expect(origin.waitForBodyBytes(1))
            let part = connection.readResponse(expecting: large, bodyBytesMax: 10_000_000)
            #expect(part.isAsExpected)
            #expect(origin.bodyBytesSent < 40_000_000)
        }

        @Test("After stop no request gets a response")
        func stop() throws {
            let origin = try ScriptedOrigin()
            origin.stop()
            #expect(throws: SystemError.self) { try HTTPConnection(port: origin.port) }
        }
    }
}
