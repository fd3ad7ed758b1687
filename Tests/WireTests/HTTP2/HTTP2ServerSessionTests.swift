import Ground
import NIOCore
import Testing
import Wire

@Suite struct HTTP2ServerSessionTests {
    @Test("The server starts with SETTINGS and a larger window, and acknowledges the client's")
    func greeting() {
        let bench = ServerBench()
        bench.send(RawFrame.preface + RawFrame.settings().bytes)
        let frames = bench.takeFrames()
        #expect(frames.map(\.type) == [4, 4, 8])
        #expect(frames[0].flags == 0)
        #expect(frames[0].payload.count == 24)
        #expect(frames[1] == .settingsAck)
        #expect(frames[2].stream == 0)
    }

    @Test("A request is delivered as the equivalent HTTP/1.1 head")
    func request() {
        let bench = ServerBench().greet()
        let block = RawHPACK.request(
            path: "/a?b", authority: "a.example:81",
            [("accept", "*/*"), ("cookie", "a=b"), ("x", ""), ("cookie", "c=d")])
        bench.send([.headers(1, block)])
        #expect(
            bench.takeEvents() == [
                .request(
                    1,
                    "GET /a?b HTTP/1.1\r\nHost: a.example:81\r\naccept: */*\r\nx: \r\n"
                        + "Cookie: a=b; c=d\r\n\r\n", hasBody: false)
            ])
    }

    @Test("A response is HEADERS and DATA, and the stream is closed")
    func answer() {
        let bench = ServerBench(answerBytes: 20_000).greet()
        bench.send([.headers(1, RawHPACK.request())])
        let frames = bench.takeFrames()
        #expect(frames.map(\.type) == [1, 0, 0])
        #expect(frames.map(\.flags) == [RawFrame.endHeaders, 0, RawFrame.endStream])
        #expect(frames[0].payload == [0x88])
        #expect(frames.map(\.payload.count) == [1, 16384, 20_000 - 16384])
        #expect(bench.takeEvents().last == .closed(1, .noError))
        #expect(bench.server.openStreamCount == 0)
    }

    @Test("A request's id is not indexed, so that the table keeps repeated fields")
    func requestID() {
        let bench = ServerBench().greet()
        for (stream, id) in [(1, "one"), (3, "two"), (5, "three")] as [(Int32, String)] {
            bench.send([.headers(UInt32(stream), RawHPACK.request())])
            bench.respond(stream, "X-Request-Id: \(id)\r\nA: 1\r\n", endsStream: true)
            let block = bench.takeFrames().first?.payload ?? []
            // Never indexed, under a literal name (RFC 7541 §6.2.3).
            #expect(block.prefix(2) == [0x88, 0x10], "\(block)")
            // The other line is the first of the table.
            #expect(stream == 1 || block.last == 0xBE, "\(block)")
        }
    }

    @Test("A body is delivered as it arrives, and its end with the trailers")
    func body() {
        let bench = ServerBench().greet()
        bench.send([
            .headers(1, RawHPACK.request("POST"), RawFrame.endHeaders), .data(1, Array("ab".utf8)),
            .data(1, Array("c".utf8)), .headers(1, RawHPACK.fields([("x-sum", "9")])),
        ])
        let events = bench.takeEvents()
        guard case .request(1, let head, hasBody: true) = events[0] else {
            Issue.record("no request")
            return
        }
        #expect(head.hasSuffix("\r\nTransfer-Encoding: chunked\r\n\r\n"))
        #expect(events[1...] == [.body(1, "ab"), .body(1, "c"), .ended(1, "x-sum: 9\r\n")])
    }

    @Test("Later writes are sent later, and reported when they are all framed")
    func laterBody() {
        let bench = ServerBench().greet()
        bench.send([.headers(1, RawHPACK.request())])
        bench.respond(1)
        #expect(bench.takeFrames().map(\.type) == [1])
        bench.write(1, 10)
        _ = bench.takeEvents()
        #expect(bench.takeFrames() == [.data(1, Array(repeating: 120, count: 10))])
        #expect(bench.takeEvents() == [.drained(1)])
        bench.end(1)
        #expect(bench.takeFrames() == [.data(1, [], RawFrame.endStream)])
    }

    @Test("Bodies are not copied")
    func byReference() {
        let bench = ServerBench().greet()
        bench.send([.headers(1, RawHPACK.request())])
        bench.respond(1)
        guard let stream = bench.streams[1] else { return }
        let body = ByteBuffer(repeating: 1, count: 100)
        bench.server.write(stream, body)
        bench.end(1)
        var buffers: [ByteBuffer] = []
        bench.server.takeOutput(into: &buffers, bytesMax: 1 << 20, now: .zero)
        #expect(buffers.count == 2)
        let addresses = [body, buffers[1]].map { buffer in
            unsafe buffer.withUnsafeReadableBytes { Int(bitPattern: $0.baseAddress) }
        }
        #expect(addresses[0] == addresses[1])
    }

    @Test("The output is cut at whole frames, with no more than was requested")
    func outputInTurns() {
        let bench = ServerBench(answerBytes: 50_000).greet()
        bench.send([.get(1)])
        var buffers: [ByteBuffer] = []
        bench.server.takeOutput(into: &buffers, bytesMax: 20_000, now: .zero)
        let first = buffers.flatMap { Array($0.readableBytesView) }
        #expect(RawFrame.all(in: first).map(\.payload.count) == [1, 16_384, 16_384])
        #expect(bench.takeFrames().map(\.payload.count) == [16_384, 848])
    }

    @Test("Connection-specific fields are removed, and names are lower case")
    func answerFields() {
        let bench = ServerBench().greet()
        bench.send([.get(1)])
        bench.respond(
            1,
            "Connection: close\r\nX-Y: z\r\nTransfer-Encoding: chunked\r\nUpgrade: a\r\n"
                + "Keep-Alive: 1\r\nProxy-Connection: b\r\n", endsStream: true)
        let block = bench.takeFrames()[0].payload
        let client = ClientBench().greet(requests: 1)
        client.send([.headers(1, block)])
        #expect(
            client.takeEvents().first
                == .answer(1, "HTTP/1.1 200 \r\nx-y: z\r\n\r\n", hasBody: false))
    }

    @Test("Trailers follow the body, or the head without a body", arguments: [0, 10])
    func answerTrailers(_ count: Int) {
        let bench = ServerBench().greet()
        bench.send([.get(1)])
        bench.respond(1)
        bench.write(1, count)
        guard let stream = bench.streams[1] else { return }
        bench.server.end(stream, trailers: Array("x-sum: 9\r\n".utf8))
        let frames = bench.takeFrames()
        #expect(frames.map(\.type) == (count == 0 ? [1, 1] : [1, 0, 1]))
        #expect(frames.last?.flags == RawFrame.endStream | RawFrame.endHeaders)
    }

    @Test("An interim response comes before the response")
    func interim() {
        let bench = ServerBench().greet()
        bench.send([.post(1)])
        guard let stream = bench.streams[1] else { return }
        bench.server.sendInterimResponse(
            stream, head: Array("HTTP/1.1 100 Continue\r\n\r\n".utf8).span)
        bench.respond(1, endsStream: true)
        #expect(bench.takeFrames().prefix(2).map(\.type) == [1, 1])
    }

    @Test("A reset stream sends no more, and its closing is reported with the code")
    func resetting() {
        let bench = ServerBench(answerBytes: 100_000).greet()
        bench.send([.get(1)])
        guard let stream = bench.streams[1] else { return }
        bench.server.reset(stream, .internalError)
        #expect(bench.takeFrames().map(\.type).contains(0) == false)
        #expect(bench.takeEvents().last == .closed(1, .internalError))
        #expect(bench.server.bytesQueued == 0)
        bench.server.write(stream, ByteBuffer(string: "late"))
        bench.server.end(stream)
        #expect(bench.takeFrames().isEmpty)
    }

    @Test("The window of the body grows by the bytes consumed only")
    func consuming() {
        let bench = ServerBench()
        bench.consumes = false
        bench.greet()
        bench.send([.post(1)])
        for _ in 0..<3 { bench.send([.data(1, ConformanceFrames.zeros(16_384))]) }
        #expect(bench.takeFrames().isEmpty)
        guard let stream = bench.streams[1] else { return }
        bench.server.consume(stream, bytes: 3 * 16_384)
        #expect(bench.takeFrames() == [.window(1, 3 * 16_384)])
    }

    @Test("Bytes that a closed stream did not consume are returned to the connection")
    func unconsumed() {
        let bench = ServerBench(HTTP2Settings(connectionWindowBytes: 65_535))
        bench.consumes = false
        bench.greet()
        for turn: UInt32 in 0..<20 {
            let id = 2 * turn + 1
            bench.send([.post(id)])
            for _ in 0..<3 { bench.send([.data(id, ConformanceFrames.zeros(16_000))]) }
            bench.send([.reset(id)])
            bench.takeFrames()
        }
        #expect(bench.server.failure == nil)
    }

    @Test("A graceful close answers requests within a round trip, then gives the last stream")
    func graceful() {
        let bench = ServerBench().greet()
        bench.send([.get(1)])
        bench.server.shutDownGracefully()
        let first = bench.takeFrames()
        #expect(first.map(\.type) == [7, 6])
        #expect(first[0].number(at: 0) == 0x7FFF_FFFF)
        bench.send([.get(3), first[1].with(flags: RawFrame.ack)])
        let second = bench.takeFrames()
        #expect(second.map { $0.number(at: 0) } == [3])
        bench.send([.get(5)])
        #expect(bench.streams.keys.sorted() == [1, 3])
        for id: Int32 in [1, 3] { bench.respond(id, endsStream: true) }
        #expect(bench.takeFrames().map(\.stream).sorted() == [1, 3])
        #expect(bench.server.isFinished)
    }

    @Test("A graceful close without time gives the last stream at once")
    func gracefulAtOnce() {
        let bench = ServerBench().greet()
        bench.send([.get(1)])
        bench.server.shutDownGracefully()
        bench.server.shutDownGracefully()
        let frames = bench.takeFrames().filter { $0.type == 7 }
        #expect(frames.map { $0.number(at: 0) } == [0x7FFF_FFFF, 1])
    }

    @Test("A lost connection closes every stream")
    func abandoned() {
        let bench = ServerBench().greet()
        bench.send([.get(1), .get(3)])
        bench.server.transportClosed(.cancel)
        #expect(Set(bench.takeEvents().suffix(2)) == [.closed(1, .cancel), .closed(3, .cancel)])
        bench.send([.get(5)])
        #expect(!bench.isOpen)
    }

    @Test("A stream object held after its close is not reused")
    func held() {
        let bench = ServerBench(answerBytes: 1).greet()
        bench.send([.get(1)])
        let stream = bench.streams[1]
        bench.takeFrames()
        bench.send([.get(3)])
        #expect(stream?.id == 1)
        #expect(stream?.isClosed == true)
    }

    @Test("Requests after a paused one are delivered later, unchanged, however they were split")
    func holding() {
        let bytes = [RawFrame.get(1), .get(3), .get(5)].flatMap(\.bytes)
        for cut in 0...bytes.count {
            let bench = ServerBench(answerBytes: 0)
            bench.holds = true
            bench.greet()
            bench.send(Array(bytes[..<cut]))
            bench.send(Array(bytes[cut...]))
            for id: Int32 in [1, 3, 5] {
                #expect(bench.server.isReceivingPaused, "cut at \(cut)")
                #expect(bench.streams.keys.max() == id, "cut at \(cut)")
                bench.goOn()
            }
            #expect(!bench.server.isReceivingPaused)
            #expect(bench.takeFrames().map(\.stream) == [1, 3, 5])
        }
    }
}
