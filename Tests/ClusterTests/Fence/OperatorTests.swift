import Cluster
import Ground
import Testing

@Suite("Operators' view of the voter set and their commands")
struct OperatorTests {
    @Test("The survivor of two becomes current when the operator forgets the other")
    func survivor() throws {
        var stage = FenceStage(counted: [1, 2])
        stage.meet([2])
        try stage.forget([2])
        for _ in 0..<3 { stage.sync() }
        #expect(stage.set?.members == [FenceStage.node(1)])
        #expect(stage.isCurrent)
    }

    @Test("A survivor that has not heard the other since its start may lack a purge")
    func unheard() {
        var stage = FenceStage(counted: [1, 2])
        stage.pass(.seconds(60))
        #expect(throws: FenceCoordinator.RemovalRefusal.mayLosePurges) { try stage.forget([2]) }
    }

    @Test("The last of three may lack a purge of the other two: forgetting is refused")
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

    @Test("A voter that died before its set was settled can be forgotten")
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
        #expect(stage.coordinator.consensus.configuration?.isSettled == false)
        stage.reach([])
        stage.pass(.seconds(60))
        #expect(!stage.isCurrent)
        try stage.forget([2])
        for _ in 0..<3 { stage.sync() }
        #expect(stage.set?.members == [FenceStage.node(1)])
        #expect(stage.isCurrent)
    }

    @Test("A forgotten member that returns is no voter and has to catch up")
    func comesBack() {
        var stage = FenceStage(own: 2, counted: [1, 2], reaching: [1])
        let after = FenceStage.set([1], later: 2)
        stage.answer(
            stage.ask(), by: 1, holds: [FenceStage.purge(1)],
            configuration: VoterConfiguration(after))
        #expect(stage.set == after)
        #expect(!stage.isCurrent)
        stage.happens(.positionsApplied([FenceStage.purge(1)]))
        stage.now = stage.now + .seconds(1)
        stage.contact([1])
        #expect(stage.isCurrent)
        #expect(!stage.coordinator.consensus.isVoter)
    }

    @Test("Two that forgot each other are fenced until one of them recovers")
    func splitBrain() throws {
        var stage = FenceStage(counted: [1, 2])
        stage.meet([2])
        try stage.forget([2])
        for _ in 0..<3 { stage.sync() }
        let other = try #require(
            FenceStage.set([1, 2]).applying(by: .remove([FenceStage.node(1)])))
        stage.reach([2])
        stage.answer(nil, by: 2, configuration: VoterConfiguration(other))
        #expect(!stage.isCurrent)
        #expect(stage.coordinator.consensus.conflict != nil)
        let anew = VoterSet(foundedBy: FenceStage.node(2), recovery: 1)
        stage.answer(stage.ask(), by: 2, configuration: VoterConfiguration(anew))
        #expect(stage.set == anew && stage.coordinator.consensus.conflict == nil)
        // It has left the other lineage once that is synced.
        #expect(!stage.isCurrent)
        stage.sync()
        stage.pass(.seconds(11))
        stage.contact([2])
        #expect(stage.isCurrent && !stage.coordinator.consensus.isVoter)
    }

    @Test("Recovery starts a new voter set of one node, whatever the conflict or silence")
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
            // Another node may be current in the old lineage for one more fence interval.
            stage.pass(.milliseconds(9_999))
            #expect(!stage.isCurrent)
            stage.pass(.milliseconds(2))
            #expect(stage.isCurrent)
            // The old lineage no longer has any effect.
            stage.reach([2])
            stage.answer(nil, by: 2, configuration: VoterConfiguration(FenceStage.set([1, 2, 3])))
            #expect(stage.isCurrent && stage.set?.lineage.recovery == 1)
            // A later recovery takes precedence.
            let later = VoterSet(foundedBy: FenceStage.node(2), recovery: 2)
            stage.answer(nil, by: 2, configuration: VoterConfiguration(later))
            #expect(!stage.isCurrent && stage.set == later)
        }
    }

    @Test("Concurrent recoveries of two nodes converge")
    func twoRecoveries() {
        var stage = FenceStage(counted: [1, 2])
        stage.happens(.recoveryRequested)
        stage.sync()
        let other = VoterSet(foundedBy: FenceStage.node(2), recovery: 1)
        stage.reach([2])
        stage.answer(nil, by: 2, configuration: VoterConfiguration(other))
        #expect(stage.set?.founder == FenceStage.node(1))
        var second = FenceStage(own: 2, counted: [1, 2])
        second.happens(.recoveryRequested)
        second.sync()
        second.reach([1])
        let first = VoterSet(foundedBy: FenceStage.node(1), recovery: 1)
        second.answer(nil, by: 1, configuration: VoterConfiguration(first))
        #expect(second.set == first)
    }

    @Test("Several members are forgotten one after the other if a majority agrees")
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

    @Test("A refusal to forget gives its reason")
    func refusals() throws {
        typealias Refusal = FenceCoordinator.RemovalRefusal
        var stage = FenceStage(counted: [1, 2, 3, 4, 5], reaching: [2, 3], contacting: [2, 3])
        #expect(throws: Refusal.notVoters([FenceStage.node(8)])) { try stage.forget([8]) }
        #expect(throws: Refusal.isOwnNode) { try stage.forget([1]) }
        #expect(throws: Refusal.stillResponding([FenceStage.node(2)])) { try stage.forget([2]) }
        // A connected member that replies is alive, asked or not.
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

    @Test("The table shows who is a voter, the age of the contact and the lag")
    func table() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 7])
        stage.happens(.positionsApplied([FenceStage.purge(5)]))
        stage.happens(.positionsSynced([FenceStage.purge(5)]))
        let round = stage.ask()
        stage.answer(round, by: 2, holds: [FenceStage.purge(5)])
        stage.answer(round, by: 7, holds: [FenceStage.purge(1)], isCurrent: false)
        stage.now = stage.now + .seconds(1)
        let table = stage.coordinator.memberStatuses(at: stage.now)
        #expect(table.map(\.id) == [1, 2, 3, 7].map(FenceStage.node))
        #expect(table.map(\.isVoter) == [true, true, true, false])
        #expect(table.map(\.contactAge) == [.zero, .seconds(1), nil, .seconds(1)])
        #expect(table.map(\.lag) == [0, 0, nil, 4])
        #expect(table.map(\.isCurrent) == [true, true, nil, false])
    }

    @Test("A new cluster of one joins one that has grown, once that is synced")
    func newborn() {
        var stage = FenceStage(newcomer: 1)
        stage.happens(.bootstrapRequested())
        stage.sync()
        #expect(stage.isCurrent)
        stage.reach([2, 3])
        let grown = VoterConfiguration(FenceStage.set([2, 3]))
        let round = stage.ask()
        for member in [2, 3] as [UInt64] { stage.answer(round, by: member, configuration: grown) }
        #expect(!stage.isCurrent)
        #expect(stage.set == grown.set)
        stage.sync()
        stage.now = stage.now + .seconds(1)
        stage.contact([2, 3])
        #expect(stage.isCurrent)
    }

    @Test("Two clusters that have both grown conflict")
    func twoClusters() {
        var stage = FenceStage(counted: [1, 2], reaching: [2, 3], contacting: [2])
        stage.answer(nil, by: 3, configuration: VoterConfiguration(FenceStage.set([3, 4])))
        #expect(!stage.isCurrent)
    }

    @Test("The persistent state and the log give the same voter set after a restart")
    func restart() throws {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3, 7], contacting: [2, 3, 7])
        let (call, vote) = try stage.vote(with: [2])
        let memory = stage.coordinator.consensus.persistentState
        let restarted = VoterSetConsensus(
            own: FenceStage.node(1), persistentState: memory, replaying: [vote, call],
            now: stage.now)
        #expect(restarted.persistentState == memory)
        stage.record(2, like: vote)
        #expect(stage.set == FenceStage.set([1, 2, 3, 7]))
    }
}
