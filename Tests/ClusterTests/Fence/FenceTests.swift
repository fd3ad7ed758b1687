import Cluster
import Ground
import Testing

@Suite("When a node is current")
struct FenceTests {
    @Test("A node starts fenced and is current when a majority has replied")
    func start() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        #expect(!stage.isCurrent)
        stage.contact([2])
        #expect(stage.isCurrent)
        #expect(stage.coordinator.window.currentUntil == stage.now + FenceStage.fence)
    }

    @Test("The fence runs from the request of a round, however late the reply")
    func fromTheQuestion() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        let round = stage.ask()
        let askedAt = stage.now
        stage.now = stage.now + .seconds(9)
        stage.answer(round, by: 2)
        #expect(stage.coordinator.window.currentUntil == askedAt + FenceStage.fence)
        let late = stage.ask()
        stage.now = stage.now + .seconds(11)
        stage.answer(late, by: 2)
        #expect(!stage.isCurrent)
    }

    @Test("A reply counts once all its positions are applied, from its request on")
    func appliedFirst() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        let askedAt = stage.now
        stage.answer(stage.ask(), by: 2, holds: [FenceStage.purge(3)])
        #expect(!stage.isCurrent)
        stage.now = stage.now + .seconds(4)
        stage.happens(.positionsApplied([FenceStage.purge(2)]))
        #expect(!stage.isCurrent)
        stage.happens(.positionsApplied([FenceStage.purge(3)]))
        #expect(stage.coordinator.window.currentUntil == askedAt + FenceStage.fence)
    }

    @Test("With a purge in every reply, the oldest reply that is caught up with counts")
    func alwaysBehind() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        for number in 1...9 as ClosedRange<UInt64> {
            stage.answer(stage.ask(), by: 2, holds: [FenceStage.purge(number)])
            stage.now = stage.now + .seconds(1)
        }
        stage.happens(.positionsApplied([FenceStage.purge(1)]))
        #expect(stage.isCurrent)
    }

    @Test("Replies to unknown or old rounds count for nothing")
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

    @Test("A new voter set keeps the current window, for one fence at most")
    func keptWindow() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2])
        let until = stage.coordinator.window.currentUntil
        let after = FenceStage.set([1, 2], later: 2)
        stage.answer(nil, by: 3, configuration: VoterConfiguration(after))
        #expect(stage.set == after && stage.coordinator.window.currentUntil == until)
        var alone = FenceStage(counted: [1])
        alone.pass(.seconds(60))
        #expect(alone.isCurrent)
        alone.reach([2])
        let grown = FenceStage.set([1, 2])
        alone.answer(nil, by: 2, configuration: VoterConfiguration(grown))
        alone.pass(.seconds(11))
        #expect(alone.set == grown && !alone.isCurrent)
    }

    @Test("The fence closes by the clock alone, without an event")
    func noTimer() {
        let stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2, 3])
        let until = stage.coordinator.window.currentUntil
        #expect(stage.coordinator.window.isCurrent(at: until - Interval(nanoseconds: 1)))
        #expect(!stage.coordinator.window.isCurrent(at: until))
        #expect(stage.coordinator.window.closedAt == until)
    }

    @Test("A single voter is always its own majority; one of two is none")
    func loneNode() {
        var lone = FenceStage(counted: [1])
        lone.happens(.ticked)
        #expect(lone.coordinator.window.currentUntil == .distantFuture)
        var pair = FenceStage(counted: [1, 2], reaching: [2])
        pair.pass(.seconds(30))
        #expect(!pair.isCurrent)
    }

    @Test("Rounds start after two fifths of the fence, and one round serves all queries")
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

    @Test("A fenced node starts two rounds a second")
    func hurry() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3])
        stage.pass(.seconds(100))
        #expect(!stage.isCurrent && (195...205).contains(stage.rounds.count))
    }

    @Test("While all is well only as many members as needed are asked, in turn")
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

    @Test("A member that leaves is removed at once")
    func departed() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2, 3])
        stage.reach([2])
        stage.pass(.seconds(1))
        #expect(stage.issued.isEmpty, "it may only be silent")
        stage.happens(.membersLeft([FenceStage.node(3)]))
        stage.pass(.seconds(1))
        // A change begins with a promise of each voter.
        #expect(stage.issued.map(\.body) == [.promise(voted: nil)])
    }

    @Test("A conflict of records closes the fence until the operator acts")
    func contradiction() {
        var stage = FenceStage(counted: [1, 2, 3], reaching: [2, 3], contacting: [2, 3])
        stage.now = stage.now + .seconds(1)
        stage.happens(.recordConflictFound(FenceStage.purge(4)))
        #expect(!stage.isCurrent)
        #expect(stage.coordinator.window.closedAt == stage.now)
        stage.contact([2, 3])
        #expect(!stage.isCurrent)
        stage.happens(.recoveryRequested)
        stage.sync()
        stage.pass(.seconds(11))
        #expect(stage.isCurrent)
    }

    @Test("With the fence off no node is ever fenced")
    func off() {
        var settings = Fence.Settings()
        settings.duration = nil
        let coordinator = FenceCoordinator(
            own: FenceStage.node(1), persistentState: nil, replaying: [], mayBootstrap: false,
            settings: settings, firstRound: 1, now: FenceStage.start)
        #expect(coordinator.window.currentUntil == .distantFuture)
    }
}

@Suite("Use of entries while fenced")
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

    @Test("An open fence restricts nothing")
    func open() {
        #expect(use(99, validatedAt: 0) == .unrestricted)
    }

    @Test("Fenced, an entry costs one request to the origin in each fence interval")
    func recent() {
        #expect(use(104, validatedAt: 95) == .unrestrictedUntil(Instant(nanoseconds: 105)))
        #expect(use(105, validatedAt: 95) == .revalidate(staleUntil: nil))
        #expect(use(105, validatedAt: 106) == .revalidate(staleUntil: nil))
    }

    @Test("If the origin fails, staleness must be granted and counts from the closing")
    func granted() {
        let until = Instant(nanoseconds: 150)
        #expect(use(149, validatedAt: 0, staleIfError: 50) == .revalidate(staleUntil: until))
        #expect(use(150, validatedAt: 0, staleIfError: 50) == .revalidate(staleUntil: nil))
    }

    @Test("A torn read of the window while it opens grants no more than it does now")
    func tornRead() {
        let torn = FenceWindow(
            currentUntil: Instant(nanoseconds: 100), closedAt: Instant(nanoseconds: 900))
        let until = Instant(nanoseconds: 170)
        #expect(
            use(120, validatedAt: 0, staleIfError: 50, window: torn)
                == .revalidate(staleUntil: until))
    }
}
