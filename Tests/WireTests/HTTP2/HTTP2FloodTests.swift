import Ground
import Testing
import Wire

@Suite struct HTTP2FloodGuardTests {
    @Test("A budget can be spent, and no more")
    func spent() {
        var flood = FloodGuard(unitsMax: 10, unitsPerSecond: 5)
        let spent = (0..<11).map { _ in flood.spend(1, now: .zero) }
        #expect(spent == Array(repeating: true, count: 10) + [false])
    }

    @Test("Time refills a budget, up to its capacity")
    func refilled() {
        var flood = FloodGuard(unitsMax: 10, unitsPerSecond: 5)
        _ = flood.spend(10, now: .zero)
        let later = Instant.zero + .seconds(1)
        let isFine = flood.spend(5, now: later)
        #expect(isFine)
        let muchLater = Instant.zero + .seconds(1_000_000_000)
        let spent = (0..<11).map { _ in flood.spend(1, now: muchLater) }
        #expect(spent.filter { $0 }.count == 10)
    }

    @Test("A peer at the refill rate may continue for ever, a faster one may not")
    func rates() {
        func frames(perSecond: Int64) -> Int {
            var flood = FloodGuard(unitsMax: 100, unitsPerSecond: 50)
            for index in 0..<10_000 {
                let now = Instant.zero + .milliseconds(Int64(index) * 1000 / perSecond)
                if !flood.spend(1, now: now) { return index }
            }
            return .max
        }
        #expect(frames(perSecond: 50) == .max)
        #expect((150...250).contains(frames(perSecond: 100)))
    }

    @Test("Productive work refills a budget")
    func earned() {
        var flood = FloodGuard(unitsMax: 10, unitsPerSecond: 0)
        for _ in 0..<1000 {
            let isFine = flood.spend(4, now: .zero)
            #expect(isFine)
            flood.credit(4)
        }
        flood.credit(1000)
        let isMore = flood.spend(11, now: .zero)
        #expect(!isMore)
    }
}

/// A flood, and the turns after which it must have ended the connection.
struct FloodCase: CustomTestStringConvertible, Sendable {
    var name: String
    /// Frames sent once, before `frames` are repeated.
    var first: [RawFrame] = []
    var frames: @Sendable (UInt32) -> [RawFrame]
    var turnsMax = 4000
    var testDescription: String { name }
}

@Suite struct HTTP2FloodTests {
    static let cases: [FloodCase] = [
        FloodCase(name: "requests that are reset at once (CVE-2023-44487)") { turn in
            [.get(2 * turn + 1), .reset(2 * turn + 1)]
        },
        FloodCase(name: "requests that are malformed (CVE-2025-8671)") { turn in
            [.headers(2 * turn + 1, RawHPACK.request("POST", [("te", "gzip")]))]
        },
        FloodCase(name: "SETTINGS (CVE-2019-9515)") { _ in [.settings([(4, 1000)])] },
        FloodCase(name: "empty SETTINGS") { _ in [.settings()] },
        FloodCase(name: "SETTINGS acknowledged for nothing") { _ in [.settingsAck] },
        FloodCase(name: "PING (CVE-2019-9512)") { _ in [.ping()] },
        FloodCase(name: "PING answers nobody asked for") { _ in [.ping("8 bytes.", RawFrame.ack)] },
        FloodCase(name: "empty DATA (CVE-2019-9518)", first: [.post(1)]) { _ in [.data(1, [])] },
        FloodCase(name: "DATA of one byte", first: [.post(1)]) { _ in [.data(1, [0])] },
        FloodCase(name: "DATA of padding only", first: [.post(1)]) { _ in
            [.data(1, [2, 0, 0], RawFrame.padded)]
        },
        FloodCase(name: "empty HEADERS (CVE-2019-9518)") { turn in
            [.headers(2 * turn + 1, []), .continuation(2 * turn + 1, [])]
        },
        FloodCase(name: "PRIORITY (CVE-2019-9513)") { turn in
            [.priority(2 * (turn % 50) + 1, on: 0)]
        },
        FloodCase(name: "PRIORITY_UPDATE", first: [.post(1)]) { turn in
            [.priorityUpdate(1, "u=\(turn % 8)")]
        },
        FloodCase(name: "WINDOW_UPDATE of the connection") { _ in [.window(0, 1)] },
        FloodCase(name: "WINDOW_UPDATE of a stream", first: [.get(1)]) { _ in [.window(1, 1)] },
        FloodCase(name: "unknown frames") { _ in [RawFrame(type: 0xFE)] },
        FloodCase(name: "GOAWAY", first: [.post(1)]) { _ in [.goAway()] },
    ]

