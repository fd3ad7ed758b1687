import Cluster
import Ground
import Testing

@Suite("Start and end of a peer connection")
struct PeerLinkLifeTests {
    @Test("Both ends send HELLO first and then know each other")
    func greeting() {
        var ends = (PeerEnd(.dialling, hello: .of(1)), PeerEnd(.accepting, hello: .of(2)))
        let first = ends.0.bytes()
        #expect(first == Hello.of(1).frame)
        #expect(!ends.1.link.isOpen)
        ends.1.receive(first)
        #expect(ends.1.takeEvents() == [.helloReceived(.of(1), version: 1)])
        ends.0.receive(ends.1.bytes())
        #expect(ends.0.takeEvents() == [.helloReceived(.of(2), version: 1)])
        #expect(ends.0.link.isOpen && ends.1.link.isOpen)
    }

    @Test("Nothing but HELLO is sent before the other's arrives")
    func notYet() {
        var link = PeerLink(.dialling, hello: .of(1))
        #expect(throws: SendError.notOpen) { try link.sendQuery(PeerSamples.question) }
        #expect(throws: SendError.notOpen) { try link.send(Gossip(.nack(sequence: 1))) }
        #expect(throws: SendError.notOpen) { try link.send([AgedTouch]()) }
        _ = link.nextOutput()
        #expect(link.nextOutput() == .idle)
    }

    @Test("A node and a newer version agree on the newest common version")
    func upgrade() {
        var newer = Hello.of(2)
        newer.member.versions = 1...2
        var ends = (PeerEnd(.dialling, hello: .of(1)), PeerEnd(.accepting, hello: newer))
        ends.1.receive(ends.0.bytes())
        ends.0.receive(ends.1.bytes())
        #expect(ends.0.takeEvents() == [.helloReceived(newer, version: 1)])
        #expect(ends.1.takeEvents() == [.helloReceived(.of(1), version: 1)])
    }

    @Test("Without a common version both ends learn the reason")
    func noVersion() {
        var newer = Hello.of(2)
        newer.member.versions = 2...3
        var ends = (PeerEnd(.dialling, hello: .of(1)), PeerEnd(.accepting, hello: newer))
        let hello = ends.0.bytes()
        ends.0.receive(ends.1.bytes())
        #expect(ends.0.fault == .noCommonVersion(2...3))
        ends.1.receive(hello)
        #expect(ends.1.fault == .noCommonVersion(1...1))
        let goodbye = PeerFault.noCommonVersion(2...3).goodbye
        #expect(ends.0.bytes() == goodbye.frame && goodbye.code == .version)
        #expect(ends.0.link.nextOutput() == .close)
    }

    @Test("HELLO is sent before the GOODBYE that answers an invalid HELLO, and only once")
    func refusedHello() {
        var end = PeerEnd(.accepting, hello: .of(1))
        end.receive(Hello.of(1).frame)
        #expect(end.fault == .selfConnection)
        #expect(end.bytes() == Hello.of(1).frame + PeerFault.selfConnection.goodbye.frame)
        #expect(PeerFault.selfConnection.goodbye.code == Goodbye.Code(.selfDial))
    }

    @Test("A GOODBYE may arrive instead of HELLO and ends the connection")
    func turnedAway() {
        var end = PeerEnd(.dialling, hello: .of(1))
        end.receive(Goodbye(.overloaded, "full").frame)
        #expect(end.takeEvents() == [.goodbyeReceived(Goodbye(.overloaded, "full"))])
        #expect(end.link.nextOutput() == .close && end.link.state == .ended)
    }

