import Cluster
import Ground
import Testing

@Suite("When a node is proven current")
struct FenceTests {
    @Test("a node starts fenced, and is unfenced when a majority has answered")
    func start() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        #expect(!stage.isCurrent)
        stage.contact([2])
        #expect(stage.isCurrent)
        #expect(stage.keeper.window.currentUntil == stage.now + FenceStage.fence)
    }

    @Test("time runs from the question, however late the answer")
    func fromTheQuestion() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        let round = stage.ask()
        let askedAt = stage.now
        stage.now = stage.now + .seconds(9)
        stage.answer(round, by: 2)
        #expect(stage.keeper.window.currentUntil == askedAt + FenceStage.fence)
        let late = stage.ask()
        stage.now = stage.now + .seconds(11)
        stage.answer(late, by: 2)
        #expect(!stage.isCurrent)
    }

    @Test("an answer counts once everything that it names is applied, from its question on")
    func appliedFirst() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        let askedAt = stage.now
        stage.answer(stage.ask(), by: 2, holds: [FenceStage.purge(3)])
        #expect(!stage.isCurrent)
        stage.now = stage.now + .seconds(4)
        stage.happens(.positionsApplied([FenceStage.purge(2)]))
        #expect(!stage.isCurrent)
        stage.happens(.positionsApplied([FenceStage.purge(3)]))
        #expect(stage.keeper.window.currentUntil == askedAt + FenceStage.fence)
    }

    @Test("with a purge in every answer the earliest that is caught up with counts")
    func alwaysBehind() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        for number in 1...9 as ClosedRange<UInt64> {
            stage.answer(stage.ask(), by: 2, holds: [FenceStage.purge(number)])
            stage.now = stage.now + .seconds(1)
        }
        stage.happens(.positionsApplied([FenceStage.purge(1)]))
        #expect(stage.isCurrent)
    }

    @Test("answers to what nobody asked, or to what was asked too long ago, count for nothing")
    func strangeRounds() {
        var stage = FenceStage(counted: [1, 2], reaching: [2])
        stage.answer(7, by: 2)
        stage.answer(nil, by: 2)
        #expect(!stage.isCurrent)
        let round = stage.ask()
        stage.now = stage.now + .seconds(60)
        _ = stage.ask()
        stage.answer(round, by: 2)
        #expect(!stage.isCurrent)
    }

    @Test("what was proven stays so when a set is learnt of, and no longer than a fence")
    func keptWindow() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2])
        let until = stage.keeper.window.currentUntil
        let after = FenceStage.set([1, 2], later: 2)
        stage.answer(nil, by: 3, standing: VoterConfiguration(after))
        #expect(stage.set == after && stage.keeper.window.currentUntil == until)
        var alone = FenceStage(counted: [1])
        alone.pass(.seconds(60))
        #expect(alone.isCurrent)
        alone.reach([2])
        let grown = FenceStage.set([1, 2])
        alone.answer(nil, by: 2, standing: VoterConfiguration(grown))
        alone.pass(.seconds(11))
        #expect(alone.set == grown && !alone.isCurrent)
    }

    @Test("nothing has to happen for the fence to close: the clock is enough")
    func noTimer() {
        let stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2, 3])
        let until = stage.keeper.window.currentUntil
        #expect(stage.keeper.window.isCurrent(at: until - Interval(nanoseconds: 1)))
        #expect(!stage.keeper.window.isCurrent(at: until))
        #expect(stage.keeper.window.closedAt == until)
    }

    @Test("a lone counted node is its own majority for ever; of two one is none")
    func loneNode() {
        var lone = FenceStage(counted: [1])
        lone.happens(.ticked)
        #expect(lone.keeper.window.currentUntil == .distantFuture)
        var pair = FenceStage(counted: [1, 2], reaching: [2])
        pair.pass(.seconds(30))
        #expect(!pair.isCurrent)
    }

    @Test("members are asked after two fifths of the fence; what is asked anyway costs no round")
    func rate() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2, 3])
        let before = stage.rounds.count
        for _ in 0..<25 {
            stage.pass(.seconds(4))
            stage.contact([2, 3])
        }
        #expect(stage.isCurrent && stage.rounds.count - before == 25)
        #expect(stage.ask() == stage.ask())
    }

    @Test("who is not proven current asks twice a second")
    func hurry() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        stage.pass(.seconds(100))
        #expect(!stage.isCurrent && (195...205).contains(stage.rounds.count))
    }

    @Test("as many as a majority needs are asked while all is well, each member in its turn")
    func turns() {
        let others = Array(2...7) as [UInt64]
        var stage = FenceStage(counted: [1] + others, reaching: others, contacting: others)
        var asked: [NodeID: Int] = [:]
        for _ in 0..<12 {
            let before = stage.asked.count
            stage.pass(.seconds(4))
            let now = stage.asked.dropFirst(before)
            #expect(now.count == 3 && Set(now).count == 3)
            for member in now { asked[member, default: 0] += 1 }
            stage.contact(others)
        }
        #expect(asked.count == 6 && asked.values.allSatisfy { (5...7).contains($0) })
    }

    @Test("who has gone by its own word is forgotten at once")
    func departed() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2, 3])
        stage.reach([2])
        stage.pass(.seconds(1))
        #expect(stage.issued.isEmpty, "it may only be silent")
        stage.happens(.membersLeft([FenceStage.node(3)]))
        stage.pass(.seconds(1))
        // A change begins with a promise of each.
        #expect(stage.issued.map(\.body) == [.promise(voted: nil)])
    }

    @Test("a contradiction closes the fence until the operator acts")
    func contradiction() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2, 3])
        stage.now = stage.now + .seconds(1)
        stage.happens(.recordConflictFound(FenceStage.purge(4)))
        #expect(!stage.isCurrent)
        #expect(stage.keeper.window.closedAt == stage.now)
        stage.contact([2, 3])
        #expect(!stage.isCurrent)
        stage.happens(.recoveryRequested)
        stage.sync()
        stage.pass(.seconds(11))
        #expect(stage.isCurrent)
    }

    @Test("with the fence off nobody is ever fenced")
    func off() {
        var settings = Fence.Settings()
        settings.duration = nil
        let keeper = FenceCoordinator(
            own: FenceStage.node(1), persistentState: nil, replaying: [], mayBootstrap: false,
            settings: settings, firstRound: 1, now: FenceStage.start)
        #expect(keeper.window.currentUntil == .distantFuture)
    }
}

