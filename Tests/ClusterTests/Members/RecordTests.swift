import Cluster
import Ground
import Testing

@Suite("Merging of member records")
struct RecordTests {
    @Test("All nodes keep the same one of two records, in any order")
    func order() {
        var records: [MemberRecord] = []
        for run in 1...2 as ClosedRange<UInt64> {
            for (epoch, count) in [(5, 0), (5, 1), (6, 0)] as [(UInt64, UInt32)] {
                for state in MemberRecord.State.allCases {
                    records.append(
                        MemberStage.record(1, run: run, epoch: epoch, count: count, state))
                }
            }
        }
        for (index, one) in records.enumerated() {
            for (place, other) in records.enumerated() {
                #expect(one.supersedes(other) == !other.supersedes(one) || index == place)
            }
        }
        #expect(records.max { $1.supersedes($0) } == MemberStage.record(1, run: 2, epoch: 6, .left))
    }

    @Test(
        "A node that hears of its suspicion or death raises its incarnation and tells all",
        arguments: [MemberRecord.State.suspected, .dead, .left])
    func refutation(state: MemberRecord.State) {
        var stage = MemberStage()
        let lines = (1...3).map { stage.connect($0) }
        let effects = stage.happens(
            .messageReceived(.updates([MemberStage.record(100, count: 4, state)]), on: lines[0]))
        let own = MemberStage.record(100, count: 5)
        #expect(stage.node.own == own)
        #expect(effects.filter { $0 == .send(.updates([own]), on: lines[2]) }.count == 1)
        #expect(lines.allSatisfy { effects.messages(on: $0).contains(.updates([own])) })
        #expect(stage.node.healthScore == 1)
        let stale = stage.happens(
            .messageReceived(.updates([MemberStage.record(100, count: 4, .dead)]), on: lines[1]))
        #expect(stale.isEmpty)
    }

    @Test("A refutation clears a suspicion; the same incarnation does not")
    func cleared() {
        var stage = MemberStage()
        let line = stage.connect(2)
        stage.connect(1)
        stage.happens(.messageReceived(.updates([MemberStage.record(1, .suspected)]), on: line))
        stage.happens(.messageReceived(.updates([MemberStage.record(1)]), on: line))
        #expect(stage.state(1) == .suspected)
        stage.happens(.messageReceived(.updates([MemberStage.record(1, count: 1)]), on: line))
        #expect(stage.state(1) == .alive)
        stage.answered(for: .seconds(60))
        #expect(stage.effects.believed(1) == [.alive, .suspected, .alive])
    }

    @Test("A rumour that a live member is dead makes it suspected, and it is told")
    func hearsayOfDeath() throws {
        var stage = MemberStage()
        let (accused, reporter) = (stage.connect(1), stage.connect(2))
        let dead = MemberStage.record(1, .dead)
        let effects = stage.happens(
            .messageReceived(.table([dead], isRequest: false), on: reporter))
        #expect(stage.state(1) == .suspected)
        #expect(effects.messages(on: accused) == [.updates([MemberStage.record(1, .suspected)])])
        stage.answered(for: .milliseconds(3_900))
        #expect(stage.state(1) == .suspected)
        let end = stage.answered(for: .milliseconds(200))
        #expect(stage.state(1) == .dead)
        #expect(end.contains(.close(accused, .dead)))
    }

    @Test("The death of an unknown member, and a member's own leaving, are accepted at once")
    func believedAtOnce() {
        var stage = MemberStage()
        let line = stage.connect(2)
        stage.connect(1)
        let news = [MemberStage.record(3, .dead), MemberStage.record(1, .left)]
        stage.happens(.messageReceived(.updates(news), on: line))
        #expect(stage.state(3) == .dead)
        #expect(stage.state(1) == .left)
        let alive = [MemberStage.record(1), MemberStage.record(1, .dead)]
        stage.happens(.messageReceived(.updates(alive), on: line))
        #expect(stage.state(1) == .left)
        // Final for that process, but not for its successor.
        stage.happens(
            .messageReceived(.updates([MemberStage.record(1, run: 1, epoch: 6)]), on: line))
        #expect(stage.state(1) == .left)
        stage.run(for: .milliseconds(600))
        #expect(stage.state(1) == .alive)
    }

    @Test("A change is pushed by its observer and repeated on pings by those that hear of it")
    func dissemination() {
        var stage = MemberStage()
        let lines = (1...4).map { stage.connect($0) }
        stage.answered(for: .seconds(60))
        let record = MemberStage.record(9)
        stage.happens(.messageReceived(.updates([record]), on: lines[0]))
        var riding = 0
        for sequence in 1...20 as ClosedRange<UInt32> {
            let response = stage.happens(
                .messageReceived(.ping(sequence: sequence, updates: []), on: lines[1]))
            #expect(response.messages(on: lines[0]) == [])
            if response == [.send(.ack(sequence: sequence, updates: [record]), on: lines[1])] {
                riding += 1
            }
        }
        #expect(riding == 4)
        let pushes = stage.run(for: .milliseconds(300)).contains { effect in
            guard case .send(.updates, _) = effect else { return false }
            return true
        }
        #expect(!pushes)

        stage.connect(5)
        let found = stage.answered(for: .milliseconds(300))
        #expect(
            lines.allSatisfy { found.messages(on: $0).contains(.updates([MemberStage.record(5)])) })
    }

    @Test("A change of role raises the incarnation and is sent to all")
    func role() {
        var stage = MemberStage()
        let line = stage.connect(1)
        let before = stage.node.own
        let effects = stage.happens(.roleChanged([.isCaughtUp, .isDraining]))
        let own = stage.node.own
        #expect(own.member.role == [.isCaughtUp, .isDraining])
        #expect(own.incarnation == Incarnation(epoch: 5, count: 1))
        #expect(effects == [.memberChanged(own, before: before), .send(.updates([own]), on: line)])
        #expect(stage.happens(.roleChanged([.isCaughtUp, .isDraining])) == [])
    }

    @Test("A member beyond the limit is refused; one that is gone frees a place")
    func limit() throws {
        var settings = MembershipSettings()
        settings.membersMax = 4
        var stage = MemberStage(settings: settings)
        for number in 1...3 { stage.connect(UInt64(number)) }
        let id = stage.connect(4)
        #expect(
            stage.effects.suffix(2) == [
                .refuseMember(MemberStage.member(4)), .close(id, .clusterFull),
            ])
        #expect(stage.node.records.count == 4)
        let line = try #require(stage.connection(2))
        for number in [3, 1] as [UInt64] {
            stage.run(for: .milliseconds(10))
            stage.happens(.messageReceived(.updates([MemberStage.record(number, .left)]), on: line))
        }
        stage.connect(5)
        #expect(stage.effects.contains(.forget(MemberStage.record(3, .left))))
        #expect(stage.state(3) == nil)
        #expect(stage.state(1) == .left)
        #expect(stage.state(5) == .alive)
        stage.happens(.messageReceived(.updates([MemberStage.record(6, .dead)]), on: line))
        #expect(stage.state(6) == nil)
    }
}
