import Cluster
import Ground
import Testing

@Suite("Scheduling of frames on a peer connection")
struct PeerLinkOrderTests {
    /// A responder that has sent the head of a body on each of several streams.
    private func answerer(
        streams count: Int, accepting: LinkLimits = .usual, dialling: LinkLimits = .usual
    ) throws -> (pair: PeerPair, streams: [UInt32]) {
        var pair = PeerPair(dialling: dialling, accepting: accepting)
        let streams = try (0..<count).map { _ in
            try pair.dialling.link.sendQuery(PeerSamples.question)
        }
        pair.run()
        for stream in streams {
            try pair.accepting.link.sendReply(.held(size: nil), on: stream)
        }
        pair.run()
        return (pair, streams)
    }

    private func nextData(_ link: inout PeerLink) -> (stream: UInt32, count: Int)? {
        guard case .data(let head) = link.nextOutput() else { return nil }
        return (head.stream, head.payloadBytes)
    }

    @Test("Gossip is sent next, whatever else is queued", arguments: [1, 2, 17, 300])
    func gossipFirst(streams count: Int) throws {
        var (pair, streams) = try answerer(streams: count)
        for stream in streams { pair.accepting.link.addBodyBytes(1 << 20, on: stream) }
        var dice = SplitMix64(seed: UInt64(count))
        for round in 0..<100 {
            for _ in 0..<Int.random(in: 0..<20, using: &dice) {
                _ = pair.accepting.link.nextOutput()
            }
            _ = try? pair.accepting.link.sendQuery(PeerSamples.question)
            let gossip = Gossip(.ping(sequence: UInt32(round), updates: [PeerSamples.record]))
            try pair.accepting.link.send(gossip)
            #expect(pair.accepting.link.nextOutput() == .control(gossip.frames[0]))
        }
    }

    @Test("Heads and other control frames are sent before bodies, in order")
    func controlBeforeData() throws {
        var (pair, streams) = try answerer(streams: 2)
        let waiting = try pair.dialling.link.sendQuery(PeerSamples.question)
        pair.run()
        pair.accepting.link.addBodyBytes(100_000, on: streams[0])
        try pair.accepting.link.send([AgedTouch]())
        try pair.accepting.link.sendReply(.held(size: 5), on: waiting)
        pair.accepting.link.addBodyBytes(5, on: waiting)
        pair.accepting.link.reset(streams[1], .incompleteBody)
        var kinds: [PeerFrameKind] = []
        for _ in 0..<4 {
            switch pair.accepting.link.nextOutput() {
            case .control(let frame): kinds.append(try PeerFrameHeader(frame.span).kind)
            case .data: kinds.append(.data)
            case .idle, .close: Issue.record("nothing to send")
            }
        }
        #expect(kinds == [.touches, .held, .reset, .data])
    }

    @Test("Streams take turns: none gets two frames ahead of another with as much to send")
    func fair() throws {
        var (pair, streams) = try answerer(streams: 7)
        for stream in streams { pair.accepting.link.addBodyBytes(160_000, on: stream) }
        var frames: [UInt32: Int] = [:]
        for _ in 0..<70 {
            let (stream, count) = try #require(nextData(&pair.accepting.link))
            frames[stream, default: 0] += 1
            #expect(count == (frames[stream] == 10 ? 160_000 - 9 * 16_384 : 16_384))
            let all = streams.map { frames[$0] ?? 0 }
            #expect((all.max() ?? 0) - (all.min() ?? 0) <= 1)
        }
        #expect(pair.accepting.link.nextOutput() == .idle)
    }

