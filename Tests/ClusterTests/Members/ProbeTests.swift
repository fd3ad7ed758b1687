import Cluster
import Ground
import Testing

@Suite("Failure detection")
struct ProbeTests {
    @Test("Every member is pinged once a round, in random order")
    func rounds() {
        var stage = MemberStage()
        let lines = (1...8).map { stage.connect($0) }
        let pings = stage.answered(for: .seconds(16)).pings.map(\.line)
        #expect(pings.count == 16 || pings.count == 17)
        #expect(Set(pings.prefix(8)) == Set(lines))
        #expect(Set(pings.dropFirst(8).prefix(8)) == Set(lines))
        #expect(Array(pings.prefix(8)) != lines)
    }

    @Test("A silent member is probed by three others, suspected, told so, and declared dead")
    func silence() throws {
        var stage = MemberStage()
        let silent = stage.connect(1)
        for number in 2...6 { stage.connect(UInt64(number)) }
        var isPinged = false
        while !isPinged {
            let effects = stage.answered(for: .milliseconds(100), but: silent)
            isPinged = effects.pings.contains { $0.line == silent }
        }
        #expect(stage.answered(for: .milliseconds(600), but: silent).pingRequests(of: 1) == 3)
        #expect(stage.state(1) == .alive)

        let accused = stage.answered(for: .milliseconds(600), but: silent)
        #expect(stage.state(1) == .suspected)
        let own = MemberStage.record(1, .suspected)
        #expect(accused.messages(on: silent).contains(.updates([own])))

        // Without confirmations the suspicion lasts six times the minimum.
        stage.answered(for: .seconds(20), but: silent)
        #expect(stage.state(1) == .suspected)
        let end = stage.answered(for: .seconds(8), but: silent)
        #expect(stage.state(1) == .dead)
        #expect(stage.effects.believed(1) == [.alive, .suspected, .dead])
        #expect(end.contains(.memberChanged(MemberStage.record(1, .dead), before: own)))
    }

    @Test("Two independent confirmations reduce the timeout to the minimum; repetitions do not")
    func confirmations() {
        func deadAfter(_ accuse: (inout MemberStage, UInt64) -> Void) -> Int64 {
            var stage = MemberStage()
            for number in 1...6 { stage.connect(UInt64(number)) }
            for number in 2...4 { accuse(&stage, UInt64(number)) }
            let start = stage.now
            while stage.state(1) == .suspected {
                stage.answered(for: .milliseconds(100))
            }
            return (stage.now - start).milliseconds
        }
        let suspected = MemberStage.record(1, .suspected)
        let confirmed = deadAfter { stage, number in
            guard let line = stage.connection(number) else { return }
            stage.happens(.messageReceived(.updates([suspected]), on: line))
        }
        let repeated = deadAfter { stage, number in
            guard let line = stage.connection(number) else { return }
            stage.happens(.messageReceived(.ack(sequence: 0, updates: [suspected]), on: line))
        }
        #expect(3_900...4_200 ~= confirmed)
        #expect(23_500...25_000 ~= repeated)
    }

    @Test("A reply through another member counts")
    func indirectAnswer() {
        var stage = MemberStage()
        let silent = stage.connect(1)
        stage.connect(2)
        stage.run(for: .seconds(9)) { message, id in
            switch message {
            case .pingRequest(let sequence, _, _): .ack(sequence: sequence, updates: [])
            default: id == silent ? nil : MemberStage.ack(message)
            }
        }
        #expect(stage.effects.believed(1) == [.alive])
        #expect(stage.node.healthScore == 0)
    }

