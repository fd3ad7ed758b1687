import Cluster
import Ground
import Testing

@Suite("Asking members for signs of life")
struct ProbeTests {
    @Test("every member is pinged once a round, in a random order")
    func rounds() {
        var stage = MemberStage()
        let lines = (1...8).map { stage.connect($0) }
        let pings = stage.answered(for: .seconds(16)).pings.map(\.line)
        #expect(pings.count == 16 || pings.count == 17)
        #expect(Set(pings.prefix(8)) == Set(lines))
        #expect(Set(pings.dropFirst(8).prefix(8)) == Set(lines))
        #expect(Array(pings.prefix(8)) != lines)
    }

    @Test("a silent member is asked by three others, suspected, told so, and dead in the end")
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
        #expect(accused.said(on: silent).contains(.updates([own])))

        // Alone with its suspicion the node waits for six times the least time.
        stage.answered(for: .seconds(20), but: silent)
        #expect(stage.state(1) == .suspected)
        let end = stage.answered(for: .seconds(8), but: silent)
        #expect(stage.state(1) == .dead)
        #expect(stage.effects.believed(1) == [.alive, .suspected, .dead])
        #expect(end.contains(.memberChanged(MemberStage.record(1, .dead), before: own)))
    }

    @Test("two more accusers of their own leave the least time; who repeats it does not count")
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

    @Test("an answer through another member is an answer")
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

    @Test("who hears neither yes nor no from those it asks trusts itself less, and asks less often")
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

    @Test("a request is passed on, its answer comes back, and a nack before the asker gives up")
    func relays() throws {
        var stage = MemberStage()
        let (requester, target) = (stage.connect(1), stage.connect(2))
        stage.run(for: .milliseconds(10))
        let id = MemberStage.member(2).id
        let passed = stage.happens(
            .messageReceived(.pingRequest(sequence: 900, target: id, updates: []), on: requester))
        let sequence = try #require(passed.pings.first { $0.line == target }?.sequence)
        #expect(
            stage.run(for: .milliseconds(450)).said(on: requester).contains(.nack(sequence: 900)))
        let response = stage.happens(
            .messageReceived(.ack(sequence: sequence, updates: []), on: target))
        #expect(
            response.said(on: requester).contains {
                if case .ack(900, _) = $0 { true } else { false }
            })
        let unknown = NodeID(low: 77, high: 0)
        let refused = stage.happens(
            .messageReceived(
                .pingRequest(sequence: 901, target: unknown, updates: []), on: requester))
        #expect(refused == [.send(.nack(sequence: 901), on: requester)])
    }

    @Test("time in which the process stood still counts against nobody")
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

    @Test("what is heard after a standstill, before the late tick, does not wait for it again")
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
        "a connection that breaks is dialled and its member probed next, which is no proof",
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

    @Test("a connection on which a ping is not answered for 10 s is replaced")
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
