import Cluster
import Ground
import Testing

@Suite("Changes of the voter set")
struct VoterSetConsensusTests {
    @Test("The first node of a cluster is a voter once that is synced")
    func opening() {
        var stage = FenceStage(newcomer: 1)
        stage.happens(.bootstrapRequested())
        #expect(!stage.isCurrent)
        stage.sync()
        #expect(stage.isCurrent)
        #expect(stage.set == VoterSet(foundedBy: FenceStage.node(1)))
    }

    @Test("A node with an old identity and absent peers does not bootstrap and stays fenced")
    func oldIdentity() {
        var stage = FenceStage(counted: [1, 2, 3])
        stage.happens(.bootstrapRequested())
        stage.pass(.seconds(600))
        #expect(!stage.isCurrent)
        #expect(stage.set == FenceStage.set([1, 2, 3]))
    }

    @Test("A newcomer adopts the voter set it hears of, and is current after a majority's replies")
    func newcomer() {
        var stage = FenceStage(newcomer: 9)
        stage.reach([1, 2])
        let configuration = VoterConfiguration(FenceStage.set([1, 2]))
        stage.answer(stage.ask(), by: 1, configuration: configuration)
        stage.sync()
        #expect(!stage.isCurrent)
        stage.now = stage.now + .seconds(1)
        stage.contact([1])
        #expect(!stage.isCurrent)
        stage.contact([2])
        #expect(stage.isCurrent)
        #expect(!stage.coordinator.consensus.isVoter)
        stage.happens(.bootstrapRequested())
        #expect(stage.set == configuration.set)
    }

