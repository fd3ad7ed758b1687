import Harness
import Testing

extension Outside {
    @Suite("A slow client gets its responses to the last byte")
    struct LastBytesTests {
        private static let copies = 60
        private let image = TestImage.generated(.bmp, byteCount: 250_000, seed: 320)
        private let small = TestImage.generated(.png, byteCount: 12_000, seed: 321)

        /// Starts a node with the image in memory, and opens a connection with more data requested
        /// than the kernel's buffers accept.
        private func congested(
            of image: TestImage
        ) throws -> (Stage, HTTPConnection) {
            let stage = try Stage()
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            let connection = try stage.node.connect(receiveBufferBytes: 4_096)
            let request = HTTPConnection.request(stage.target(path))
            for _ in 0..<Self.copies { try connection.socket.send(request) }
            #expect(connection.socket.waitForInput(seconds: 20))
            return (stage, connection)
        }

        /// Reads to the end of the connection and returns the number of complete responses; none
        /// may be truncated.
        private func completeResponses(
            _ connection: HTTPConnection, _ image: TestImage,
            at location: SourceLocation = #_sourceLocation
        ) -> Int {
            for count in 0..<Self.copies {
                let response = connection.readResponse(expecting: image, seconds: 20)
                if response.status == 0, !response.isWhole { return count }
                #expect(
                    response.matches(image), "answer \(count): \(response)",
                    sourceLocation: location)
                if !response.isWhole { return count }
            }
            return Self.copies
        }

        @Test("SIGTERM ends the connection between two responses")
        func drain() throws {
            let (stage, connection) = try congested(of: image)
            defer { withExtendedLifetime(stage) {} }
            stage.node.terminate()
            expectSoon(20) { (try? stage.node.connect()) == nil }
            #expect(completeResponses(connection, image) >= 1)
            #expect(connection.waitForEnd() == .truncated)
            #expect(stage.node.waitForExit(seconds: 30) == 0)
        }

        @Test("The idle limit does not run while data is being sent", arguments: [12_000, 250_000])
        func idle(byteCount: Int) throws {
            let image = byteCount == 12_000 ? small : image
            let stage = try Stage("--idle-timeout", "100ms")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            let copies = 5_000_000 / image.byteCount
            let request = HTTPConnection.request(stage.target(path))
            let connection = try stage.node.connect(receiveBufferBytes: 4_096)
            for _ in 0..<copies { try connection.socket.send(request) }
            Deadline.seconds(0.4).waitUntilPassed()
            for index in 0..<copies {
                let response = connection.readResponse(expecting: image, seconds: 20)
                #expect(response.matches(image), "\(index): \(response)")
                guard response.isWhole else { return }
            }
        }

        @Test("The timeout for the client's input does not truncate the last response")
        func close() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            let request = HTTPConnection.request(stage.target(path))
            let last = HTTPConnection.request(
                stage.target(path), fields: ["Connection: close"])
            // The kernel's buffer capacity is unknown: for some counts the last response is in
            // progress.
            let connections = try (6...24).map { count in
                let connection = try stage.node.connect(receiveBufferBytes: 4_096)
                for _ in 1..<count { try connection.socket.send(request) }
                try connection.socket.send(last)
                return (connection, count)
            }
            Deadline.seconds(7).waitUntilPassed()
            for (connection, count) in connections {
                #expect(completeResponses(connection, image) == count)
                #expect(connection.waitForEnd() == .truncated)
            }
        }

        @Test(
            "A client that has shut down its sending side gets every response",
            arguments: [12_000, 250_000])
        func halfClosed(byteCount: Int) throws {
            let image = byteCount == 12_000 ? small : image
            let (stage, connection) = try congested(of: image)
            defer { withExtendedLifetime(stage) {} }
            connection.socket.finishSending()
            #expect(completeResponses(connection, image) == Self.copies)
            #expect(connection.waitForEnd() == .truncated)
        }

        @Test("A client that has shut down its sending side gets responses that had to be fetched")
        func halfClosedCold() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let images = (0..<3).map {
                TestImage.generated(.gif, byteCount: 5_000, seed: 330 + UInt64($0))
            }
            let gate = Gate()
            let connection = try stage.node.connect()
            var requests: [UInt8] = []
            for (index, image) in images.enumerated() {
                stage.origin.on("/\(index)", OriginResponse(image).delayingHead(.gate(gate)))
                requests += HTTPConnection.request(stage.target("/\(index)"))
            }
            try connection.socket.send(requests + Array("GET /part".utf8))
            connection.socket.finishSending()
            #expect(gate.waitForArrivals())
            gate.open()
            for image in images { #expect(connection.readResponse().matches(image)) }
            #expect(connection.waitForEnd() == .truncated)
        }
    }
}