    @Test("Without ack or nack from its helpers a node lowers its health and probes less often")
    func localHealth() {
        func life(nack: Bool) -> (health: Int, pings: Int) {
            var stage = MemberStage()
            for number in 1...6 { stage.connect(UInt64(number)) }
            let effects = stage.run(for: .seconds(5)) { message, _ in
                guard nack, case .pingRequest(let sequence, _, _) = message else { return nil }
                return .nack(sequence: sequence)
            }
            return (stage.node.healthScore, effects.pings.count)
        }
        #expect(life(nack: true).health == 0)
        #expect(life(nack: true).pings == 6)
        #expect(life(nack: false).health > 2)
        #expect(life(nack: false).pings < 4)
    }

    @Test("A relay forwards the ping and its ack, and sends a nack before the requester gives up")
    func relays() throws {
        var stage = MemberStage()
        let (requester, target) = (stage.connect(1), stage.connect(2))
        stage.run(for: .milliseconds(10))
        let id = MemberStage.member(2).id
        let passed = stage.happens(
            .messageReceived(.pingRequest(sequence: 900, target: id, updates: []), on: requester))
        let sequence = try #require(passed.pings.first { $0.line == target }?.sequence)
        #expect(
            stage.run(for: .milliseconds(450)).messages(on: requester).contains(
                .nack(sequence: 900)))
        let response = stage.happens(
            .messageReceived(.ack(sequence: sequence, updates: []), on: target))
        #expect(
            response.messages(on: requester).contains {
                if case .ack(900, _) = $0 { true } else { false }
            })
        let unknown = NodeID(low: 77, high: 0)
        let refused = stage.happens(
            .messageReceived(
                .pingRequest(sequence: 901, target: unknown, updates: []), on: requester))
        #expect(refused == [.send(.nack(sequence: 901), on: requester)])
    }

    @Test("Time in which the process was suspended does not count as silence")
    func standstill() {
        var stage = MemberStage()
        for number in 1...4 { stage.connect(UInt64(number)) }
        stage.answered(for: .milliseconds(1_100))
        stage.run(for: .milliseconds(300))
        stage.now = stage.now + .seconds(100)
        stage.happens(.ticked)
        stage.answered(for: .milliseconds(100))
        #expect((1...4).allSatisfy { stage.state(UInt64($0)) == .alive })
        #expect(stage.node.healthScore == 1)
    }

    @Test("A message after a suspension but before the late tick is not delayed by it")
    func afterStandstill() {
        var stage = MemberStage()
        let line = stage.connect(2)
        stage.connect(1)
        stage.answered(for: .seconds(5))
        stage.now = stage.now + .seconds(100)
        stage.happens(.messageReceived(.updates([MemberStage.record(1, .dead)]), on: line))
        stage.happens(.ticked)
        #expect(stage.state(1) == .suspected)
        stage.answered(for: .seconds(5))
        #expect(stage.state(1) == .dead)
    }

    @Test(
        "The member of a broken connection is dialled and probed next, but not suspected",
        arguments: 1...6)
    func brokenConnection(number: UInt64) throws {
        var stage = MemberStage()
        for number in 1...6 { stage.connect(UInt64(number)) }
        stage.answered(for: .seconds(30))
        let line = try #require(stage.connection(number))
        let lost = stage.happens(.connectionClosed(line, nil))
        #expect(lost == [.dropConnection(MemberStage.member(number).id)])
        let after = stage.answered(for: .milliseconds(1_100))
        #expect(after.dials == [MemberStage.member(number).address])
        #expect(after.pingRequests(of: number) > 0)
        #expect(stage.state(number) == .alive)
    }

    @Test("A connection on which a ping is unanswered for 10 s is replaced")
    func silentConnection() {
        var stage = MemberStage()
        let silent = stage.connect(1)
        stage.connect(2)
        let effects = stage.run(for: .seconds(14)) { message, id in
            switch message {
            case .pingRequest(let sequence, _, _): .ack(sequence: sequence, updates: [])
            default: id == silent ? nil : MemberStage.ack(message)
            }
        }
        #expect(effects.contains(.close(silent, .silent)))
        #expect(stage.effects.dials.contains(MemberStage.member(1).address))
        #expect(stage.state(1) == .alive)
    }
}