    @Test("A member that has caught up is added by the votes of a majority")
    func counting() throws {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3, 7], contacting: [2, 3, 7])
        let vote = try stage.vote(with: [2]).vote
        #expect(vote.body == .vote(.add(FenceStage.node(7)), synced: []))
        #expect(stage.set == FenceStage.set([1, 2, 3]))
        stage.record(2, like: vote)
        #expect(stage.set == FenceStage.set([1, 2, 3, 7]))
        #expect(stage.isCurrent)
    }

    @Test("A member that is not current, or follows another set, is not added")
    func notCaughtUp() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3, 7], contacting: [2, 3])
        stage.answer(stage.ask(), by: 7, isCurrent: false)
        stage.pass(.seconds(3))
        #expect(stage.issued.isEmpty)
    }

    @Test("A silent member is removed after a time; a fenced node removes nobody")
    func forgetting() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2])
        for _ in 0..<29 {
            stage.contact([2])
            stage.pass(.seconds(2))
        }
        #expect(stage.issued.isEmpty)
        stage.contact([2])
        stage.pass(.seconds(3))
        #expect(stage.issued.count == 1)
        var alone = FenceStage(counted: [1, 2, 3])
        alone.pass(.seconds(600))
        #expect(alone.issued.isEmpty)
    }

    @Test("Time in which the process was suspended does not count as silence")
    func stoodStill() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2, 3])
        stage.now = stage.now + .seconds(3_600)
        stage.contact([2])
        stage.pass(.seconds(3))
        #expect(stage.isCurrent)
        #expect(stage.issued.isEmpty)
    }

    @Test("Of two concurrent removals the later ballot completes a possible earlier decision")
    func concurrent() throws {
        var stage = FenceStage(counted: [1, 2, 3, 4], reaching: [2, 3], contacting: [2, 3])
        try stage.forget([4])
        let call = try #require(stage.issued.first)
        stage.sync()
        stage.record(2, like: call)
        let earlier = Vote(
            ballot: Ballot(round: 1, proposer: FenceStage.node(0)),
            change: .remove([FenceStage.node(2)]))
        stage.record(3, like: call, voted: earlier)
        #expect(stage.issued.first?.vote?.change == earlier.change)
    }

    @Test("No promise or vote is made on an unsettled set")
    func notSettled() throws {
        let before = FenceStage.set([1, 2, 3, 4])
        let next = try #require(before.applying(by: .remove([FenceStage.node(4)])))
        var stage = FenceStage(counted: [1, 2, 3, 4], reaching: [2, 3, 7])
        stage.answer(stage.ask(), by: 2, configuration: VoterConfiguration(next, after: before))
        stage.contact([3, 7])
        stage.pass(.seconds(3))
        #expect(stage.issued.allSatisfy { $0.base == before })
        stage.answer(stage.ask(), by: 2, configuration: VoterConfiguration(next))
        stage.contact([7])
        stage.pass(.seconds(3))
        #expect(!stage.issued.isEmpty)
    }

    @Test("A new set is settled when a majority of it has synced everything the votes name")
    func settling() throws {
        var stage = FenceStage(counted: [1, 2, 3])
        stage.happens(.positionsApplied([FenceStage.purge(5)]))
        stage.happens(.positionsSynced([FenceStage.purge(5)]))
        stage.reach([2, 3, 7])
        stage.contact([2, 3, 7])
        let vote = try stage.vote(with: [2]).vote
        stage.record(2, like: vote)
        for (number, count) in [(2, 4), (3, 5), (2, 5)] as [(UInt64, UInt64)] {
            #expect(stage.coordinator.consensus.configuration?.isSettled == false)
            stage.answer(nil, by: number, holds: [FenceStage.purge(count)])
        }
        #expect(stage.coordinator.consensus.configuration?.isSettled == true)
    }

    @Test("A set whose votes are lost is settled by repeated votes")
    func votesLost() throws {
        let before = FenceStage.set([1, 2, 3, 4, 5])
        let next = try #require(before.applying(by: .remove([FenceStage.node(5)])))
        var stage = FenceStage(counted: [1, 2, 3, 4, 5])
        stage.happens(.positionsApplied([FenceStage.purge(5)]))
        stage.happens(.positionsSynced([FenceStage.purge(5)]))
        stage.reach([2, 3])
        stage.answer(nil, by: 2, configuration: VoterConfiguration(next, after: before))
        #expect(stage.issued.isEmpty)
        stage.pass(.seconds(30))
        let vote = try #require(stage.issued.first)
        #expect(stage.issued.count == 1)
        #expect(vote.vote?.change == .remove([FenceStage.node(5)]))
        #expect(vote.base == before)
        // The removed member is not needed: majorities of the others intersect all majorities.
        #expect(vote.ballot.excluded == [FenceStage.node(5)])
        stage.sync()
        for number in [2, 3] as [UInt64] {
            stage.record(number, like: vote)
            #expect(stage.coordinator.consensus.configuration?.isSettled == false)
        }
        for number in [2, 3] as [UInt64] {
            #expect(stage.coordinator.consensus.configuration?.isSettled == false)
            stage.answer(nil, by: number, holds: [FenceStage.purge(5)])
        }
        #expect(stage.coordinator.consensus.configuration?.isSettled == true)
        stage.pass(.seconds(30))
        #expect(stage.issued.isEmpty)
    }

    @Test("A voter that names lost records does not prevent the others from settling the set")
    func lostNames() throws {
        var stage = FenceStage(
            counted: [1, 2, 3, 4, 5], reaching: [2, 3, 7], contacting: [2, 3, 7])
        let call = try #require(stage.issued.first)
        stage.sync()
        for number in [2, 3] as [UInt64] { stage.record(number, like: call) }
        let own = try #require(stage.issued.first)
        let change = try #require(own.vote?.change)
        stage.sync()
        stage.record(2, like: own)
        let lost = ConsensusRecord.Payload.vote(change, synced: [FenceStage.purge(9)])
        stage.happens(
            .consensusRecordRead(
                ConsensusRecord(
                    base: own.base, member: FenceStage.node(4), ballot: own.ballot, body: lost)))
        #expect(stage.set == own.base.applying(by: change))
        #expect(stage.coordinator.consensus.configuration?.isSettled == false)
        stage.record(3, like: own)
        #expect(stage.coordinator.consensus.configuration?.isSettled == true)
    }

    @Test("A promise is kept, even after a restart")
    func promiseKept() {
        let set = FenceStage.set([1, 2, 3])
        let high = Ballot(round: 9, proposer: FenceStage.node(2))
        let promise = ConsensusRecord(
            base: set, member: FenceStage.node(1), ballot: high, body: .promise(voted: nil))
        var stage = FenceStage(counted: [1, 2, 3], replaying: [promise])
        let low = Ballot(round: 8, proposer: FenceStage.node(3))
        for body in [
            ConsensusRecord.Payload.promise(voted: nil),
            .vote(.remove([FenceStage.node(2)]), synced: []),
        ] {
            stage.happens(
                .consensusRecordRead(
                    ConsensusRecord(base: set, member: low.proposer, ballot: low, body: body)))
        }
        #expect(stage.issued.isEmpty)
    }

    @Test("Until a set is settled, a majority of the previous set is needed too")
    func unsettled() throws {
        let before = FenceStage.set([1, 2, 3, 4])
        let next = try #require(before.applying(by: .remove([FenceStage.node(4)])))
        var stage = FenceStage(counted: [1, 2, 3, 4], reaching: [2, 3])
        stage.answer(stage.ask(), by: 2, configuration: VoterConfiguration(next, after: before))
        #expect(!stage.isCurrent)
        stage.contact([3])
        #expect(stage.isCurrent)
        var settled = FenceStage(counted: [1, 2, 3, 4], reaching: [2, 3])
        settled.answer(settled.ask(), by: 2, configuration: VoterConfiguration(next))
        #expect(settled.isCurrent)
    }

    @Test("Replies from before the settling was known are not enough for the new set alone")
    func olderContact() throws {
        let before = FenceStage.set([1, 2, 3, 4])
        let next = try #require(before.applying(by: .remove([FenceStage.node(4)])))
        var stage = FenceStage(counted: [1, 2, 3, 4], reaching: [2, 3], contacting: [3])
        stage.now = stage.now + .seconds(1)
        stage.answer(nil, by: 2, configuration: VoterConfiguration(next))
        #expect(stage.set == next)
        #expect(!stage.isCurrent)
        stage.contact([3])
        #expect(stage.isCurrent)
    }
}

extension ConsensusRecord {
    var vote: Vote? {
        guard case .vote(let change, _) = body else { return nil }
        return Vote(ballot: ballot, change: change)
    }
}