    @Test("Queued frames are sent before GOODBYE, but no body")
    func leaving() throws {
        var (pair, stream) = try PeerPair.asked(response: .held(size: nil))
        pair.accepting.link.addBodyBytes(100_000, on: stream)
        try pair.accepting.link.send(Gossip(.updates([PeerSamples.record])))
        pair.accepting.link.close(Goodbye(.leaving))
        #expect(throws: SendError.notOpen) {
            try pair.accepting.link.send(Gossip(.nack(sequence: 1)))
        }
        pair.run()
        #expect(
            pair.dialling.takeEvents() == [
                .gossipReceived(Gossip(.updates([PeerSamples.record]))),
                .replyReceived(stream: stream, .held(size: nil)),
                .goodbyeReceived(Goodbye(.leaving)),
            ])
        #expect(pair.accepting.link.state == .ended)
        #expect(
            pair.dialling.link.connectionEnded() == [
                .connectionLost(stream: stream, receivedBytes: 0)
            ])
        #expect(pair.accepting.link.connectionEnded() == [.queryCancelled(stream: stream)])
        #expect(pair.accepting.link.connectionEnded() == [])
    }

    @Test("When the connection is closed every open query is reported, in order")
    func gone() throws {
        var pair = PeerPair()
        let streams = try (0..<50).map { _ in try pair.dialling.link.sendQuery(PeerSamples.question)
        }
        let theirs = try pair.accepting.link.sendQuery(PeerSamples.question)
        pair.run()
        try pair.accepting.link.sendReply(.held(size: nil), on: streams[1])
        pair.accepting.link.addBodyBytes(70_000, on: streams[1])
        try pair.accepting.link.sendReply(.absent, on: streams[2])
        pair.dialling.link.cancel(streams[3])
        pair.run()
        pair.dialling.link.cancel(streams[4])
        let lost: [PeerEvent] = streams.enumerated().compactMap { index, stream in
            switch index {
            case 1: .connectionLost(stream: stream, receivedBytes: 70_000)
            case 2, 3, 4: nil
            default: .connectionLost(stream: stream, receivedBytes: nil)
            }
        }
        #expect(pair.dialling.link.connectionEnded() == lost + [.queryCancelled(stream: theirs)])
        #expect(
            pair.dialling.link.outboundQueryCount == 0 && pair.dialling.link.inboundQueryCount == 0)
        #expect(pair.dialling.link.nextOutput() == .close)
    }
}

