import Cluster
import Ground
import Testing

@Suite("Two processes with one node id")
struct IdentityTests {
    @Test("A newcomer with the id of a process that answers is refused", arguments: [4, 5, 6])
    func refused(epoch: UInt64) throws {
        var stage = MemberStage()
        let earlier = stage.connect(1)
        stage.answered(for: .seconds(1))
        let newcomer = stage.connect(1, run: 9, epoch: epoch)
        let ping = try #require(Array(stage.effects.suffix(1)).pings.first)
        #expect(ping.line == earlier)
        let effects = stage.happens(
            .messageReceived(.ack(sequence: ping.sequence, updates: []), on: earlier))
        #expect(effects == [.close(newcomer, .duplicateIdentity)])
        #expect(stage.connection(1) == earlier)
        #expect(stage.node[NodeID(low: 1, high: 0)] == MemberStage.record(1))
    }

    @Test("If the earlier process is silent, the newer one replaces it")
    func replaced() {
        var stage = MemberStage()
        let earlier = stage.connect(1)
        stage.answered(for: .seconds(1))
        let newcomer = stage.connect(1, run: 9, epoch: 6)
        #expect(stage.connection(1) == earlier)
        #expect(stage.run(for: .milliseconds(600)).contains(.close(earlier, .superseded)))
        #expect(stage.connection(1) == newcomer)
        #expect(stage.node[NodeID(low: 1, high: 0)]?.member.process.low == 9)
    }

    @Test("A restarted node is accepted at once if its earlier process is disconnected")
    func restarted() {
        var stage = MemberStage()
        let earlier = stage.connect(1)
        stage.happens(.connectionClosed(earlier, nil))
        let newcomer = stage.connect(1, run: 9, epoch: 6)
        #expect(stage.connection(1) == newcomer)
        #expect(stage.node[NodeID(low: 1, high: 0)]?.incarnation.epoch == 6)
    }

    @Test("A process with a lower boot epoch is sent the newer record, and is not accepted")
    func olderHello() throws {
        var stage = MemberStage()
        let earlier = stage.connect(1, run: 9, epoch: 7)
        stage.happens(.connectionClosed(earlier, nil))
        let id = NodeID(low: 1, high: 0)
        let held = try #require(stage.node[id])
        let copy = stage.connect(1, run: 10, epoch: 6)
        #expect(stage.effects.last == .send(.updates([held]), on: copy))
        #expect(stage.connection(1) == nil && stage.node[id] == held)
        // The connection is not closed at once, so that the record arrives; messages are ignored.
        #expect(stage.happens(.messageReceived(.ping(sequence: 1, updates: []), on: copy)).isEmpty)
        let later = stage.answered(for: .seconds(5))
        #expect(later.contains(.close(copy, .redundant)) && later.messages(on: copy).isEmpty)
    }

    @Test("A rumour of a newer process is checked with a ping and forwarded to the earlier one")
    func heardOf() {
        var stage = MemberStage()
        let (earlier, reporter) = (stage.connect(1), stage.connect(2))
        stage.answered(for: .seconds(1))
        let other = MemberStage.record(1, run: 9, epoch: 6)
        let asked = stage.happens(.messageReceived(.updates([other]), on: reporter)).messages(
            on: earlier)
        guard case .ping(let sequence, _) = asked.first else {
            Issue.record("the earlier process is not pinged")
            return
        }
        let forwarded = stage.happens(
            .messageReceived(.ack(sequence: sequence, updates: []), on: earlier))
        #expect(forwarded == [.send(.updates([other]), on: earlier)])
        #expect(stage.node[NodeID(low: 1, high: 0)] == MemberStage.record(1))
    }

    @Test(
        "A node restored from an older copy of its directory refuses to serve",
        arguments: [
            (5, true, true), (4, true, false), (5, false, false), (3, true, true),
        ] as [(UInt64, Bool, Bool)])
    func olderCopy(believed: UInt64, isJoining: Bool, isFound: Bool) {
        var stage = MemberStage(epoch: believed == 4 ? 5 : 3)
        stage.happens(.roleChanged(isJoining ? [] : .isCaughtUp))
        let line = stage.connect(1, isOwnDial: true)
        if !isJoining { stage.happens(.messageReceived(.table([], isRequest: false), on: line)) }
        let record = MemberStage.record(100, run: 7, epoch: believed, count: 2, .suspected)
        stage.happens(.messageReceived(.table([record], isRequest: false), on: line))
        #expect((stage.effects.last == .refuseToServe(.restoredCopy)) == isFound)
        #expect((stage.node.phase == .ended) == isFound)
    }

    @Test("A young process that is contradicted repeatedly gives way")
    func young() {
        var stage = MemberStage()
        let line = stage.connect(1)
        stage.happens(.messageReceived(.table([], isRequest: false), on: line))
        for count in [1, 3, 5] as [UInt32] {
            let other = MemberStage.record(100, run: 7, epoch: 6, count: count)
            stage.happens(.messageReceived(.updates([other]), on: line))
        }
        #expect(stage.effects.last == .refuseToServe(.duplicateIdentity))
        #expect(stage.node.phase == .ended)
        #expect(stage.node.nextTick == .distantFuture)
    }

    @Test("A process told that an earlier one answers stops serving")
    func refusedByPeer() {
        var stage = MemberStage()
        let (line, other) = (stage.connect(1), stage.connect(2))
        let effects = stage.happens(.connectionClosed(line, .duplicateIdentity))
        #expect(effects.last == .refuseToServe(.duplicateIdentity))
        #expect(effects.contains(.close(other, .leaving)))
        stage.connect(3)
        #expect(stage.effects.last == .close(ConnectionID(3), .leaving))
    }

    @Test(
        "Of two processes that meet, the earlier one keeps serving",
        arguments: [(1, 9), (9, 1)])
    func twins(earlierRun: UInt64, laterRun: UInt64) {
        var earlier = twin(run: earlierRun)
        earlier.connect(1)
        earlier.happens(.messageReceived(.table([], isRequest: false), on: ConnectionID(1)))
        var later = twin(run: laterRun)
        let line = ConnectionID(50)
        open(line, at: &earlier, of: later)
        open(line, at: &later, of: earlier)
        for _ in 0..<50 {
            let closing = earlier.run(for: .milliseconds(100)) + later.run(for: .milliseconds(100))
            _ = closing
            if earlier.effects.contains(.close(line, .duplicateIdentity)) {
                later.happens(.connectionClosed(line, .duplicateIdentity))
            }
            if later.effects.contains(.close(line, .duplicateIdentity)) {
                earlier.happens(.connectionClosed(line, .duplicateIdentity))
            }
        }
        #expect(later.node.phase == .ended)
        #expect(earlier.node.phase == .serving)
    }

    private func twin(run: UInt64) -> MemberStage {
        var stage = MemberStage()
        stage.node = Membership(
            MemberStage.member(100, run: run), Incarnation(epoch: 5, count: 0),
            now: MemberStage.start)
        return stage
    }

    private func open(_ line: ConnectionID, at stage: inout MemberStage, of other: MemberStage) {
        let own = other.node.own
        stage.happens(.connectionOpened(line, dialled: nil, own.member, own.incarnation))
    }
}
