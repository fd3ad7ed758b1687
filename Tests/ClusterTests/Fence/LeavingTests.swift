import Cluster
import Testing

@Suite("A node that goes waits to be counted no longer")
struct LeavingTests {
    @Test("as long as a majority is reached that can agree on it, and no longer")
    func patience() {
        var stage = FenceStage(counted: [1, 2, 3])
        stage.reach([2, 3])
        stage.happens(.leaveRequested)
        #expect(!stage.keeper.isLeaveOver)
        stage.reach([2])
        #expect(!stage.keeper.isLeaveOver)
        stage.reach([])
        #expect(stage.keeper.isLeaveOver && !stage.keeper.hasLeft)
    }

    @Test("of two, as long as the other one is reached")
    func two() {
        var stage = FenceStage(counted: [1, 2])
        stage.reach([2])
        stage.happens(.leaveRequested)
        #expect(!stage.keeper.isLeaveOver)
        // Whoever is not counted has no say.
        stage.reach([3, 4])
        #expect(stage.keeper.isLeaveOver)
    }

    @Test("alone, or without a count, it waits for nobody")
    func nobody() {
        #expect(FenceStage(counted: [1]).keeper.isLeaveOver)
        #expect(FenceStage(newcomer: 1).keeper.isLeaveOver)
    }
}
