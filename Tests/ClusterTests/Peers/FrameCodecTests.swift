import Cluster
import Ground
import Testing

@Suite("Encoding and decoding of peer frames")
struct FrameCodecTests {
    @Test("A frame header has twelve bytes: size, type, flags, reserved, stream")
    func head() throws {
        let head = PeerFrameHeader(.held, stream: 0x0403_0201, payloadBytes: 0xBA98)
        let written = head.bytes
        let bytes = written.indices.map { written[$0] }
        #expect(bytes == [0x98, 0xBA, 0, 0, 18, 0, 0, 0, 1, 2, 3, 4])
        var flagged = bytes
        (flagged[5], flagged[6], flagged[7]) = (0xFF, 0xFF, 0xFF)
        #expect(try PeerFrameHeader(flagged.span) == head)
    }

    @Test(
        "A decoded frame encodes to the same bytes",
        arguments: 1...4 as ClosedRange<UInt64>)
    func roundTrips(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        var sizesSeen: Set<Int> = []
        for _ in 0..<600 {
            let frame = PeerFrame.random(using: &dice)
            let bytes: [UInt8]
            do {
                bytes = try frame.bytes()
            } catch SendError.tooLong(.payload) {
                // A large head with many tags and a long key.
                continue
            }
            sizesSeen.insert(bytes.count)
            let read = try PeerFrame.read(bytes)
            #expect(read == frame)
            #expect(try read?.bytes() == bytes)
        }
        #expect(sizesSeen.count > 150)
    }

    @Test("Times of an entry convert to another clock, never younger and never fresher")
    func facts() {
        var dice = SplitMix64(seed: 5)
        for _ in 0..<2_000 {
            let sent = Instant(nanoseconds: Int64.random(in: 0...(1 << 50), using: &dice))
            let received = Instant(nanoseconds: Int64.random(in: 0...(1 << 50), using: &dice))
            let age = Interval(nanoseconds: Int64.random(in: -5...(1 << 50), using: &dice))
            let left = Interval(nanoseconds: Int64.random(in: -(1 << 50)...(1 << 50), using: &dice))
            let facts = EntryMetadata(
                size: 9, generatedAt: sent - age, freshUntil: sent + left, flags: [],
                lastModified: nil, date: WallTime(seconds: 3), entityTag: .empty)
            let arrived = PeerEntryFacts(facts, size: 9, now: sent)
                .entryFacts(at: received, requestedAt: received)
            let loss = Interval.milliseconds(1)
            #expect(received - arrived.generatedAt >= age)
            #expect(received - arrived.generatedAt < age + loss)
            #expect(arrived.freshUntil - received <= left)
            #expect(arrived.freshUntil - received + loss > left)
        }
    }

    @Test("The time of validation never becomes later")
    func validated() {
        var dice = SplitMix64(seed: 6)
        for _ in 0..<2_000 {
            let sent = Instant(nanoseconds: Int64.random(in: 0...(1 << 50), using: &dice))
            let age = Interval(nanoseconds: Int64.random(in: -(1 << 40)...(1 << 53), using: &dice))
            let asked = Instant(nanoseconds: Int64.random(in: 0...(1 << 50), using: &dice))
            let way = Interval(nanoseconds: Int64.random(in: 0...(1 << 34), using: &dice))
            let facts = EntryMetadata(
                size: 9, generatedAt: sent, validatedAt: sent - age, freshUntil: sent, flags: [],
                lastModified: nil, date: WallTime(seconds: 3), entityTag: .empty)
            let arrived = PeerEntryFacts(facts, size: 9, now: sent)
                .entryFacts(at: asked + way, requestedAt: asked)
            if arrived.validatedAt == .distantPast { continue }
            #expect(age > .milliseconds(-2) && age < .milliseconds(1 << 32))
            #expect(asked - arrived.validatedAt >= age)
            #expect(asked - arrived.validatedAt < age + .milliseconds(2))
        }
        let unknown = EntryMetadata(
            size: 9, generatedAt: .zero, freshUntil: .zero, flags: [], lastModified: nil,
            date: WallTime(seconds: 3), entityTag: .empty)
        let arrived = PeerEntryFacts(unknown, size: 9, now: .zero).entryFacts(
            at: .zero, requestedAt: .zero)
        #expect(arrived.validatedAt == .distantPast)
    }

