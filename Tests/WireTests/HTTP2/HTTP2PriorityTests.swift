import Testing
import Wire

@Suite struct HTTP2PriorityTests {
    /// The order of the DATA frames for requests of five frames each on streams with these values
    /// of `priority`.
    private func order(_ priorities: [String], updates: [RawFrame] = []) -> [UInt32] {
        let bench = ServerBench(answerBytes: 5 * 16_384).greet([(4, 1 << 20)])
        bench.send([.window(0, 1 << 20)])
        bench.send(updates)
        for (index, value) in priorities.enumerated() {
            let fields = value.isEmpty ? [] : [("priority", value)]
            bench.send([
                .headers(UInt32(2 * index + 1), RawHPACK.request("GET", fields))
            ])
        }
        return bench.takeFrames(bytesMax: 1).filter { $0.type == 0 }.map(\.stream)
    }

    private let ones = [UInt32](repeating: 1, count: 5)
    private let threes = [UInt32](repeating: 3, count: 5)

    @Test("Urgent responses are sent first, in any order of requests")
    func urgency() {
        #expect(order(["u=7", "u=0"]) == threes + ones)
        #expect(order(["u=0", "u=7"]) == ones + threes)
        #expect(order(["", "u=2"]) == threes + ones)
    }

    @Test("Responses of equal urgency are sent one after the other")
    func sequence() {
        #expect(order(["", ""]) == ones + threes)
    }

    @Test("Incremental responses share")
    func incremental() {
        let shared = order(["u=3, i", "u=3, i"])
        #expect(Set(shared.prefix(4)) == [1, 3])
        #expect(zip(shared, shared.dropFirst()).filter { $0.0 != $0.1 }.count >= 8)
    }

    @Test("PRIORITY_UPDATE overrides the request's own field, sent before or after it")
    func updates() {
        #expect(order(["u=1", "u=2"], updates: [.priorityUpdate(1, "u=7")]) == threes + ones)
        let bench = ServerBench(answerBytes: 5 * 16_384).greet([(4, 1 << 20)])
        bench.send([.window(0, 1 << 20), .get(1), .get(3), .priorityUpdate(3, "u=0")])
        let sent = bench.takeFrames(bytesMax: 1).filter { $0.type == 0 }.map(\.stream)
        #expect(sent == threes + ones)
    }

    @Test("Invalid and unknown values have no effect")
    func unknown() {
        #expect(order(["", "u=2"], updates: [.priorityUpdate(3, "u=8, x=1")]) == ones + threes)
    }

    @Test("Streams prioritised before their request are closed and released like others")
    func earlyAndClosed() {
        let bench = ServerBench(answerBytes: 10).greet()
        for turn: UInt32 in 0..<500 {
            let id = 2 * turn + 1
            bench.send([
                .priorityUpdate(id, "u=\(turn % 8)"), .priorityUpdate(id + 2, "i"), .get(id),
            ])
            bench.send([.priorityUpdate(id, "u=4")])
            bench.takeFrames()
        }
        #expect(bench.server.failure == nil)
        #expect(bench.server.openStreamCount == 0)
    }
}
