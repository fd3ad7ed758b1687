import Cluster
import Ground
import Testing
import Trials

@Suite("Protocol errors that end a connection")
struct PeerLinkFaultTests {
    /// The state of an end when a frame arrives that is not allowed.
    private enum Scene {
        /// Before HELLO.
        case greeting
        /// Without queries.
        case idle
        /// This side has sent a query on stream 1.
        case asking
        /// The head of a body of 100 bytes has arrived on stream 1.
        case receiving
        /// The reply on stream 1 has ended.
        case answered
        /// The other side has sent a query on stream 2.
        case replying
    }

    private struct Case: Sendable, CustomTestStringConvertible {
        let scene: Scene
        let frame: [UInt8]
        let fault: PeerFault

        init(_ scene: Scene, _ frame: [UInt8], _ fault: PeerFault) {
            (self.scene, self.frame, self.fault) = (scene, frame, fault)
        }

        var testDescription: String { "\(scene): \(fault)" }
    }

    private static func bytes(_ frame: PeerFrame, on stream: UInt32) -> [UInt8] {
        (try? frame.bytes(stream: stream)) ?? []
    }

    private static func data(_ count: Int, on stream: UInt32) -> [UInt8] {
        let head = PeerFrameHeader(.data, stream: stream, payloadBytes: count).bytes
        return head.indices.map { head[$0] } + [UInt8](repeating: 0, count: count)
    }

    private static let ask = PeerFrame.question(PeerSamples.question)
    private static let end = PeerFrame.end(StreamEnd(size: 100))
    private static let halfEnd = PeerFrame.end(StreamEnd(size: 50))
    private static let held = PeerFrame.answer(.held(size: 100))
    private static let absent = PeerFrame.answer(.absent)

    private static func onStream(_ frame: [UInt8], _ stream: UInt8) -> [UInt8] {
        var frame = frame
        frame[8] = stream
        return frame
    }

    private static let cases: [Case] = [
        Case(.greeting, Gossip(.nack(sequence: 1)).frames[0], .helloMissing),
        Case(.greeting, bytes(ask, on: 2), .helloMissing),
        Case(.greeting, data(5, on: 1), .helloMissing),
        Case(.greeting, onStream(Hello.of(2).frame, 4), .helloMissing),
        Case(.greeting, [0, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0], .helloMissing),
        Case(.idle, Hello.of(2).frame, .helloRepeated),
        Case(.idle, onStream(Hello.of(2).frame, 1), .streamOnConnectionFrame(.hello)),
        Case(.idle, onStream(Goodbye(.leaving).frame, 1), .streamOnConnectionFrame(.goodbye)),
        Case(
            .idle, onStream(Gossip(.nack(sequence: 1)).frames[0], 2),
            .streamOnConnectionFrame(.gossip)),
        Case(
            .idle, onStream(bytes(.invalidations(.roundRequest(1, digest: 2)), on: 0), 1),
            .streamOnConnectionFrame(.round)),
        Case(.idle, bytes(ask, on: 0), .streamIDOutOfOrder(0)),
        Case(.idle, bytes(ask, on: 3), .streamIDOutOfOrder(3)),
        Case(.idle, bytes(absent, on: 1), .streamNotOpen(1)),
        Case(.idle, bytes(held, on: 2), .streamNotOpen(2)),
        Case(.idle, bytes(end, on: 1), .streamNotOpen(1)),
        Case(.idle, data(5, on: 1), .streamNotOpen(1)),
        Case(.idle, data(0, on: 1), .emptyFrame(.data)),
        Case(.idle, StreamReset.frame(.incompleteBody, stream: 0), .streamNotOpen(0)),
        Case(.idle, StreamReset.frame(.incompleteBody, stream: 1), .streamNotOpen(1)),
        Case(.idle, StreamReset.frame(.incompleteBody, stream: 2), .streamNotOpen(2)),
        Case(.idle, StreamCredit.frame(1, stream: 2), .streamNotOpen(2)),
        Case(.idle, StreamCredit.frame(1, stream: 0), .streamNotOpen(0)),
        Case(.asking, bytes(absent, on: 3), .streamNotOpen(3)),
        Case(.asking, data(5, on: 1), .unexpectedFrame(.data)),
        Case(.asking, bytes(end, on: 1), .unexpectedFrame(.end)),
        Case(.asking, StreamCredit.frame(1, stream: 1), .streamNotOpen(1)),
        Case(.receiving, bytes(held, on: 1), .unexpectedFrame(.held)),
        Case(.receiving, bytes(absent, on: 1), .unexpectedFrame(.absent)),
        Case(.receiving, bytes(.answer(.fetching), on: 1), .unexpectedFrame(.fetching)),
        Case(.receiving, data(101, on: 1), .sizeMismatch(1)),
        Case(.receiving, data(99, on: 1) + bytes(end, on: 1), .sizeMismatch(1)),
        Case(.receiving, bytes(end, on: 1), .sizeMismatch(1)),
        Case(.receiving, data(50, on: 1) + bytes(halfEnd, on: 1), .sizeMismatch(1)),
        Case(.answered, bytes(absent, on: 1), .streamNotOpen(1)),
        Case(.answered, data(5, on: 1), .streamNotOpen(1)),
        Case(.answered, bytes(end, on: 1), .streamNotOpen(1)),
        Case(.answered, StreamReset.frame(.incompleteBody, stream: 1), .streamNotOpen(1)),
        Case(.replying, bytes(ask, on: 2), .streamIDOutOfOrder(2)),
        Case(.replying, bytes(absent, on: 2), .streamNotOpen(2)),
        Case(
            .replying, StreamCredit.frame(UInt32(Int32.max) - 262_143, stream: 2),
            .creditOverflow(2)
        ),
        Case(.idle, [1, 0, 1, 0, 18, 0, 0, 0, 1, 0, 0, 0], .tooLong(.payload)),
        Case(.idle, [1, 64, 0, 0, 25, 0, 0, 0, 1, 0, 0, 0], .tooLong(.data)),
        Case(.idle, [3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9], .truncated(.gossip)),
    ]

