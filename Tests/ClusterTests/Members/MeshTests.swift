import Cluster
import Ground
import Testing

@Suite("Dialling, and the choice between connections")
struct MeshTests {
    private static func address(_ number: UInt64) -> PeerAddress {
        MemberStage.member(number).address
    }

    @Test("Seeds are dialled with a back-off until they answer")
    func backOff() {
        var stage = MemberStage()
        stage.happens(.seedsResolved([Self.address(1)]))
        var dialledAt: [Int64] = []
        for _ in 0..<1_200 {
            if !stage.run(for: .milliseconds(100)).dials.isEmpty {
                dialledAt.append((stage.now - MemberStage.start).milliseconds)
                stage.happens(.dialFailed(Self.address(1)))
            }
        }
        let waits = zip(dialledAt, dialledAt.dropFirst()).map { $1 - $0 }
        #expect(dialledAt.first.map { $0 <= 200 } == true)
        #expect(waits.prefix(1).allSatisfy { 400...1_200 ~= $0 })
        #expect(waits.dropFirst(5).allSatisfy { 4_900...10_200 ~= $0 })
        #expect(dialledAt.count > 12)
        stage.run(for: .seconds(11))
        stage.connect(1, isOwnDial: true)
        #expect(stage.answered(for: .seconds(60)).dials == [])
    }

    @Test("Dead members are dialled for ever, at least once a minute; those that left are not")
    func goneMembers() {
        var stage = MemberStage()
        let line = stage.connect(1)
        let news = [MemberStage.record(2, .dead), MemberStage.record(3, .left)]
        stage.happens(.messageReceived(.updates(news), on: line))
        var dials = 0
        for _ in 0..<36_000 {
            let effects = stage.answered(for: .milliseconds(100))
            #expect(effects.dials.allSatisfy { $0 == Self.address(2) })
            guard !effects.dials.isEmpty else { continue }
            dials += 1
            stage.happens(.dialFailed(Self.address(2)))
        }
        #expect(60...130 ~= dials)
    }

    @Test("At most 16 dials are in progress, and each address is dialled once at a time")
    func dialLimit() {
        var stage = MemberStage()
        stage.happens(.seedsResolved((1...40).map(Self.address)))
        let first = stage.run(for: .seconds(30)).dials
        #expect(first.count == 16)
        #expect(Set(first).count == 16)
        stage.happens(.dialFailed(first[0]))
        #expect(stage.effects.dials.count == 17)
    }

    @Test("A seed that its name no longer resolves to is not dialled")
    func resolvedAnew() {
        var stage = MemberStage()
        stage.happens(.seedsResolved([Self.address(1)]))
        for address in stage.run(for: .seconds(1)).dials { stage.happens(.dialFailed(address)) }
        stage.happens(.seedsResolved([Self.address(2)]))
        #expect(Set(stage.run(for: .seconds(20)).dials) == [Self.address(2)])
    }

    @Test("A node that dials itself notices it and avoids the address")
    func selfDial() {
        var stage = MemberStage()
        stage.happens(.seedsResolved([Self.address(100)]))
        #expect(stage.run(for: .seconds(1)).dials == [Self.address(100)])
        let own = stage.node.own
        let ends = [ConnectionID(1), ConnectionID(2)]
        for (id, dialled) in zip(ends, [own.member.address, nil]) {
            let effects = stage.happens(
                .connectionOpened(id, dialled: dialled, own.member, own.incarnation))
            #expect(effects == [.close(id, .selfDial)])
        }
        #expect(stage.run(for: .seconds(200)).dials == [])
        #expect(stage.run(for: .seconds(101)).dials == [Self.address(100)])
    }

    @Test("The smaller id takes the later of two connections and closes the earlier after a while")
    func decider() {
        var smaller = MemberStage(own: 1)
        let (early, late) = (smaller.connect(2), smaller.connect(2))
        #expect(smaller.connection(2) == late)
        #expect(!smaller.answered(for: .seconds(9)).contains(.close(early, .redundant)))
        #expect(smaller.answered(for: .seconds(2)).contains(.close(early, .redundant)))
        #expect(smaller.connection(2) == late)
    }

    @Test("The larger id uses the connection of the smaller one's requests, whatever the replies")
    func follower() {
        var larger = MemberStage(own: 2)
        let peer = MemberStage.member(1).id
        let (early, late) = (larger.connect(1), larger.connect(1))
        #expect(larger.connection(1) == late)
        let ping = MembershipEvent.messageReceived(.ping(sequence: 1, updates: []), on: early)
        #expect(larger.happens(ping).first == .useConnection(peer, early))
        for response in [GossipMessage.ack(sequence: 7, updates: []), .nack(sequence: 7)] {
            #expect(larger.happens(.messageReceived(response, on: late)).isEmpty)
            #expect(larger.connection(1) == early)
        }
        #expect(larger.happens(.connectionClosed(late, .redundant)).isEmpty)
        #expect(larger.connection(1) == early)
    }

