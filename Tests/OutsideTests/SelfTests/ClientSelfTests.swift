import Harness
import NIOPosix
import Testing

extension Outside {
    /// All other tests observe the node through this client, so it must detect damage.
    @Suite("The test client detects what an origin does")
    struct ClientSelfTests {
        private let origin: ScriptedOrigin
        private let image = TestImage.generated(.jpeg, byteCount: 300_000, seed: 1)

        init() throws {
            origin = try ScriptedOrigin()
        }

        private func get(_ response: OriginResponse, method: String = "GET") throws -> Response {
            origin.on("/it", response)
            return try HTTPConnection(port: origin.port).get("/it", method: method, seconds: 10)
        }

        @Test("A body in every framing is complete and identical")
        func framings() throws {
            for framing in [
                OriginResponse.Framing.length, .chunked(bytesMax: 7_777), .close, .http10Close,
            ] {
                let response = try get(OriginResponse(image, framing: framing))
                #expect(response.matches(image), "\(framing)")
                #expect(response["Content-Type"] == "image/jpeg")
            }
        }

        @Test("Bodies ended by length, by chunks and by close are distinguished")
        func endings() throws {
            #expect(try get(OriginResponse(image)).ending == .complete)
            let chunked = OriginResponse(image, framing: .chunked(bytesMax: 1_000))
            #expect(try get(chunked).ending == .complete)
            #expect(try get(OriginResponse(image, framing: .close)).ending == .closeDelimited)
        }

        @Test("A body cut off by close or reset does not look complete, in any framing")
        func cuts() throws {
            for framing in [OriginResponse.Framing.length, .chunked(bytesMax: 10_000)] {
                for offset in [0, 1, 100_000, 299_999] {
                    let response = OriginResponse(image, framing: framing)
                    let closed = try get(response.truncated(after: offset, .close))
                    #expect(closed.ending == .truncated)
                    #expect(!closed.isWhole && !closed.matches(image))
                    #expect(closed.bodyByteCount == offset)
                    let reset = try get(response.truncated(after: offset, .reset))
                    #expect(reset.ending == .reset)
                    #expect(!reset.isWhole && !reset.matches(image))
                }
            }
        }

        @Test("A chunked body without its last chunk is truncated even if every byte arrived")
        func missingLastChunk() throws {
            let original = OriginResponse(image, framing: .chunked(bytesMax: 10_000))
            let response = try get(original.truncated(after: image.byteCount, .close))
            #expect(response.bodyByteCount == image.byteCount)
            #expect(response.ending == .truncated)
        }

        @Test("A body ended by close looks complete after FIN, and not after a reset")
        func closeDelimited() throws {
            let response = OriginResponse(image, framing: .close)
            let closed = try get(response.truncated(after: 1_000, .close))
            #expect(closed.ending == .closeDelimited)
            #expect(!closed.matches(image), "it looks whole, but is not the image")
            #expect(try get(response.truncated(after: 1_000, .reset)).ending == .reset)
        }

        @Test("A body without framing is not complete, even when the connection ends")
        func unframed() async throws {
            let origin = try await ByteOrigin.listening(
                on: MultiThreadedEventLoopGroup.singleton,
                [
                    .awaitRequestHead,
                    .send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nabc"),
                    .close,
                ])
            let response = try HTTPConnection(port: Int(origin.port)).get("/it", seconds: 10)
            #expect(response.text == "abc" && response.ending == .truncated, "\(response)")
            try await origin.stop()
        }

        @Test("A truncated head is no response")
        func cutHead() throws {
            let response = try get(OriginResponse(image).truncatedInHead(.close))
            #expect(response.status == 0)
            #expect(response.ending == .truncated)
        }

        @Test("Bytes after a body with too small a Content-Length are detected")
        func overLong() throws {
            origin.on("/it", OriginResponse(image, framing: .falseLength(1_000)))
            let connection = try HTTPConnection(port: origin.port)
            let response = try connection.get("/it")
            #expect(response.ending == .complete)
            #expect(response.bodyByteCount == 1_000)
            #expect(!response.matches(image))
            // The bytes after the end of the body.
            expectSoon(10) { !connection.isIdle(seconds: 0) }
        }

        @Test("A body with too large a Content-Length is incomplete when the connection ends")
        func tooShort() throws {
            let response = OriginResponse(image, framing: .falseLength(image.byteCount + 1))
                .closingConnection()
            #expect(try get(response).ending == .truncated)
        }

        @Test("A response to HEAD has no body, whatever its Content-Length")
        func head() throws {
            let response = try get(OriginResponse(image), method: "HEAD")
            #expect(response.ending == .complete)
            #expect(response.bodyByteCount == 0)
            #expect(response["Content-Length"] == "300000")
        }

        @Test(
            "Bytes that are no response are reported as malformed",
            arguments: [
                "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 20 OK\r\n\r\n",
                "HTTP/2 200 OK\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
                "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
            ])
        func malformed(_ text: String) throws {
            let response = try get(.raw(Array(text.utf8)))
            guard case .malformed = response.ending else {
                Issue.record("\(text.debugDescription) was read as \(response.ending)")
                return
            }
            #expect(!response.isWhole)
        }

        @Test("A comparing reader detects one wrong byte, a missing end and a swapped piece")
        func comparing() throws {
            var bytes = image.bytes
            bytes[150_000] ^= 1
            try expectNot(bytes)
            try expectNot(Array(image.bytes.dropLast()))
            let (first, second) = (image.bytes(65_536..<131_072), image.bytes(131_072..<196_608))
            try expectNot(
                image.bytes(0..<65_536) + second + first + image.bytes(196_608..<300_000))
            #expect(try compare(image.bytes).matches(image))
        }

        private func compare(_ bytes: [UInt8]) throws -> Response {
            let other = TestImage(name: "other", contentType: "image/jpeg", bytes: bytes)
            origin.on("/it", OriginResponse(other))
            return try HTTPConnection(port: origin.port).get("/it", expecting: image)
        }

        private func expectNot(_ bytes: [UInt8]) throws {
            let response = try compare(bytes)
            #expect(response.isWhole)
            #expect(!response.matches(image))
        }

        @Test("A silent server is detected")
        func timeOut() throws {
            let gate = Gate()
            defer { gate.open() }
            origin.on("/it", OriginResponse(image).delayingHead(.gate(gate)))
            let response = try HTTPConnection(port: origin.port).get("/it", seconds: 0.1)
            #expect(response.ending == .timedOut)
        }
    }
}