    private func end(in scene: Scene) throws -> PeerEnd {
        var pair = PeerPair()
        switch scene {
        case .greeting: return PeerEnd(.dialling, hello: .of(1))
        case .idle: break
        case .asking: pair = try PeerPair.asked().pair
        case .receiving: pair = try PeerPair.asked(response: .held(size: 100)).pair
        case .answered: pair = try PeerPair.asked(response: .absent).pair
        case .replying: _ = try pair.accepting.link.sendQuery(PeerSamples.question)
        }
        pair.run()
        return pair.dialling
    }

    @Test(
        "A frame that is not allowed is a fault with its name, and is answered with GOODBYE",
        arguments: cases)
    private func faults(_ story: Case) throws {
        var end = try end(in: story.scene)
        end.receive(story.frame)
        // An invalid header is reported by the shell.
        if let fault = end.fault, end.link.fault == nil { end.link.headerInvalid(fault) }
        #expect(end.fault == story.fault && end.link.fault == story.fault)
        let sent = end.bytes()
        let goodbye = story.fault.goodbye.frame
        #expect(Array(sent.suffix(goodbye.count)) == goodbye)
        #expect(end.link.state == .ended)
        // Everything after it is ignored.
        end.receive(Self.data(4, on: 9) + Hello.of(3).frame)
        #expect(end.link.fault == story.fault)
    }

    @Test("Frames that are allowed in each of these states are no fault")
    func noFaults() throws {
        let may: [(Scene, [UInt8])] = [
            (.greeting, Hello.of(2).frame), (.greeting, Goodbye(.leaving).frame),
            (.idle, Self.bytes(Self.ask, on: 2)), (.idle, Self.bytes(Self.ask, on: 8)),
            (.asking, Self.bytes(Self.absent, on: 1)), (.asking, Self.bytes(Self.held, on: 1)),
            (.asking, StreamReset.frame(.overloaded, stream: 1)),
            (.receiving, Self.data(100, on: 1) + Self.bytes(Self.end, on: 1)),
            (.receiving, Self.data(99, on: 1) + Self.data(1, on: 1)),
            (.replying, StreamReset.frame(.cancelled, stream: 2)),
            (
                .replying,
                StreamReset.frame(.cancelled, stream: 2) + StreamCredit.frame(9, stream: 2)
                    + StreamReset.frame(.cancelled, stream: 2)
            ),
            (.replying, StreamCredit.frame(UInt32(Int32.max) - 262_144, stream: 2)),
            (.idle, [1, 0, 0, 0, 99, 255, 255, 255, 9, 0, 0, 0, 7]),
        ]
        for (scene, frame) in may {
            var end = try end(in: scene)
            end.receive(frame)
            #expect(end.fault == nil, "\(scene) \(frame)")
        }
    }
}

