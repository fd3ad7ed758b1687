import Cluster
import Ground
import Testing
import Trials

@Suite("Random exchanges between two nodes")
struct PeerLinkExchangeTests {
    @Test(
        "Everything arrives once, in the order of its stream, however the bytes are split",
        arguments: Trials.seeds(1...6))
    func exchange(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        var talk = Talk(using: &dice)
        for _ in 0..<1_500 { try talk.step(using: &dice) }
        try talk.finish(using: &dice)
        for (end, talker) in [
            (talk.pair.dialling, talk.dialling), (talk.pair.accepting, talk.accepting),
        ] {
            #expect(end.fault == nil && end.misplaced == 0)
            #expect(end.link.outboundQueryCount == 0 && end.link.inboundQueryCount == 0)
            #expect(talker.open.isEmpty && talker.owed.isEmpty)
            #expect(talker.gossipHeard == talker.gossipExpected)
        }
        #expect(talk.dialling.ended > 20 && talk.accepting.ended > 20)
        #expect(talk.dialling.gossipHeard > 50)
        #expect(talk.dialling.cancelled + talk.accepting.cancelled > 0)
        #expect(talk.dialling.broken + talk.accepting.broken > 0)
    }

    @Test("The same seed gives the same bytes on the wire")
    func repeatable() throws {
        let digests = try (0..<2).map { _ in
            var dice = SplitMix64(seed: 99)
            var talk = Talk(using: &dice)
            for _ in 0..<500 { try talk.step(using: &dice) }
            try talk.finish(using: &dice)
            return talk.wireDigest
        }
        #expect(digests[0] == digests[1])
    }
}

/// The queries of a node, those it received, and its outstanding replies.
private struct Talker {
    /// The replies so far to each open query.
    var open: [UInt32: [PeerReply]] = [:]
    /// The queries to be answered, in order of arrival; and bodies with their remaining bytes.
    var owed: [UInt32] = []
    var bodies: [(stream: UInt32, left: Int)] = []
    var ended = 0
    var broken = 0
    var cancelled = 0
    /// The number of the last gossip message.
    var gossipSaid: UInt32 = 0
    var gossipHeard: UInt32 = 0
    var gossipExpected: UInt32 = 0
}

/// Two nodes and a wire that delays bytes at random.
private struct Talk {
    var pair: PeerPair
    var dialling = Talker()
    var accepting = Talker()
    private var there: [UInt8] = []
    private var back: [UInt8] = []
    private var wire = XXH64(seed: 0)

    init(using dice: inout SplitMix64) {
        let limits = { (dice: inout SplitMix64) in
            LinkLimits.limits(
                streamsMax: UInt32.random(in: 1...40, using: &dice),
                windowBytes: UInt32.random(in: 1_024...20_000, using: &dice),
                dataBytesMax: UInt32.random(in: 1_024...6_000, using: &dice))
        }
        pair = PeerPair(dialling: limits(&dice), accepting: limits(&dice))
    }

    var wireDigest: UInt64 { wire.finish() }

    mutating func step(using dice: inout SplitMix64) throws {
        if Bool.random(using: &dice) {
            try act(&pair.dialling, &dialling, using: &dice)
        } else {
            try act(&pair.accepting, &accepting, using: &dice)
        }
        move(using: &dice)
        try hear()
    }

    /// Sends all outstanding replies and reads until nothing is open.
    mutating func finish(using dice: inout SplitMix64) throws {
        var rounds = 0
        repeat {
            try settle(&pair.dialling, &dialling)
            try settle(&pair.accepting, &accepting)
            for _ in 0..<50 { move(using: &dice) }
            try hear()
            rounds += 1
        } while rounds < 2_000
            && pair.dialling.link.outboundQueryCount + pair.accepting.link.outboundQueryCount
                + there.count
                + back.count + pair.dialling.link.queuedBytes + pair.accepting.link.queuedBytes > 0
        dialling.gossipExpected = accepting.gossipSaid
        accepting.gossipExpected = dialling.gossipSaid
    }

    private func act(_ end: inout PeerEnd, _ talker: inout Talker, using dice: inout SplitMix64)
        throws
    {
        switch Int.random(in: 0..<10, using: &dice) {
        case 0, 1:
            var question = PeerSamples.question
            question.key = dice.bytes(max: 300)
            guard let stream = try? end.link.sendQuery(question) else { return }
            talker.open[stream] = []
        case 2:
            talker.gossipSaid += 1
            try end.link.send(Gossip(.nack(sequence: talker.gossipSaid)))
        case 3, 4: try answerOne(&end, &talker, using: &dice)
        case 5, 6: feed(&end, &talker, using: &dice)
        case 7:
            for stream in talker.open.keys.sorted() {
                _ = end.take(stream, atMost: Int.random(in: 0...50_000, using: &dice))
            }
        case 8:
            let open = talker.open.keys.sorted()
            guard Int.random(in: 0..<8, using: &dice) == 0,
                let stream = open.randomElement(using: &dice)
            else { return }
            end.link.cancel(stream)
            talker.open[stream] = nil
            talker.cancelled += 1
        default:
            try end.link.send([AgedTouch.random(using: &dice)])
        }
    }

