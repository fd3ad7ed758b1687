import Ground
import NIOCore
import Testing
import Wire

@Suite struct HTTP2StallTests {
    private func at(_ second: Int64) -> Instant { .zero + .seconds(second) }

    @Test("A client that reads nothing stalls a stream; one that reads single bytes does not")
    func stalledStream() {
        let bench = ServerBench(answerBytes: 5000).greet([(4, 0)])
        bench.now = at(7)
        bench.send([.get(1)])
        bench.takeFrames()
        #expect(bench.stalled(forSeconds: 0) == [1])
        for second: Int64 in 8...60 {
            bench.now = at(second)
            bench.send([.window(1, 1)])
            bench.takeFrames()
        }
        #expect(bench.stalled(forSeconds: 53) == [1])
        #expect(bench.stalled(forSeconds: 54) == [])
        bench.send([.window(1, 2000)])
        bench.takeFrames()
        #expect(bench.stalled(forSeconds: 1) == [])
        #expect(bench.stalled(forSeconds: 0) == [1])
        bench.send([.window(1, 60_000)])
        bench.takeFrames()
        #expect(bench.stalled(forSeconds: 0) == [])
    }

    @Test("A client with many requests on a slow link stalls nothing if it reads everything")
    func slowLink() {
        let bench = ServerBench(answerBytes: 40_000).greet()
        bench.send((0..<100).map { .get(2 * $0 + 1) })
        var second: Int64 = 0
        var taken = 0
        while bench.server.openStreamCount > 0, second < 1000 {
            bench.now = at(second)
            taken += bench.takeFrames().reduce(0) { $0 + ($1.type == 0 ? $1.payload.count : 0) }
            #expect(bench.stalled(forSeconds: 0) == [])
            let since = bench.server.connectionStalledSince
            #expect(since == nil || since == bench.now)
            bench.send([.window(0, 16_384)])
            second += 1
        }
        #expect(taken == 100 * 40_000)
        #expect(second > 200)
    }

    @Test("A stall ends once bytes are framed, even if the turn ends before all are")
    func turns() {
        let bench = ServerBench(answerBytes: 200_000).greet([(4, 0)])
        bench.send([.get(1)])
        bench.takeFrames()
        #expect(bench.stalled(forSeconds: 0) == [1])
        bench.send([.window(0, 1 << 20), .window(1, 1 << 20)])
        var buffers: [ByteBuffer] = []
        bench.server.takeOutput(into: &buffers, bytesMax: 20_000, now: bench.now)
        bench.now = at(100)
        #expect(bench.stalled(forSeconds: 0) == [])
        #expect(bench.server.connectionStalledSince == nil)
    }

    @Test("A stalled stream is reset, and the others and the connection continue")
    func backgroundTab() {
        let bench = ServerBench(answerBytes: 100_000).greet()
        bench.send([.window(0, 1 << 24), .get(1)])
        bench.takeFrames()
        for second: Int64 in 0...60 {
            bench.now = at(second)
            let id = UInt32(2 * second + 3)
            bench.send([.get(id), .window(id, 1 << 20)])
            bench.takeFrames()
            #expect(bench.stalled(forSeconds: 60) == (second < 60 ? [] : [1]))
            #expect(bench.server.connectionStalledSince == nil)
        }
        bench.reset(1, .cancel)
        #expect(bench.takeFrames() == [.reset(1, 8)])
        bench.send([.get(201), .window(201, 1 << 20)])
        #expect(bench.takeFrames().last?.flags == RawFrame.endStream)
        #expect(bench.server.failure == nil)
    }

    @Test("A client that does not open the connection's window stalls the connection")
    func stalledConnection() {
        let bench = ServerBench(answerBytes: 100_000).greet([(4, 1 << 20)])
        bench.send([.get(1), .get(3)])
        for second: Int64 in 0...60 {
            bench.now = at(second)
            bench.send([.window(0, 1)])
            bench.takeFrames()
            #expect(bench.stalled(forSeconds: 0) == [])
            #expect(bench.server.connectionStalledSince == at(0))
        }
        bench.send([.window(0, 1024)])
        bench.takeFrames()
        #expect(bench.server.connectionStalledSince == nil)
        _ = bench.stalled(forSeconds: 0)
        #expect(bench.server.connectionStalledSince == bench.now)
    }

    @Test("A connection is not stalled after its last response, nor at once with the next")
    func endedAnswer() {
        let bench = ServerBench(answerBytes: 100_000).greet()
        bench.send([.get(1)])
        bench.takeFrames()
        bench.now = at(60)
        #expect(bench.stalled(forSeconds: 0) == [1])
        #expect(bench.server.connectionStalledSince == at(60))
        bench.reset(1, .cancel)
        #expect(bench.server.connectionStalledSince == nil)
        bench.now = at(100)
        bench.send([.get(3)])
        bench.takeFrames()
        #expect(bench.stalled(forSeconds: 1) == [])
        #expect(bench.server.connectionStalledSince == at(100))
    }

    @Test("A client that alternately opens one window by a few bytes stalls both")
    func alternating() {
        let bench = ServerBench(answerBytes: 100_000).greet()
        bench.send([.get(1)])
        bench.takeFrames()
        #expect(bench.stalled(forSeconds: 0) == [1])
        for second: Int64 in 1...60 {
            bench.now = at(second)
            bench.send([second & 1 == 0 ? .window(0, 2) : .window(1, 2)])
            bench.takeFrames()
            let streams = bench.stalled(forSeconds: second)
            #expect(streams == [1] || bench.server.connectionStalledSince == at(0))
        }
    }
}
