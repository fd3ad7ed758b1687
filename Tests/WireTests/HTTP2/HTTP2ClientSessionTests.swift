import Ground
import NIOCore
import Testing
import Wire

@Suite struct HTTP2ClientSessionTests {
    private func answer(_ id: UInt32, _ status: String = "200", _ flags: UInt8 = 4) -> RawFrame {
        .headers(id, RawHPACK.fields([(":status", status), ("etag", "\"a\"")]), flags)
    }

    @Test("The client starts with the preface, SETTINGS without push, and a larger window")
    func greeting() {
        let bytes = ClientBench().takeBytes()
        #expect(bytes.starts(with: RawFrame.preface))
        let frames = RawFrame.all(in: Array(bytes.dropFirst(RawFrame.preface.count)))
        #expect(frames.map(\.type) == [4, 8])
        #expect(frames[0].payload.starts(with: [0, 2, 0, 0, 0, 0]))
    }

    @Test("A request and its response between two sessions")
    func exchange() {
        let client = ClientBench()
        let server = ServerBench(answerBytes: 20_000)
        client.request(
            "GET", "Connection: x\r\nAccept: b\r\nTE: gzip\r\nTransfer-Encoding: chunked\r\n")
        for _ in 0..<3 {
            server.send(client.takeBytes())
            client.send(server.takeBytes())
        }
        #expect(
            server.takeEvents().first
                == .request(
                    1, "GET /a?b HTTP/1.1\r\nHost: a.example\r\naccept: b\r\n\r\n", hasBody: false))
        let events = client.takeEvents()
        #expect(
            events.contains(
                .answer(1, "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", hasBody: true)))
        #expect(events.contains(.body(1, 16_384)))
        #expect(events.suffix(2) == [.ended(1, ""), .closed(1, .noError, isSafeToRetry: false)])
    }

    @Test("A response without a body ends with its head")
    func noBody() {
        let bench = ClientBench().greet(requests: 1)
        bench.send([answer(1, "304", 5)])
        #expect(
            bench.takeEvents() == [
                .answer(1, "HTTP/1.1 304 \r\netag: \"a\"\r\n\r\n", hasBody: false),
                .ended(1, ""), .closed(1, .noError, isSafeToRetry: false),
            ])
    }

    @Test("Interim responses come before the response, trailers after the body")
    func interimAndTrailers() {
        let bench = ClientBench().greet(requests: 1)
        bench.send([
            answer(1, "103"), answer(1), .data(1, [1, 2]),
            .headers(1, RawHPACK.literal("x-sum", "9")),
        ])
        let events = bench.takeEvents()
        #expect(events.first == .interim(1, 103))
        #expect(events.contains(.body(1, 2)))
        #expect(events.contains(.ended(1, "x-sum: 9\r\n")))
    }

    @Test("A refused request may be retried; one that was reset may not")
    func refused() {
        let bench = ClientBench().greet(requests: 2)
        bench.send([.reset(1, 7), .reset(3, 2)])
        #expect(
            bench.takeEvents() == [
                .closed(1, .refusedStream, isSafeToRetry: true),
                .closed(3, .internalError, isSafeToRetry: false),
            ])
    }

    @Test("Requests above GOAWAY's last stream may be retried; the others continue")
    func goAway() {
        let bench = ClientBench().greet(requests: 2)
        bench.send([.goAway(1, 0)])
        #expect(
            bench.takeEvents() == [
                .goAway(.noError), .closed(3, .refusedStream, isSafeToRetry: true),
            ])
        #expect(bench.client.requestsAvailable == 0)
        #expect(bench.request() == nil)
        bench.send([answer(1, "200", 5)])
        #expect(bench.takeEvents().last == .closed(1, .noError, isSafeToRetry: false))
        #expect(bench.client.isFinished)
    }

    @Test("One request is made before the origin's limit is known")
    func unsettled() {
        let bench = ClientBench()
        #expect(bench.client.requestsAvailable == 1)
        bench.request()
        #expect(bench.request() == nil)
        bench.greet([(3, 2)])
        #expect(bench.client.requestsAvailable == 1)
    }

    @Test("The limit on concurrent requests holds")
    func concurrency() {
        let bench = ClientBench().greet([(3, 2)])
        #expect(bench.client.requestsAvailable == 2)
        bench.request()
        bench.request()
        #expect(bench.request() == nil)
    }

    @Test("A stream whose bytes are not consumed blocks no other")
    func stall() {
        let settings = HTTP2Settings(
            streamWindowBytes: 70_000, connectionWindowBytes: 100_000)
        let bench = ClientBench(settings)
        bench.consumes = false
        bench.greet()
        for id: UInt32 in [1, 3, 5] {
            bench.request()
            _ = bench.takeBytes()
            bench.send([answer(id)])
            for _ in 0..<4 { bench.send([.data(id, ConformanceFrames.zeros(16_384))]) }
            #expect(!bench.takeFrames().contains { $0.type == 8 && $0.stream == id })
        }
        #expect(bench.client.failure == nil)
        #expect(bench.takeEvents().filter { $0 == .body(5, 16_384) }.count == 4)
    }

    @Test("Consumed bytes reopen the stream's window")
    func consuming() {
        let bench = ClientBench(HTTP2Settings(streamWindowBytes: 70_000)).greet(requests: 1)
        bench.send([answer(1)])
        for _ in 0..<4 { bench.send([.data(1, ConformanceFrames.zeros(16_384))]) }
        #expect(bench.takeFrames().contains { $0.type == 8 && $0.stream == 1 })
    }

    @Test("A head above the limit fails only its stream")
    func largeHead() {
        let bench = ClientBench(HTTP2Settings(headBytesMax: 1000)).greet(requests: 2)
        let long = String(repeating: "a", count: 1000)
        bench.send([
            .headers(1, RawHPACK.fields([(":status", "200"), ("x", long)]), 4), answer(3, "200", 5),
        ])
        #expect(bench.takeFrames().contains(.reset(1, 11)))
        #expect(
            bench.takeEvents().filter {
                if case .closed = $0 { true } else { false }
            } == [
                .closed(3, .noError, isSafeToRetry: false),
                .closed(1, .enhanceYourCalm, isSafeToRetry: false),
            ])
    }

    @Test("A lost connection fails every stream")
    func abandoned() {
        let bench = ClientBench().greet()
        bench.request("POST", endsStream: false)
        bench.request()
        bench.client.transportClosed(.cancel)
        #expect(bench.takeEvents().count == 2)
        #expect(bench.client.openStreamCount == 0)
    }

    @Test("A server that pushes or floods ends the connection")
    func badServer() {
        let push = ClientBench().greet(requests: 1)
        push.send([RawFrame(type: 5, flags: 4, stream: 1, payload: [0, 0, 0, 2, 0x88])])
        #expect(push.takeFrames().first { $0.type == 7 }?.number(at: 4) == 1)
        let flood = ClientBench().greet()
        #expect(!flood.send((0..<2000).map { _ in .ping() }))
        #expect(flood.client.failure == .enhanceYourCalm)
    }
}