    private func answerOne(
        _ end: inout PeerEnd, _ talker: inout Talker, using dice: inout SplitMix64
    ) throws {
        guard !talker.owed.isEmpty else { return }
        let index = Int.random(in: talker.owed.indices, using: &dice)
        let stream = talker.owed[index]
        switch Int.random(in: 0..<5, using: &dice) {
        case 0: try end.link.sendReply(.fetching, on: stream)
        case 1:
            try end.link.sendReply(.absent, on: stream)
            talker.owed.remove(at: index)
        default:
            let size = Int.random(in: 0...50_000, using: &dice)
            let isSaid = Bool.random(using: &dice)
            try end.link.sendReply(.held(size: isSaid ? UInt64(size) : nil), on: stream)
            talker.owed.remove(at: index)
            talker.bodies.append((stream, size))
        }
    }

    private func feed(_ end: inout PeerEnd, _ talker: inout Talker, using dice: inout SplitMix64) {
        guard !talker.bodies.isEmpty else { return }
        let index = Int.random(in: talker.bodies.indices, using: &dice)
        let body = talker.bodies[index]
        if Int.random(in: 0..<25, using: &dice) == 0 {
            end.link.reset(body.stream, .incompleteBody)
            talker.bodies.remove(at: index)
            return
        }
        let count = min(body.left, Int.random(in: 0...20_000, using: &dice))
        end.link.addBodyBytes(count, on: body.stream)
        talker.bodies[index].left -= count
        guard body.left == count else { return }
        talker.bodies.remove(at: index)
        end.link.completeBody(on: body.stream)
    }

    private func settle(_ end: inout PeerEnd, _ talker: inout Talker) throws {
        for stream in talker.owed { try end.link.sendReply(.behind, on: stream) }
        talker.owed = []
        for body in talker.bodies {
            end.link.addBodyBytes(body.left, on: body.stream)
            end.link.completeBody(on: body.stream)
        }
        talker.bodies = []
        for stream in talker.open.keys.sorted() { _ = end.take(stream) }
    }

    /// Sends a few frames and delivers some bytes in each direction.
    private mutating func move(using dice: inout SplitMix64) {
        let sent = (
            pair.dialling.bytes(framesMax: Int.random(in: 0..<4, using: &dice)),
            pair.accepting.bytes(framesMax: Int.random(in: 0..<4, using: &dice))
        )
        wire.update(sent.0.span)
        wire.update(sent.1.span)
        there += sent.0
        back += sent.1
        let pieces = (piece(there.count, using: &dice), piece(back.count, using: &dice))
        pair.accepting.receive(there.prefix(pieces.0))
        pair.dialling.receive(back.prefix(pieces.1))
        there.removeFirst(pieces.0)
        back.removeFirst(pieces.1)
    }

    private func piece(_ count: Int, using dice: inout SplitMix64) -> Int {
        let most = [1, 13, 3_000, 100_000].randomElement(using: &dice) ?? 1
        return min(count, Int.random(in: 0...most, using: &dice))
    }

    private mutating func hear() throws {
        try hear(&pair.dialling, &dialling)
        try hear(&pair.accepting, &accepting)
    }

    private func hear(_ end: inout PeerEnd, _ talker: inout Talker) throws {
        for event in end.takeEvents() {
            switch event {
            case .queryReceived(let stream, _): talker.owed.append(stream)
            case .queryCancelled(let stream):
                talker.owed.removeAll { $0 == stream }
                talker.bodies.removeAll { $0.stream == stream }
            case .replyReceived(let stream, let response):
                let replies = try #require(talker.open[stream])
                #expect(!replies.contains { $0 != .fetching })
                talker.open[stream] = response.isFinal ? nil : replies + [response]
            case .bodyEnded(let stream, let whole):
                let replies = talker.open.removeValue(forKey: stream)
                guard case .held? = replies?.last else {
                    Issue.record("a body without a head")
                    continue
                }
                #expect(Int(whole.size) == end.receivedBytes[stream] ?? 0)
                talker.ended += 1
            case .streamReset(let stream, _):
                #expect(talker.open.removeValue(forKey: stream) != nil)
                talker.broken += 1
            case .gossipReceived(let gossip):
                talker.gossipHeard += 1
                #expect(gossip.message == .nack(sequence: talker.gossipHeard))
            case .touchesReceived(let touches): #expect(touches.count == 1)
            default: Issue.record("\(event)")
            }
        }
    }
}
