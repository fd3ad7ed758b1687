import Cluster
import Ground
import Testing

@Suite("Invalidations on a connection")
struct PeerLinkInvalidationTests {
    private static let told = InvalidationMessage.appliedPositions([PeerSamples.position])
    private static let push = InvalidationMessage.push([PeerSamples.invalidation])

    private static func answer(positions count: Int) -> InvalidationMessage {
        .roundResponse(
            FenceResponse(
                round: 3, synced: Array(repeating: PeerSamples.position, count: count),
                view: VoterSetView(configuration: nil, isCurrent: true)),
            retired: [])
    }

    @Test("what is said about invalidations is heard before the question that was asked after it")
    func order() throws {
        var pair = PeerPair()
        try pair.dialling.link.send(Self.push)
        _ = try pair.dialling.link.sendQuery(PeerSamples.question)
        try pair.dialling.link.send(Self.answer(positions: 5_000))
        try pair.dialling.link.send(Self.told)
        _ = try pair.dialling.link.sendQuery(PeerSamples.question)
        try pair.dialling.link.send(Gossip(.nack(sequence: 1)))
        pair.run()
        #expect(
            pair.accepting.takeEvents() == [
                .gossipReceived(Gossip(.nack(sequence: 1))), .invalidationReceived(Self.push),
                .queryReceived(stream: 1, PeerSamples.question),
                .invalidationReceived(Self.answer(positions: 5_000)),
                .invalidationReceived(Self.told), .queryReceived(stream: 3, PeerSamples.question),
            ])
    }

    @Test("all that is said in many frames arrives, whatever goes between them")
    func pieces() throws {
        var pair = PeerPair()
        let positions = Array(repeating: PeerSamples.position, count: 6_000)
        try pair.accepting.link.send(.appliedPositions(positions))
        try pair.accepting.link.send(Self.answer(positions: 6_000))
        // Gossip is urgent, and overtakes all frames but the one that has gone.
        let first = pair.accepting.bytes(framesMax: 4)
        try pair.accepting.link.send(Gossip(.nack(sequence: 1)))
        pair.dialling.receive(first)
        pair.run()
        var heard: [StreamPosition] = []
        var last: PeerEvent?
        for event in pair.dialling.takeEvents() {
            if case .invalidationReceived(.appliedPositions(let some)) = event { heard += some }
            last = event
        }
        #expect(heard == positions)
        #expect(last == .invalidationReceived(Self.answer(positions: 6_000)))
        #expect(pair.dialling.fault == nil)
    }

    @Test("members and set are said once, and then their digest, to whoever says digests too")
    func digests() throws {
        var pair = PeerPair()
        pair.run()
        _ = (pair.dialling.takeEvents(), pair.accepting.takeEvents())
        let members = (1...200 as ClosedRange<UInt64>).map { NodeID(low: $0, high: 0) }
        func confirmation(_ members: [NodeID]) -> InvalidationMessage {
            .confirmation(
                [PeerSamples.position], members: members,
                view: VoterSetView(configuration: nil, isCurrent: true))
        }
        var sizes: [Bool] = []
        func say(_ members: [NodeID]) throws {
            try pair.accepting.link.send(confirmation(members))
            let bytes = pair.accepting.bytes(framesMax: 9)
            sizes.append(bytes.count < 200)
            pair.dialling.receive(bytes)
            #expect(pair.dialling.takeEvents() == [.invalidationReceived(confirmation(members))])
        }
        try say(members)
        try say(members)
        try pair.dialling.link.send(confirmation(members))
        pair.run()
        _ = pair.accepting.takeEvents()
        try say(members)
        try say(Array(members.dropLast()))
        try say(Array(members.dropLast()))
        #expect(sizes == [false, false, true, false, true])
        #expect(pair.dialling.fault == nil)
    }

    @Test("a digest of members that were never said ends the connection")
    func unknownDigest() throws {
        var reader = InvalidationMessageDecoder()
        let said = try EncodedInvalidationMessage(
            .confirmation([], members: [], view: VoterSetView(configuration: nil, isCurrent: true)))
        let short = try #require(said.frames.first)
        #expect(throws: PeerFault.self) {
            _ = try reader.read(
                .confirmed, payload: short.span.extracting(PeerFrameHeader.bytesCount..<short.count)
            )
        }
    }

    @Test("nothing of what is refused is sent, and nothing is refused for want of room")
    func refusals() throws {
        var link = PeerLink(.dialling, hello: .of(1))
        #expect(throws: SendError.notOpen) { try link.send(Self.push) }
        var pair = PeerPair()
        let many = Array(repeating: PeerSamples.position, count: 2_000)
        while pair.dialling.link.queuedBytes < PeerLink.queueBytesMax {
            try pair.dialling.link.send(.appliedPositions(many))
        }
        let before = pair.dialling.link.queuedBytes
        try pair.dialling.link.send(Self.push)
        #expect(pair.dialling.link.queuedBytes > before)
        pair.run()
        let ranges = Array(repeating: PeerSamples.range, count: PeerProtocol.rangesMax + 1)
        #expect(throws: SendError.tooLong(.ranges)) {
            try pair.dialling.link.send(.repairRequest(ranges))
        }
        #expect(pair.dialling.link.queuedBytes == 0)
        while pair.dialling.fault == nil, pair.dialling.link.isOpen {
            try pair.dialling.link.send(.appliedPositions(many))
        }
        #expect(pair.dialling.link.fault == .slowReader)
    }

    @Test("between the frames of an answer comes nothing else about invalidations")
    func interrupted() throws {
        var pair = PeerPair()
        try pair.dialling.link.send(Self.answer(positions: 6_000))
        let first = pair.dialling.bytes(framesMax: 1)
        pair.accepting.receive(first)
        pair.accepting.receive(try Self.told.frames()[0])
        #expect(pair.accepting.fault == .unexpectedFrame(.applied))
        #expect(pair.accepting.takeEvents().isEmpty)
    }
}
