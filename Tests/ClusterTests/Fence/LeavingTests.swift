import Cluster
import Ground
import Testing

@Suite("A leaving node waits for its removal from the voter set")
struct LeavingTests {
    @Test("A leaving node waits while it reaches a majority that can agree")
    func patience() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        stage.happens(.leaveRequested)
        #expect(!stage.coordinator.isLeaveComplete)
        stage.reach([2])
        #expect(!stage.coordinator.isLeaveComplete)
        stage.reach([])
        #expect(stage.coordinator.isLeaveComplete && !stage.coordinator.hasLeft)
    }

    @Test("Of two voters, a leaving one waits while it reaches the other")
    func two() {
        var stage = FenceStage(counted: [1, 2], reaching: [2])
        stage.happens(.leaveRequested)
        #expect(!stage.coordinator.isLeaveComplete)
        // Nodes that are no voters do not count.
        stage.reach([3, 4])
        #expect(stage.coordinator.isLeaveComplete)
    }

    @Test("A leaving node is not added again between its removal and its end")
    func forgotten() throws {
        var stays = FenceStage(own: 1, counted: [1, 2])
        var goes = FenceStage(own: 2, counted: [1, 2])
        var isLeaving = false
        for _ in 0..<8 {
            stays.reach([2])
            goes.reach([1])
            stays.hear(goes, as: 2)
            goes.hear(stays, as: 1)
            if goes.isCurrent, stays.isCurrent, !isLeaving {
                isLeaving = true
                goes.happens(.leaveRequested)
            }
            for record in stays.takeSynced() + goes.takeSynced() {
                stays.happens(.consensusRecordRead(record))
                goes.happens(.consensusRecordRead(record))
            }
        }
        #expect(goes.coordinator.hasLeft)
        for _ in 0..<8 {
            stays.hear(goes, as: 2)
            goes.hear(stays, as: 1)
            stays.pass(.seconds(1))
            #expect(stays.takeSynced().isEmpty && stays.set?.members == [FenceStage.node(1)])
        }
    }

    @Test("A single voter, or a node without a voter set, waits for no other")
    func nobody() {
        #expect(FenceStage(counted: [1]).coordinator.isLeaveComplete)
        #expect(FenceStage(newcomer: 1).coordinator.isLeaveComplete)
    }
}
