import Ground
import NIOCore
import Testing
import Wire

/// Heads of more than one frame.
@Suite struct HTTP2LargeHeadTests {
    private static let roomy = HTTP2Settings(headBytesMax: 1024 * 1024, fieldsMax: 1000)

    /// Field lines of `count` KiB in total, which Huffman coding does not shorten.
    private func lines(_ count: Int) -> String {
        let value = String(repeating: "{", count: 1024 - 9)
        return (0..<count).map { "x-\(1000 + $0): \(value)\r\n" }.joined()
    }

    /// True if the frames are one header block in HEADERS and CONTINUATION of the default size.
    private func isBlock(_ frames: some Collection<RawFrame>) -> Bool {
        frames.first?.type == 1 && frames.dropFirst().allSatisfy { $0.type == 9 }
            && frames.allSatisfy { $0.payload.count <= 16_384 }
            && frames.dropLast().allSatisfy { $0.flags & RawFrame.endHeaders == 0 }
            && frames.suffix(1).allSatisfy { $0.flags == RawFrame.endHeaders }
    }

    @Test("A response's head of any size arrives whole", arguments: [60, 100, 500, 900])
    func answer(_ kibibytes: Int) {
        let client = ClientBench(Self.roomy)
        let server = ServerBench()
        client.request()
        server.send(client.takeBytes())
        client.send(server.takeBytes())
        server.send(client.takeBytes())
        server.respond(1, lines(kibibytes))
        let frames = server.takeFrames()
        #expect(frames.count > kibibytes / 16)
        #expect(isBlock(frames))
        client.send(frames)
        _ = client.takeBytes()
        let head =
            "HTTP/1.1 200 \r\n\(lines(kibibytes))Transfer-Encoding: chunked\r\n\r\n"
        let isWhole = client.takeEvents().last == .answer(1, head, hasBody: true)
        #expect(isWhole)
        #expect(client.client.failure == nil)
    }

    @Test("A request's head of any size arrives whole", arguments: [60, 100, 500, 900])
    func request(_ kibibytes: Int) {
        let client = ClientBench()
        let server = ServerBench(Self.roomy)
        client.greet()
        client.request("POST", lines(kibibytes), endsStream: false)
        let frames = client.takeFrames()
        #expect(isBlock(frames))
        server.greet()
        server.send(frames)
        _ = server.takeBytes()
        let head =
            "POST /a?b HTTP/1.1\r\nHost: a.example\r\n\(lines(kibibytes))"
            + "Transfer-Encoding: chunked\r\n\r\n"
        let isWhole = server.takeEvents() == [.request(1, head, hasBody: true)]
        #expect(isWhole)
        #expect(server.server.failure == nil)
    }

    @Test("A head written in small turns is not interleaved with other frames")
    func turns() {
        let bench = ServerBench().greet()
        bench.send([.get(1)])
        bench.respond(1, lines(100))
        var buffers: [ByteBuffer] = []
        bench.server.takeOutput(into: &buffers, bytesMax: 1, now: bench.now)
        bench.server.takeOutput(into: &buffers, bytesMax: 1, now: bench.now)
        bench.send([.ping()])
        let begun = RawFrame.all(in: buffers.flatMap { Array($0.readableBytesView) })
        let frames = begun + bench.takeFrames(bytesMax: 1)
        #expect(frames.last?.type == 6)
        #expect(isBlock(frames.dropLast()))
    }

    @Test("A response whose head is too large to send is reset, and the connection continues")
    func unsendableAnswer() {
        let bench = ServerBench().greet()
        bench.send([.get(1), .get(3)])
        _ = bench.takeEvents()
        bench.respond(1, lines(3000))
        bench.write(1, 10)
        bench.end(1)
        bench.respond(3, endsStream: true)
        #expect(bench.takeFrames().map(\.type).sorted() == [1, 3])
        #expect(bench.takeEvents().contains(.closed(1, .internalError)))
        #expect(bench.server.openStreamCount == 0)
        #expect(bench.server.bytesQueued == 0)
        #expect(bench.server.failure == nil)
    }

    @Test("A request whose head is too large to send fails, and nothing of it is sent")
    func unsendableRequest() {
        let bench = ClientBench().greet()
        bench.request("GET", lines(3000))
        bench.request()
        #expect(bench.takeFrames().map(\.stream) == [3])
        #expect(bench.takeEvents() == [.closed(1, .internalError, isSafeToRetry: false)])
        #expect(bench.client.openStreamCount == 1)
        #expect(bench.client.failure == nil)
    }
}