@Suite("What may be used while fenced")
struct FencedUseTests {
    static let closed = FenceWindow(
        currentUntil: Instant(nanoseconds: 100), closedAt: Instant(nanoseconds: 100))

    func use(
        _ now: Int64, validatedAt: Int64, staleIfError: Int64? = nil,
        window: FenceWindow = FencedUseTests.closed
    ) -> FenceDecision {
        FenceDecision.decide(
            now: Instant(nanoseconds: now), window: window,
            validatedAt: Instant(nanoseconds: validatedAt), fence: Interval(nanoseconds: 10),
            staleIfError: staleIfError.map { Interval(nanoseconds: $0) })
    }

    @Test("unfenced, the fence says nothing")
    func open() {
        #expect(use(99, validatedAt: 0) == .unrestricted)
    }

    @Test("fenced, each entry costs the origin one request in a fence")
    func recent() {
        #expect(use(104, validatedAt: 95) == .unrestrictedUntil(Instant(nanoseconds: 105)))
        #expect(use(105, validatedAt: 95) == .revalidate(staleUntil: nil))
        #expect(use(105, validatedAt: 106) == .revalidate(staleUntil: nil))
    }

    @Test("if the origin fails, stale only where granted, counted from when the fence closed")
    func granted() {
        let until = Instant(nanoseconds: 150)
        #expect(use(149, validatedAt: 0, staleIfError: 50) == .revalidate(staleUntil: until))
        #expect(use(150, validatedAt: 0, staleIfError: 50) == .revalidate(staleUntil: nil))
    }

    @Test("a window that begins to be read as it opens again gives no more than now does")
    func tornRead() {
        let torn = FenceWindow(
            currentUntil: Instant(nanoseconds: 100), closedAt: Instant(nanoseconds: 900))
        let until = Instant(nanoseconds: 170)
        #expect(
            use(120, validatedAt: 0, staleIfError: 50, window: torn)
                == .revalidate(staleUntil: until))
    }
}
