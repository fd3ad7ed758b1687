import Cluster
import Ground
import Testing

@Suite("Invalidations on a connection")
struct PeerLinkInvalidationTests {
    private static let positionsMessage = InvalidationMessage.appliedPositions([
        PeerSamples.position
    ])
    private static let push = InvalidationMessage.push([PeerSamples.invalidation])

    private static func answer(positions count: Int) -> InvalidationMessage {
        .roundResponse(
            FenceResponse(
                round: 3, synced: Array(repeating: PeerSamples.position, count: count),
                view: VoterSetView(configuration: nil, isCurrent: true)),
            retired: [])
    }

    @Test("Invalidations arrive before a query that was sent after them")
    func order() throws {
        var pair = PeerPair()
        try pair.dialling.link.send(Self.push)
        _ = try pair.dialling.link.sendQuery(PeerSamples.question)
        try pair.dialling.link.send(Self.answer(positions: 5_000))
        try pair.dialling.link.send(Self.positionsMessage)
        _ = try pair.dialling.link.sendQuery(PeerSamples.question)
        try pair.dialling.link.send(Gossip(.nack(sequence: 1)))
        pair.run()
        #expect(
            pair.accepting.takeEvents() == [
                .gossipReceived(Gossip(.nack(sequence: 1))), .invalidationReceived(Self.push),
                .queryReceived(stream: 1, PeerSamples.question),
                .invalidationReceived(Self.answer(positions: 5_000)),
                .invalidationReceived(Self.positionsMessage),
                .queryReceived(stream: 3, PeerSamples.question),
            ])
    }

    @Test("A message in many frames arrives, whatever frames are sent between them")
    func pieces() throws {
        var pair = PeerPair()
        let positions = Array(repeating: PeerSamples.position, count: 6_000)
        try pair.accepting.link.send(.appliedPositions(positions))
        try pair.accepting.link.send(Self.answer(positions: 6_000))
        // Gossip is urgent and overtakes all frames but the one that was sent.
        let first = pair.accepting.bytes(framesMax: 4)
        try pair.accepting.link.send(Gossip(.nack(sequence: 1)))
        pair.dialling.receive(first)
        pair.run()
        var received: [StreamPosition] = []
        var last: PeerEvent?
        for event in pair.dialling.takeEvents() {
            if case .invalidationReceived(.appliedPositions(let some)) = event { received += some }
            last = event
        }
        #expect(received == positions)
        #expect(last == .invalidationReceived(Self.answer(positions: 6_000)))
        #expect(pair.dialling.fault == nil)
    }

    @Test("Members and voter set are sent once, then as a digest if the peer sends digests too")
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

    @Test("A digest of members that were never sent ends the connection")
    func unknownDigest() throws {
        var reader = InvalidationMessageDecoder()
        let encoded = try EncodedInvalidationMessage(
            .confirmation([], members: [], view: VoterSetView(configuration: nil, isCurrent: true)))
        let short = try #require(encoded.frames.first)
        #expect(throws: PeerFault.self) {
            _ = try reader.read(
                .confirmed, payload: short.span.extracting(PeerFrameHeader.bytesCount..<short.count)
            )
        }
    }

    @Test("A refused message is not sent, and none is refused for want of space")
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

    @Test("No other message about invalidations may be sent between the frames of a reply")
    func interrupted() throws {
        var pair = PeerPair()
        try pair.dialling.link.send(Self.answer(positions: 6_000))
        let first = pair.dialling.bytes(framesMax: 1)
        pair.accepting.receive(first)
        pair.accepting.receive(try Self.positionsMessage.frames()[0])
        #expect(pair.accepting.fault == .unexpectedFrame(.applied))
        #expect(pair.accepting.takeEvents().isEmpty)
    }
}