    @Test("A flood ends its connection, and no other", arguments: cases)
    func floods(_ flood: FloodCase) {
        let bench = ServerBench(HTTP2Settings(concurrentStreamsMax: 4000))
        let other = ServerBench(answerBytes: 10)
        bench.greet()
        other.greet()
        bench.send(flood.first)
        var frames = bench.takeFrames()
        var turn: UInt32 = 0
        while bench.server.failure == nil, turn < flood.turnsMax {
            bench.send(flood.frames(turn))
            frames += bench.takeFrames()
            turn += 1
        }
        #expect(turn < flood.turnsMax)
        frames += bench.takeFrames()
        let goAway = frames.first { $0.type == 7 }
        let code = goAway?.number(at: 4)
        #expect(code == HTTP2ErrorCode.enhanceYourCalm.rawValue || code == 1 && turn < 2)
        #expect(bench.server.isFinished)
        other.send([.get(1)])
        #expect(other.takeFrames().map(\.type) == [1, 0])
    }

    @Test("A header block in too many frames ends the connection (CVE-2024-28182)")
    func continuations() {
        let bench = ServerBench().greet()
        bench.send([.headers(1, RawHPACK.request(), RawFrame.endStream)])
        for _ in 0..<20 { bench.send([.continuation(1, RawHPACK.literal("a", "b"), 0)]) }
        #expect(bench.takeFrames().first { $0.type == 7 }?.number(at: 4) == 11)
        #expect(bench.server.isFinished)
    }

    @Test("A client that reads nothing ends its connection, and the queue stays small")
    func unread() {
        let bench = ServerBench(HTTP2Settings(floodUnitsMax: 1_000_000)).greet()
        for _ in 0..<2000 where bench.isOpen { bench.send([.ping()]) }
        #expect(bench.server.failure == .enhanceYourCalm)
        #expect(bench.server.queuedFrames <= 514)
    }

    @Test("A head above the limit is refused, and the connection and its table continue")
    func largeHead() {
        let bench = ServerBench(HTTP2Settings(headBytesMax: 2000), answerBytes: 0).greet()
        let long = String(repeating: "a", count: 2000)
        bench.send([
            .headers(1, RawHPACK.request("GET", [("x", long)]) + [0x40, 0x01, 0x61, 0x01, 0x62]),
            .headers(3, RawHPACK.request() + [0xBE]),
        ])
        let events = bench.takeEvents()
        #expect(events.first == .refused(1, 431))
        guard case .request(3, let head, _) = events.last else {
            Issue.record("no request")
            return
        }
        #expect(head.hasSuffix("\r\na: b\r\n\r\n"))
    }

    @Test("Too many field lines are refused")
    func manyFields() {
        let bench = ServerBench(HTTP2Settings(fieldsMax: 5)).greet()
        let lines = (0..<6).map { ("x-\($0)", "") }
        bench.send([.headers(1, RawHPACK.request("GET", lines))])
        #expect(bench.takeEvents() == [.refused(1, 431)])
    }

    @Test("Compressed bytes that expand to a huge head end the connection")
    func bomb() {
        let bench = ServerBench().greet()
        let value = String(repeating: "v", count: 3900)
        let entry = [0x40] + RawHPACK.string("a") + RawHPACK.string(value)
        bench.send([
            .headers(1, RawHPACK.request() + entry + [UInt8](repeating: 0xBE, count: 10_000))
        ])
        #expect(bench.takeFrames().first { $0.type == 7 }?.number(at: 4) == 11)
        #expect(bench.server.isFinished)
    }

    @Test("A busy legitimate client is not taken for a flood")
    func honest() {
        let bench = ServerBench(answerBytes: 50_000).greet()
        for turn: UInt32 in 0..<2000 {
            let id = 2 * turn + 1
            bench.send([.priorityUpdate(id, "u=2"), .get(id)])
            let sent = bench.takeFrames().filter { $0.type == 0 }.map(\.payload.count)
            bench.send(sent.flatMap { [.window(0, UInt32($0)), .window(id, UInt32($0))] })
        }
        #expect(bench.server.failure == nil)
    }
}