@Suite("Queries and replies on a peer connection")
struct PeerLinkStreamTests {
    @Test("The dialling side uses rising odd streams, the other side even ones")
    func numbers() throws {
        var pair = PeerPair()
        let odd = try (0..<3).map { _ in try pair.dialling.link.sendQuery(PeerSamples.question) }
        let even = try (0..<3).map { _ in try pair.accepting.link.sendQuery(PeerSamples.question) }
        #expect(odd == [1, 3, 5] && even == [2, 4, 6])
        pair.run()
        #expect(
            pair.accepting.takeEvents()
                == odd.map { .queryReceived(stream: $0, PeerSamples.question) })
    }

    @Test("A reply with a body: head, bytes, end")
    func body() throws {
        var (pair, stream) = try PeerPair.asked(response: .fetching)
        try pair.accepting.link.sendReply(.held(size: 40_000), on: stream)
        pair.accepting.link.addBodyBytes(30_000, on: stream)
        pair.run()
        #expect(pair.dialling.arrived[stream] == 30_000)
        pair.accepting.link.addBodyBytes(10_000, on: stream)
        pair.accepting.link.completeBody(on: stream)
        pair.run()
        #expect(
            pair.dialling.takeEvents() == [
                .replyReceived(stream: stream, .fetching),
                .replyReceived(stream: stream, .held(size: 40_000)),
                .bodyEnded(stream: stream, StreamEnd(size: 40_000)),
            ])
        #expect(pair.dialling.take(stream) == 40_000)
        #expect(
            pair.dialling.link.outboundQueryCount == 0 && pair.accepting.link.inboundQueryCount == 0
        )
    }

    @Test("A final reply closes the stream", arguments: [0, 1, 2, 3, 4])
    func final(number: Int) throws {
        let failure = PeerOriginFailure(status: 0, cause: .timeout, mayServeStale: false)
        let responses: [PeerReply] = [
            .absent, .behind, .declined(.draining), .notModified(PeerSamples.notModified),
            .originFailed(failure),
        ]
        var (pair, stream) = try PeerPair.asked(response: responses[number])
        #expect(throws: SendError.streamClosed) {
            try pair.accepting.link.sendReply(.absent, on: stream)
        }
        pair.run()
        #expect(pair.dialling.takeEvents() == [.replyReceived(stream: stream, responses[number])])
        #expect(pair.dialling.link.outboundQueryCount == 0)
    }

    @Test("A query of an unknown kind is declined")
    func unknownKind() throws {
        var pair = PeerPair()
        let stream = try pair.dialling.link.sendQuery(PeerSamples.question)
        var bytes = pair.dialling.bytes()
        bytes[PeerFrameHeader.bytesCount + 2] = 9
        pair.accepting.receive(bytes)
        #expect(pair.accepting.takeEvents() == [])
        pair.run()
        #expect(
            pair.dialling.takeEvents() == [
                .replyReceived(stream: stream, .declined(.notUnderstood))
            ])
    }

    @Test("A cancelled query is not reported again, and closes with what was in transit")
    func cancelled() throws {
        var (pair, stream) = try PeerPair.asked(response: .held(size: nil))
        pair.accepting.link.addBodyBytes(500_000, on: stream)
        let onItsWay = pair.accepting.bytes()
        pair.dialling.link.cancel(stream)
        pair.dialling.link.cancel(stream)
        pair.dialling.receive(onItsWay)
        #expect(pair.dialling.takeEvents() == [] && pair.dialling.discarded == 262_144)
        #expect(pair.dialling.link.outboundQueryCount == 1)
        pair.run()
        #expect(pair.accepting.takeEvents().last == .queryCancelled(stream: stream))
        #expect(pair.dialling.takeEvents() == [] && pair.dialling.link.outboundQueryCount == 0)
        // The shell may learn of it later than the link.
        pair.accepting.link.addBodyBytes(5, on: stream)
        pair.accepting.link.completeBody(on: stream)
        pair.accepting.link.reset(stream, .incompleteBody)
        #expect(pair.accepting.link.nextOutput() == .idle)
    }

    @Test("A cancel that crosses the end of the reply is no fault")
    func crossing() throws {
        var (pair, stream) = try PeerPair.asked(response: .absent)
        pair.dialling.link.cancel(stream)
        pair.run()
        #expect(pair.dialling.fault == nil && pair.accepting.fault == nil)
        #expect(pair.dialling.takeEvents() == [])
        #expect(pair.dialling.link.outboundQueryCount == 0)
    }

    @Test("An aborted body is reported, and nothing that was ready is sent after it")
    func broken() throws {
        var (pair, stream) = try PeerPair.asked(response: .held(size: nil))
        pair.accepting.link.addBodyBytes(30_000, on: stream)
        pair.accepting.link.reset(stream, .invalidated)
        pair.run()
        #expect(
            pair.dialling.takeEvents() == [
                .replyReceived(stream: stream, .held(size: nil)),
                .streamReset(stream: stream, .invalidated),
            ])
        #expect(pair.dialling.arrived[stream] == nil)
    }

    @Test("A body of another size than announced is aborted", arguments: [99, 101])
    func otherSize(count: Int) throws {
        var (pair, stream) = try PeerPair.asked(response: .held(size: 100))
        pair.accepting.link.addBodyBytes(count, on: stream)
        pair.accepting.link.completeBody(on: stream)
        pair.run()
        #expect(pair.dialling.takeEvents().last == .streamReset(stream: stream, .incompleteBody))
        #expect(pair.dialling.fault == nil)
    }

    @Test("An empty body ends without data")
    func empty() throws {
        var (pair, stream) = try PeerPair.asked(response: .held(size: 0))
        pair.accepting.link.addBodyBytes(0, on: stream)
        pair.accepting.link.completeBody(on: stream)
        pair.run()
        #expect(pair.dialling.takeEvents().last == .bodyEnded(stream: stream, StreamEnd(size: 0)))
    }

    @Test("After HELD there is no other reply")
    func answeredTwice() throws {
        var (pair, stream) = try PeerPair.asked(response: .held(size: nil))
        for response in [.fetching, .absent, .held(size: nil)] as [PeerReply] {
            #expect(throws: SendError.invalidState) {
                try pair.accepting.link.sendReply(response, on: stream)
            }
        }
    }

    @Test("Each reason for closing a connection is sent as its code and read from it")
    func closeReasons() {
        let codes: [CloseReason: UInt16] = [
            .leaving: 1, .duplicateIdentity: 3, .redundant: 4, .selfDial: 7, .silent: 8, .dead: 9,
            .superseded: 10, .clusterFull: 11,
        ]
        for reason in CloseReason.allCases {
            #expect(Goodbye(reason).code.rawValue == codes[reason])
            #expect(CloseReason(Goodbye(reason, "other words").code) == reason)
        }
        #expect(CloseReason(.protocolFault) == nil)
    }
}