    @Test("A new stream, or one with a new grant, waits one turn of each other stream")
    func late() throws {
        var (pair, streams) = try answerer(streams: 5)
        for stream in streams.dropLast() {
            pair.accepting.link.addBodyBytes(200_000, on: stream)
        }
        for _ in 0..<9 { _ = pair.accepting.link.nextOutput() }
        pair.accepting.link.addBodyBytes(1, on: streams[4])
        var order: [UInt32] = []
        for _ in 0..<5 { order.append(try #require(nextData(&pair.accepting.link)).stream) }
        #expect(order.last == streams[4] && Set(order).count == 5)
    }

    @Test("A stream without credit delays no other, and continues with its next grant")
    func stalled() throws {
        var (pair, streams) = try answerer(streams: 3, dialling: .limits(windowBytes: 20_000))
        for stream in streams { pair.accepting.link.addBodyBytes(50_000, on: stream) }
        pair.run()
        #expect(streams.map { pair.dialling.arrived[$0] } == [20_000, 20_000, 20_000])
        // The readers of two continue, the first is stuck.
        for _ in 0..<20 {
            for stream in streams.dropFirst() { _ = pair.dialling.take(stream) }
            pair.run()
        }
        #expect(streams.map { pair.dialling.arrived[$0] } == [20_000, 0, 0])
        pair.accepting.link.completeBody(on: streams[1])
        pair.run()
        let whole = StreamEnd(size: 50_000)
        #expect(pair.dialling.takeEvents().last == .bodyEnded(stream: streams[1], whole))
        while pair.dialling.take(streams[0]) > 0 { pair.run() }
        pair.accepting.link.completeBody(on: streams[0])
        pair.run()
        #expect(pair.dialling.takeEvents().last == .bodyEnded(stream: streams[0], whole))
    }

    @Test("No frame of a body exceeds the receiver's limit")
    func smallFrames() throws {
        var (pair, streams) = try answerer(streams: 1, dialling: .limits(dataBytesMax: 1_500))
        pair.accepting.link.addBodyBytes(4_000, on: streams[0])
        let counts = (0..<3).compactMap { _ in nextData(&pair.accepting.link)?.count }
        #expect(counts == [1_500, 1_500, 1_000])
    }

    @Test("No grant is sent beyond the end of a body")
    func noGrant() throws {
        var (pair, stream) = try PeerPair.asked(response: .held(size: 262_144))
        pair.accepting.link.addBodyBytes(262_144, on: stream)
        while true {
            let bytes = pair.accepting.bytes(framesMax: 1)
            if bytes.isEmpty { break }
            pair.dialling.receive(bytes)
            _ = pair.dialling.take(stream)
        }
        #expect(pair.dialling.link.nextOutput() == .idle)
        #expect(pair.dialling.arrived[stream] == 0)
    }
}

@Suite("Flow control between peers")
struct PeerLinkCreditTests {
    @Test(
        "The bytes sent never exceed the grants, and both ends agree on the sum",
        arguments: 1...4 as ClosedRange<UInt64>)
    func conserved(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        let window = UInt32.random(in: 1_024...40_000, using: &dice)
        var (pair, stream) = try PeerPair.asked(
            dialling: .limits(windowBytes: window), response: .held(size: nil))
        pair.run()
        var (ready, sent, granted, taken) = (0, 0, Int(window), 0)
        for _ in 0..<1_500 {
            switch Int.random(in: 0..<4, using: &dice) {
            case 0:
                let count = Int.random(in: 0...20_000, using: &dice)
                pair.accepting.link.addBodyBytes(count, on: stream)
                ready += count
            case 1:
                taken += pair.dialling.take(
                    stream, atMost: Int.random(in: 0...Int(window), using: &dice))
            case 2:
                let bytes = pair.dialling.bytes(framesMax: 1)
                guard !bytes.isEmpty else { continue }
                guard case .credit(let count)? = try PeerFrame.read(bytes) else {
                    Issue.record("not a grant: \(bytes)")
                    return
                }
                granted += Int(count)
                // At most a window lies between the bytes taken and the bytes granted.
                #expect(granted <= taken + Int(window))
                pair.accepting.receive(bytes)
            default:
                let bytes = pair.accepting.bytes(framesMax: 1)
                sent += max(0, bytes.count - PeerFrameHeader.bytesCount)
                #expect(sent <= granted && sent <= ready)
                // Nothing is sent only if nothing may be.
                #expect(!bytes.isEmpty || sent == min(ready, granted))
                pair.dialling.receive(bytes)
            }
            #expect(pair.dialling.arrived[stream, default: 0] == sent - taken)
        }
        #expect(sent > 50_000 && pair.dialling.fault == nil && pair.accepting.fault == nil)
    }

    @Test("A grant is sent when a quarter of the window has been taken, and not before")
    func grants() throws {
        var (pair, stream) = try PeerPair.asked(
            dialling: .limits(windowBytes: 4_000), response: .held(size: nil))
        pair.accepting.link.addBodyBytes(4_000, on: stream)
        pair.run()
        #expect(pair.dialling.take(stream, atMost: 999) == 999)
        #expect(pair.dialling.link.nextOutput() == .idle)
        #expect(pair.dialling.take(stream, atMost: 1) == 1)
        #expect(
            pair.dialling.link.nextOutput() == .control(StreamCredit.frame(1_000, stream: stream)))
    }

    @Test("A byte beyond the grant is a fault")
    func beyond() throws {
        var (pair, stream) = try PeerPair.asked(
            dialling: .limits(windowBytes: 1_024), response: .held(size: nil))
        pair.accepting.link.addBodyBytes(2_000, on: stream)
        pair.run()
        #expect(pair.dialling.arrived[stream] == 1_024 && pair.dialling.fault == nil)
        pair.dialling.receive([1, 0, 0, 0, 25, 0, 0, 0, 1, 0, 0, 0, 9])
        #expect(pair.dialling.fault == .creditExceeded(stream))
    }
}