    @Test("The larger id leaves the closing to the smaller one, for twice as long")
    func spare() {
        var larger = MemberStage(own: 2)
        let (early, late) = (larger.connect(1), larger.connect(1))
        #expect(!larger.answered(for: .seconds(19)).contains(.close(early, .redundant)))
        #expect(larger.answered(for: .seconds(2)).contains(.close(early, .redundant)))
        #expect(larger.connection(1) == late)
    }

    @Test(
        "If the later connection fails before the peer saw it open, the earlier one is used",
        arguments: [1, 3] as [UInt64])
    func takesOver(own: UInt64) {
        var stage = MemberStage(own: own)
        let (early, late) = (stage.connect(2), stage.connect(2))
        // The peer never received a HELLO on it.
        stage.answered(for: .seconds(5), but: late)
        let effects = stage.happens(.connectionClosed(late, nil))
        #expect(effects.contains(.useConnection(MemberStage.member(2).id, early)))
        #expect(stage.connection(2) == early)
        let rest = stage.answered(for: .seconds(30))
        #expect(stage.connection(2) == early)
        #expect(!rest.contains(.close(early, .redundant)) && rest.dials.isEmpty)
    }

    @Test("The spare connection stays until the one in use answers, and replaces it if it closes")
    func silentSuccessor() {
        var smaller = MemberStage(own: 1)
        let (early, late) = (smaller.connect(2), smaller.connect(2))
        let effects = smaller.answered(for: .seconds(40), but: late)
        #expect(effects.contains(.close(late, .silent)))
        #expect(!effects.contains(.close(early, .redundant)))
        #expect(smaller.connection(2) == early)
    }

    @Test("A pending table request moves to the connection that replaces the first")
    func questionMoves() {
        var smaller = MemberStage(own: 1)
        let (early, late) = (smaller.connect(2), smaller.connect(2))
        let effects = smaller.answered(for: .seconds(2))
        let isQuestion = { (message: GossipMessage) in
            if case .table(_, isRequest: true) = message { true } else { false }
        }
        #expect(!effects.messages(on: early).contains(where: isQuestion))
        #expect(effects.messages(on: late).filter(isQuestion).count == 1)
    }

    @Test("A dead member has no connection left, spares included")
    func noneOfTheDead() {
        var smaller = MemberStage(own: 1)
        let lines = [smaller.connect(2), smaller.connect(2)]
        let effects = smaller.run(for: .seconds(9))
        #expect(smaller.state(2) == .dead)
        #expect(lines.allSatisfy { effects.contains(.close($0, .dead)) })
        #expect(smaller.connection(2) == nil)
    }

    @Test("A newer process of a member closes the earlier one's connections")
    func successor() {
        var smaller = MemberStage(own: 1)
        let lines = [smaller.connect(2), smaller.connect(2)]
        smaller.connect(2, run: 1, epoch: 6)
        let effects = smaller.run(for: .seconds(1))
        #expect(lines.allSatisfy { effects.contains(.close($0, .superseded)) })
        #expect(smaller.connection(2) == ConnectionID(3))
    }

    @Test("Tables are exchanged every 30 s, less often in large clusters", arguments: [5, 100])
    func exchanges(members: UInt64) {
        var stage = MemberStage(own: 1_000)
        for number in 1...members { stage.connect(number) }
        stage.happens(.messageReceived(.table([], isRequest: false), on: ConnectionID(1)))
        stage.answered(for: .seconds(120))
        let effects = stage.answered(for: .seconds(300))
        let questions = effects.count {
            if case .send(.table(_, isRequest: true), _) = $0 { true } else { false }
        }
        #expect((members == 5 ? 9...10 : 3...4) ~= questions)
    }

    @Test("The dialling side requests a new peer's table at once; a reply is no request")
    func tables() {
        var stage = MemberStage()
        let line = stage.connect(1, isOwnDial: true)
        let asked = stage.run(for: .milliseconds(10)).messages(on: line)
        #expect(asked.contains(.table(stage.node.records, isRequest: true)))
        let theirs = [MemberStage.record(1), MemberStage.record(2)]
        let response = stage.happens(.messageReceived(.table(theirs, isRequest: false), on: line))
        #expect(response.messages(on: line) == [])
        #expect(stage.state(2) == .alive)
        let question = stage.happens(.messageReceived(.table([], isRequest: true), on: line))
        #expect(question.messages(on: line) == [.table(stage.node.records, isRequest: false)])
    }
}
