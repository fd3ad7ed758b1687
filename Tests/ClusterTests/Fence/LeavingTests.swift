import Cluster
import Ground
import Testing

@Suite("A node that goes waits to be counted no longer")
struct LeavingTests {
    @Test("as long as a majority is reached that can agree on it, and no longer")
    func patience() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        stage.happens(.leaveRequested)
        #expect(!stage.keeper.isLeaveComplete)
        stage.reach([2])
        #expect(!stage.keeper.isLeaveComplete)
        stage.reach([])
        #expect(stage.keeper.isLeaveComplete && !stage.keeper.hasLeft)
    }

    @Test("of two, as long as the other one is reached")
    func two() {
        var stage = FenceStage(counted: [1, 2], reaching: [2])
        stage.happens(.leaveRequested)
        #expect(!stage.keeper.isLeaveComplete)
        // Whoever is not counted has no say.
        stage.reach([3, 4])
        #expect(stage.keeper.isLeaveComplete)
    }

    @Test("it is not counted again in the moment between being forgotten and going")
    func forgotten() throws {
        var stays = FenceStage(own: 1, counted: [1, 2])
        var goes = FenceStage(own: 2, counted: [1, 2])
        var isTold = false
        for _ in 0..<8 {
            stays.reach([2])
            goes.reach([1])
            stays.hear(goes, as: 2)
            goes.hear(stays, as: 1)
            if goes.isCurrent, stays.isCurrent, !isTold {
                isTold = true
                goes.happens(.leaveRequested)
            }
            for record in stays.takeSynced() + goes.takeSynced() {
                stays.happens(.consensusRecordRead(record))
                goes.happens(.consensusRecordRead(record))
            }
        }
        #expect(goes.keeper.hasLeft)
        for _ in 0..<8 {
            stays.hear(goes, as: 2)
            goes.hear(stays, as: 1)
            stays.pass(.seconds(1))
            #expect(stays.takeSynced().isEmpty && stays.set?.members == [FenceStage.node(1)])
        }
    }

    @Test("alone, or without a count, it waits for nobody")
    func nobody() {
        #expect(FenceStage(counted: [1]).keeper.isLeaveComplete)
        #expect(FenceStage(newcomer: 1).keeper.isLeaveComplete)
    }
}
