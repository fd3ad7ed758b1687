import Cluster
import Ground
import Testing

@Suite("Leaving")
struct LeaveTests {
    @Test("The members are told first, and leaving ends when all have acknowledged")
    func acknowledged() {
        var stage = MemberStage()
        let lines = (1...3).map { stage.connect($0) }
        let effects = stage.happens(.leaveRequested)
        let left = MemberStage.record(100, .left)
        var last: [MembershipEffect] = []
        for line in lines {
            let messages = effects.messages(on: line)
            #expect(messages.first == .updates([left]))
            guard case .ping(let sequence, _) = messages.last else {
                Issue.record("no ping after the update")
                continue
            }
            #expect(last == [])
            last = stage.happens(.messageReceived(.ack(sequence: sequence, updates: []), on: line))
        }
        #expect(last == [.finishLeaving(unacknowledged: [])])
        #expect(stage.node.phase == .ended)
    }

    @Test("Members that do not acknowledge within 2 s are reported")
    func unacknowledged() {
        var stage = MemberStage()
        stage.connect(1)
        stage.connect(2)
        stage.happens(.leaveRequested)
        let effects = stage.run(for: .milliseconds(2_100)) { message, _ in nil }
        let ids = [MemberStage.member(1).id, MemberStage.member(2).id]
        #expect(effects == [.finishLeaving(unacknowledged: ids)])
    }

    @Test("A node without peers leaves at once, and a leaving node accepts no connection")
    func alone() {
        var stage = MemberStage()
        #expect(stage.happens(.leaveRequested).last == .finishLeaving(unacknowledged: []))
        let id = stage.connect(1)
        #expect(stage.effects.last == .close(id, .leaving))
    }

    @Test("A leaving node does not refute that it has left")
    func final() {
        var stage = MemberStage()
        let line = stage.connect(1)
        stage.happens(.leaveRequested)
        #expect(
            stage.happens(.messageReceived(.updates([MemberStage.record(100, .dead)]), on: line))
                == [])
        #expect(stage.node.own == MemberStage.record(100, .left))
    }
}