@Suite("Limits on a peer's demands")
struct PeerLinkLimitTests {
    @Test("Beyond the other side's limit a query is refused at the sender, and is a fault")
    func streams() throws {
        var pair = PeerPair(accepting: .limits(streamsMax: 3))
        let streams = try (0..<3).map { _ in try pair.dialling.link.sendQuery(PeerSamples.question)
        }
        #expect(throws: SendError.tooManyStreams) {
            try pair.dialling.link.sendQuery(PeerSamples.question)
        }
        pair.run()
        try pair.accepting.link.sendReply(.absent, on: streams[1])
        pair.run()
        _ = try pair.dialling.link.sendQuery(PeerSamples.question)
        pair.run()
        #expect(pair.accepting.fault == nil)
        pair.accepting.receive(try PeerFrame.question(PeerSamples.question).bytes(stream: 9))
        #expect(pair.accepting.fault == .tooManyStreams)
    }

    @Test("A query that is too long is refused and uses no stream")
    func tooLong() throws {
        var pair = PeerPair()
        var question = PeerSamples.question
        question.key = Array(repeating: 1, count: 16_385)
        #expect(throws: SendError.tooLong(.key)) { try pair.dialling.link.sendQuery(question) }
        #expect(try pair.dialling.link.sendQuery(PeerSamples.question) == 1)
        #expect(pair.dialling.link.outboundQueryCount == 1)
    }

    @Test("A head that is too long is refused, and the stream can still be answered")
    func headTooLong() throws {
        var (pair, stream) = try PeerPair.asked()
        var entry = PeerSamples.entry
        entry.head += Array(repeating: 1, count: 65_536)
        #expect(throws: SendError.tooLong(.payload)) {
            try pair.accepting.link.sendReply(.held(entry), on: stream)
        }
        try pair.accepting.link.sendReply(.declined(.tooLarge), on: stream)
        pair.run()
        #expect(
            pair.dialling.takeEvents()
                == [.replyReceived(stream: stream, .declined(.tooLarge))])
    }

    @Test("To a peer that does not read, queries and heads are refused, gossip is not")
    func queueFull() throws {
        var pair = PeerPair()
        let theirs = try pair.accepting.link.sendQuery(PeerSamples.question)
        pair.run()
        var question = PeerSamples.question
        question.key = Array(repeating: 1, count: 16_384)
        var asked = 0
        while (try? pair.dialling.link.sendQuery(question)) != nil { asked += 1 }
        #expect((50..<70).contains(asked))
        #expect(throws: SendError.queueFull) { try pair.dialling.link.sendQuery(question) }
        #expect(throws: SendError.queueFull) {
            try pair.dialling.link.sendReply(.held(size: nil), on: theirs)
        }
        try pair.dialling.link.sendReply(.declined(.overloaded), on: theirs)
        try pair.dialling.link.send(Gossip(.nack(sequence: 1)))
        pair.run()
        #expect(pair.accepting.fault == nil && pair.dialling.fault == nil)
        #expect(pair.dialling.link.queuedBytes == 0)
        _ = try pair.dialling.link.sendQuery(question)
    }

    @Test("FETCHING is omitted while much is queued")
    func fetching() throws {
        var (pair, stream) = try PeerPair.asked()
        for _ in 0..<100_000 { try pair.accepting.link.sendReply(.fetching, on: stream) }
        #expect(pair.accepting.link.queuedBytes < 66_000)
        pair.run()
        try pair.accepting.link.sendReply(.fetching, on: stream)
        #expect(pair.accepting.link.queuedBytes > 0)
    }

    @Test("A peer that keeps sending queries and reads nothing is disconnected")
    func notReading() throws {
        var pair = PeerPair()
        var bytesMost = 0
        for round in 0..<200_000 where pair.accepting.link.isOpen {
            let stream = UInt32(2 * round + 1)
            pair.accepting.receive(
                try PeerFrame.question(PeerSamples.question).bytes(stream: stream))
            try pair.accepting.link.sendReply(.absent, on: stream)
            bytesMost = max(bytesMost, pair.accepting.link.queuedBytes)
            _ = pair.accepting.takeEvents()
        }
        #expect(pair.accepting.link.fault == .slowReader)
        #expect(bytesMost < 5 << 20)
        #expect(pair.accepting.bytes() == PeerFault.slowReader.goodbye.frame)
    }

    @Test("Resets and unknown frames are tolerated up to a rate")
    func flood() throws {
        let junk: [UInt8] = [0, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0]
        let burst = Array(repeatElement(junk, count: 64).joined())
        var pair = PeerPair()
        var now = Instant.zero
        // 10,000 in a second are tolerated for ever.
        for _ in 0..<3_000 {
            now = now + .milliseconds(7)
            pair.accepting.receive(burst, now: now)
        }
        #expect(pair.accepting.fault == nil)
        #expect(pair.accepting.link.skippedFrames == 192_000)
        // 64,000 in a second are not, except once if they had piled up.
        var frames = 0
        while pair.accepting.fault == nil, frames < 1_000_000 {
            now = now + .milliseconds(1)
            pair.accepting.receive(burst, now: now)
            frames += 64
        }
        #expect(pair.accepting.fault == .flood)
        #expect((65_536..<100_000).contains(frames))
    }

    @Test(
        "A peer that sends and resets queries repeatedly is disconnected",
        .disabled(if: Trials.isReduced)
    )
    func rapidReset() throws {
        var pair = PeerPair()
        var rounds = 0
        while pair.accepting.fault == nil, rounds < 200_000 {
            let stream = UInt32(2 * rounds + 1)
            pair.accepting.receive(
                try PeerFrame.question(PeerSamples.question).bytes(stream: stream)
                    + StreamReset.frame(.cancelled, stream: stream))
            _ = pair.accepting.bytes()
            _ = pair.accepting.takeEvents()
            rounds += 1
        }
        #expect(pair.accepting.fault == .flood)
        #expect(rounds == 65_537)
    }
}
