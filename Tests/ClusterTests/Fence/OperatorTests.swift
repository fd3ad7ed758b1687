import Cluster
import Ground
import Testing

@Suite("What the operator is told of the members, and may do")
struct OperatorTests {
    @Test("of two, the survivor serves again when the operator forgets the other")
    func survivor() throws {
        var stage = FenceStage(counted: [1, 2])
        stage.meet([2])
        try stage.forget([2])
        for _ in 0..<3 { stage.sync() }
        #expect(stage.set?.members == [FenceStage.node(1)])
        #expect(stage.isCurrent)
    }

    @Test("a survivor that had no word of the other since it started may lack a purge")
    func unheard() {
        var stage = FenceStage(counted: [1, 2])
        stage.pass(.seconds(60))
        #expect(throws: FenceCoordinator.RemovalRefusal.mayLosePurges) { try stage.forget([2]) }
    }

    @Test("of three, the last one may lack a purge that both others had: forgetting is not enough")
    func lastOfThree() throws {
        var stage = FenceStage(counted: [1, 2, 3])
        stage.pass(.seconds(60))
        #expect(throws: FenceCoordinator.RemovalRefusal.tooFewResponding(count: 1, needed: 2)) {
            try stage.forget([3])
        }
        #expect(throws: FenceCoordinator.RemovalRefusal.mayLosePurges) { try stage.forget([2, 3]) }
        stage.happens(.recoveryRequested)
        stage.sync()
        stage.pass(.seconds(11))
        #expect(stage.isCurrent)
    }

    @Test("a member that died before it had all can be forgotten, and the count goes on")
    func diedWhileCounted() throws {
        var stage = FenceStage(counted: [1])
        for event in [FenceEvent.positionsApplied, FenceEvent.positionsSynced] {
            stage.happens(event([FenceStage.purge(5)]))
        }
        stage.reach([2])
        stage.contact([2])
        stage.pass(.seconds(1))
        stage.sync()
        try #require(stage.set?.members == [1, 2].map(FenceStage.node))
        #expect(stage.keeper.consensus.configuration?.isSettled == false)
        stage.reach([])
        stage.pass(.seconds(60))
        #expect(!stage.isCurrent)
        try stage.forget([2])
        for _ in 0..<3 { stage.sync() }
        #expect(stage.set?.members == [FenceStage.node(1)])
        #expect(stage.isCurrent)
    }

    @Test("a forgotten member that comes back is no longer counted, and has to catch up")
    func comesBack() {
        var stage = FenceStage(own: 2, counted: [1, 2], reaching: [1])
        let after = FenceStage.set([1], later: 2)
        stage.answer(
            stage.ask(), by: 1, holds: [FenceStage.purge(1)], standing: VoterConfiguration(after))
        #expect(stage.set == after)
        #expect(!stage.isCurrent)
        stage.happens(.positionsApplied([FenceStage.purge(1)]))
        stage.now = stage.now + .seconds(1)
        stage.contact([1])
        #expect(stage.isCurrent)
        #expect(!stage.keeper.consensus.isVoter)
    }

    @Test("two that forgot each other fence, until the count begins anew with one of them")
    func splitBrain() throws {
        var stage = FenceStage(counted: [1, 2])
        stage.meet([2])
        try stage.forget([2])
        for _ in 0..<3 { stage.sync() }
        let other = try #require(
            FenceStage.set([1, 2]).applying(by: .remove([FenceStage.node(1)])))
        stage.reach([2])
        stage.answer(nil, by: 2, standing: VoterConfiguration(other))
        #expect(!stage.isCurrent)
        #expect(stage.keeper.consensus.conflict != nil)
        let anew = VoterSet(foundedBy: FenceStage.node(2), recovery: 1)
        stage.answer(stage.ask(), by: 2, standing: VoterConfiguration(anew))
        #expect(stage.set == anew && stage.keeper.consensus.conflict == nil)
        // It has left the other line when it is synced that it has.
        #expect(!stage.isCurrent)
        stage.sync()
        stage.pass(.seconds(11))
        stage.contact([2])
        #expect(stage.isCurrent && !stage.keeper.consensus.isVoter)
    }

    @Test("the count begins anew with a node alone, whatever contradicted it or did not answer")
    func recovery() {
        for isContradicted in [false, true] {
            var stage = FenceStage(counted: [1, 2, 3])
            stage.pass(.seconds(60))
            if isContradicted { stage.happens(.recordConflictFound(FenceStage.purge(4))) }
            #expect(!stage.isCurrent)
            stage.happens(.recoveryRequested)
            #expect(stage.set == VoterSet(foundedBy: FenceStage.node(1), recovery: 1))
            #expect(!stage.isCurrent)
            stage.sync()
            // Somebody may be current in the line before for one fence more.
            stage.pass(.milliseconds(9_999))
            #expect(!stage.isCurrent)
            stage.pass(.milliseconds(2))
            #expect(stage.isCurrent)
            // What it left says nothing to it any more.
            stage.reach([2])
            stage.answer(nil, by: 2, standing: VoterConfiguration(FenceStage.set([1, 2, 3])))
            #expect(stage.isCurrent && stage.set?.lineage.recovery == 1)
            // Whoever recovers after it is right.
            let later = VoterSet(foundedBy: FenceStage.node(2), recovery: 2)
            stage.answer(nil, by: 2, standing: VoterConfiguration(later))
            #expect(!stage.isCurrent && stage.set == later)
        }
    }

    @Test("what is recovered at two nodes at once becomes one")
    func twoRecoveries() {
        var stage = FenceStage(counted: [1, 2])
        stage.happens(.recoveryRequested)
        stage.sync()
        let other = VoterSet(foundedBy: FenceStage.node(2), recovery: 1)
        stage.reach([2])
        stage.answer(nil, by: 2, standing: VoterConfiguration(other))
        #expect(stage.set?.founder == FenceStage.node(1))
        var second = FenceStage(own: 2, counted: [1, 2])
        second.happens(.recoveryRequested)
        second.sync()
        second.reach([1])
        let first = VoterSet(foundedBy: FenceStage.node(1), recovery: 1)
        second.answer(nil, by: 1, standing: VoterConfiguration(first))
        #expect(second.set == first)
    }

    @Test("several are forgotten one after another where all agree")
    func several() throws {
        var stage = FenceStage(
            counted: [1, 2, 3, 4, 5, 6, 7], reaching: [2, 3, 4, 5], contacting: [2, 3, 4, 5])
        try stage.forget([6, 7])
        for gone in [6, 7] as [UInt64] {
            stage.pass(.seconds(1))
            stage.contact([2, 3, 4, 5])
            let vote = try stage.vote(with: [2, 3, 4]).vote
            #expect(vote.vote?.change == .remove([FenceStage.node(gone)]))
            for member in [2, 3, 4] as [UInt64] { stage.record(member, like: vote) }
            #expect(stage.set?.contains(FenceStage.node(gone)) == false)
            stage.answer(nil, by: 2)
            stage.contact([2, 3, 4, 5])
        }
        #expect(stage.set?.members.count == 5)
    }

    @Test("what cannot be forgotten is refused with the reason")
    func refusals() throws {
        typealias Refusal = FenceCoordinator.RemovalRefusal
        var stage = FenceStage(counted: [1, 2, 3, 4, 5], reaching: [2, 3], contacting: [2, 3])
        #expect(throws: Refusal.notVoters([FenceStage.node(8)])) { try stage.forget([8]) }
        #expect(throws: Refusal.isOwnNode) { try stage.forget([1]) }
        #expect(throws: Refusal.stillResponding([FenceStage.node(2)])) { try stage.forget([2]) }
        // One that is connected and speaks is alive, asked or not.
        stage.reach([2, 3, 4])
        stage.answer(nil, by: 4)
        #expect(throws: Refusal.stillResponding([FenceStage.node(4)])) { try stage.forget([4]) }
        stage.reach([2, 3])
        try stage.forget([4])
        #expect(throws: Refusal.changeInProgress(.remove([FenceStage.node(4)]))) {
            try stage.forget([5])
        }
        var newcomer = FenceStage(newcomer: 1)
        #expect(throws: Refusal.noVoterSet) { try newcomer.forget([2]) }
    }

    @Test("the table says who is counted, how long ago it was in contact and what it lacks")
    func table() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 7])
        stage.happens(.positionsApplied([FenceStage.purge(5)]))
        stage.happens(.positionsSynced([FenceStage.purge(5)]))
        let round = stage.ask()
        stage.answer(round, by: 2, holds: [FenceStage.purge(5)])
        stage.answer(round, by: 7, holds: [FenceStage.purge(1)], isCurrent: false)
        stage.now = stage.now + .seconds(1)
        let table = stage.keeper.memberStatuses(at: stage.now)
        #expect(table.map(\.id) == [1, 2, 3, 7].map(FenceStage.node))
        #expect(table.map(\.isVoter) == [true, true, true, false])
        #expect(table.map(\.contactAge) == [.zero, .seconds(1), nil, .seconds(1)])
        #expect(table.map(\.lag) == [0, 0, nil, 4])
        #expect(table.map(\.isCurrent) == [true, true, nil, false])
    }

    @Test("a newborn cluster gives itself up to one that has grown, when that is synced")
    func newborn() {
        var stage = FenceStage(newcomer: 1)
        stage.happens(.bootstrapRequested())
        stage.sync()
        #expect(stage.isCurrent)
        stage.reach([2, 3])
        let grown = VoterConfiguration(FenceStage.set([2, 3]))
        let round = stage.ask()
        for member in [2, 3] as [UInt64] { stage.answer(round, by: member, standing: grown) }
        #expect(!stage.isCurrent)
        #expect(stage.set == grown.set)
        stage.sync()
        stage.now = stage.now + .seconds(1)
        stage.contact([2, 3])
        #expect(stage.isCurrent)
    }

    @Test("two clusters that have both grown contradict each other")
    func twoClusters() {
        var stage = FenceStage(counted: [1, 2], reaching: [2, 3], contacting: [2])
        stage.answer(nil, by: 3, standing: VoterConfiguration(FenceStage.set([3, 4])))
        #expect(!stage.isCurrent)
    }

    @Test("what is remembered and what the log holds make the same count after a restart")
    func restart() throws {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3, 7], contacting: [2, 3, 7])
        let (call, vote) = try stage.vote(with: [2])
        let memory = stage.keeper.consensus.persistentState
        let restarted = VoterSetConsensus(
            own: FenceStage.node(1), memory: memory, replaying: [vote, call], now: stage.now)
        #expect(restarted.persistentState == memory)
        stage.record(2, like: vote)
        #expect(stage.set == FenceStage.set([1, 2, 3, 7]))
    }
}