    @Test("Endless freshness stays endless")
    func forEver() {
        let facts = EntryMetadata(
            size: 9, generatedAt: Instant(nanoseconds: .min), freshUntil: .distantFuture, flags: [],
            lastModified: nil, date: WallTime(seconds: 3), entityTag: .empty)
        let now = Instant.zero + .seconds(1_000_000)
        let arrived = PeerEntryFacts(facts, size: 9, now: now).entryFacts(at: now, requestedAt: now)
        #expect(arrived.freshUntil - now > .seconds(9_000_000_000))
        #expect(now - arrived.generatedAt > .seconds(9_000_000_000))
    }

    @Test("A touch keeps its age; one from the future has none")
    func touches() {
        let touch = Touch(digest: PeerSamples.name(1).digest, count: 3, lastAccess: 1_000)
        #expect(AgedTouch(touch, now: 1_060).ageSeconds == 60)
        #expect(AgedTouch(touch, now: 1_060).touch(now: 500).lastAccess == 440)
        #expect(AgedTouch(touch, now: 900).ageSeconds == 0)
        #expect(AgedTouch(touch, now: 1_060).touch(now: 50).lastAccess == 0)
    }

    @Test("Text is truncated between characters")
    func text() throws {
        let long = String(repeating: "€", count: 200)
        let read = try PeerFrame.read(Goodbye(.leaving, long).frame)
        #expect(read == .goodbye(Goodbye(.leaving, String(repeating: "€", count: 85))))
    }

    @Test("Without a head there is no entity tag")
    func bareFacts() throws {
        var entry = PeerSamples.notModified
        entry.facts.entityTag = Extent(start: 6, count: 4)
        let read = try PeerFrame.read(PeerReply.notModified(entry).frame(stream: 1))
        #expect(read == .answer(.notModified(PeerSamples.notModified)))
    }
}

@Suite("Gossip larger than a frame")
struct GossipSplitTests {
    private func records(_ count: Int) -> [MemberRecord] {
        (0..<count).map { number in
            var record = PeerSamples.record
            record.member.id = NodeID(low: UInt64(number), high: 0)
            let labels = Array(repeating: String(repeating: "n", count: 62), count: 4)
            let host = labels.joined(separator: ".")
            record.member.address = PeerSamples.address("\(host):\(number + 1)")
            return record
        }
    }

    private func read(_ frames: [[UInt8]]) throws -> [Gossip] {
        try frames.map { frame in
            guard case .gossip(let gossip)? = try PeerFrame.read(frame) else {
                throw PeerFault.malformed(.gossip)
            }
            return gossip
        }
    }

    private func all(_ gossip: [Gossip]) -> [MemberRecord] {
        gossip.flatMap { gossip -> [MemberRecord] in
            switch gossip.message {
            case .ping(_, let news), .ack(_, let news), .updates(let news): news
            case .table(let table, _), .pingRequest(_, _, let table): table
            case .nack: []
            }
        }
    }

    @Test(
        "A table of 256 members with the longest names arrives whole, with one request at its end")
    func table() throws {
        let table = records(256)
        let positions = (0..<2_000).map {
            StreamPosition(process: ProcessID(high: 1, low: UInt64($0)), count: 5)
        }
        let frames = Gossip(.table(table, isRequest: true), positions: positions).frames
        #expect(frames.count == 3)
        let read = try read(frames)
        #expect(all(read) == table)
        #expect(read.flatMap(\.positions) == positions)
        let asks = read.map { gossip -> Bool? in
            if case .table(_, let isQuestion) = gossip.message { isQuestion } else { nil }
        }
        #expect(asks == [false, false, true])
    }

    @Test("A ping with too many updates is sent as updates and then the ping")
    func ping() throws {
        let news = records(220)
        let read = try read(Gossip(.ping(sequence: 8, updates: news)).frames)
        #expect(read.count == 2 && all(read) == news)
        guard case .updates = read[0].message, case .ping(8, _) = read[1].message else {
            Issue.record("\(read)")
            return
        }
    }

    @Test("Updates that fit exactly are one frame, and one record more makes another")
    func edge() throws {
        // 24 bytes of the fixed part, 316 for each record, 28 for each position.
        let news = records(200)
        let fetch = { (count: Int) in
            Gossip(
                .updates(news),
                positions: Array(repeating: PeerSamples.position, count: count)
            ).frames
        }
        let room = (65_536 - 24 - 200 * (4 + 56 + 4 + 251)) / 28
        #expect(fetch(room).count == 1 && fetch(room + 1).count == 2)
        #expect(fetch(room)[0].count <= 65_536 + 12)
    }
}
