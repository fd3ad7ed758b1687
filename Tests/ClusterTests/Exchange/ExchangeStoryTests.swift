import Cluster
import Ground
import Testing

@Suite("What an exchange of invalidations does")
struct ExchangeStoryTests {
    /// One exchange, and what came out last.
    private struct Stage {
        var exchange: InvalidationExchange
        var dice = Dice(seed: 1)
        var now = Instant(nanoseconds: 1_000_000_000)
        var effects: [InvalidationEffect] = []

        init(
            mayOpen: Bool = true, kept: KeptLog = KeptLog(), memory: CountedMembers.Memory? = nil
        ) {
            var start = InvalidationExchange.Start(
                node: LogStage.id(1), process: LogStage.process(1), firstRound: 7)
            start.mayOpen = mayOpen
            start.kept = kept
            start.memory = memory
            exchange = InvalidationExchange(start, now: now)
            exchange.started(now: now, using: &dice, effects: &effects)
        }

        mutating func tell(_ event: ExchangeEvent) {
            effects.removeAll()
            exchange.handle(event, now: now, using: &dice, effects: &effects)
        }

        mutating func issue(_ id: String) throws -> Issuance {
            effects.removeAll()
            return try exchange.issue(
                LogStage.purge(id), now: now, using: &dice, effects: &effects)
        }

        /// Alone, it has opened a cluster and synced that it follows it.
        static func opened() -> Stage {
            var stage = Stage()
            stage.tell(.mayForm(.unanimous))
            stage.tell(.synced)
            return stage
        }

        var sent: [InvalidationMessage] {
            effects.compactMap { effect in
                guard case .send(let message, _) = effect else { return nil }
                return message
            }
        }
    }

    private let other = LogStage.id(2)

    @Test("the node that finds nobody opens a cluster when that is synced, and is current")
    func opening() {
        var stage = Stage()
        #expect(stage.effects == [.window(FenceWindow(closedAt: stage.now))])
        stage.tell(.mayForm(.unanimous))
        #expect(stage.effects.contains { if case .write = $0 { true } else { false } })
        #expect(!stage.exchange.window.isCurrent(at: stage.now))
        stage.tell(.synced)
        #expect(stage.effects.last == .window(stage.exchange.window))
        #expect(stage.exchange.window.isCurrent(at: stage.now))
        #expect(stage.exchange.standing?.set.members == [LogStage.id(1)])
    }

    @Test("whoever finds others opens nothing before all of them have said that they know none")
    func notAlone() {
        var stage = Stage()
        stage.tell(.membersChanged([ExchangeMember(other, LogStage.process(2), .here)]))
        stage.tell(.mayForm(.unanimous))
        #expect(stage.exchange.standing == nil)
        stage.tell(.connected(other, on: ConnectionID(1)))
        #expect(stage.exchange.standing == nil)
        let nothing = FenceAnswer(
            round: 7, holds: [],
            view: CountView(standing: nil, isCurrent: false, nominee: LogStage.id(1)))
        stage.tell(.message(.answer(nothing, retired: []), from: other))
        #expect(stage.exchange.standing != nil)
    }

    @Test("a record of the count goes with no question, and to nobody before it is synced")
    func countStaysHome() throws {
        var stage = Stage()
        stage.tell(.connected(other, on: ConnectionID(1)))
        stage.tell(.mayForm(.unanimous))
        let nothing = FenceAnswer(
            round: 7, holds: [],
            view: CountView(standing: nil, isCurrent: false, nominee: LogStage.id(1)))
        stage.tell(.message(.answer(nothing, retired: []), from: other))
        // The join is number 1, and not synced yet; a purge is number 2.
        #expect(try stage.issue("a") == .new(LogStage.name(1, 2)))
        let untold = try #require(stage.exchange.untold(to: other))
        #expect(untold.records.map(\.name) == [LogStage.name(1, 2)])
        stage.exchange.told(untold, to: other)
        #expect(stage.exchange.untold(to: other)?.isEmpty == true)
        let range = LogStage.range(1, 1...2)
        stage.tell(.message(.ask([range]), from: other))
        guard case .repair(let before)? = stage.sent.first else {
            Issue.record("no answer")
            return
        }
        #expect(before.records.map(\.name.number) == [2] && before.covered == [range])
        stage.tell(.synced)
        stage.tell(.message(.ask([range]), from: other))
        guard case .repair(let after)? = stage.sent.last else {
            Issue.record("no answer")
            return
        }
        #expect(after.records.map(\.name.number) == [1, 2])
    }

    @Test("a question that could not be sent, or went over an earlier connection, has told nothing")
    func toldOnceSent() throws {
        var stage = Stage()
        stage.tell(.connected(other, on: ConnectionID(1)))
        _ = try stage.issue("a")
        let refused = try #require(stage.exchange.untold(to: other))
        #expect(refused.records.count == 1)
        #expect(stage.exchange.untold(to: other) == refused)
        stage.tell(.connected(other, on: ConnectionID(2)))
        _ = try stage.issue("b")
        stage.exchange.told(refused, to: other)
        let untold = try #require(stage.exchange.untold(to: other))
        #expect(untold.positions == [LogStage.position(1, 2)])
        stage.exchange.told(untold, to: other)
        #expect(stage.exchange.untold(to: other)?.isEmpty == true)
    }

    @Test("what an answer names opens the fence only once it is applied, after the effects")
    func appliedFirst() throws {
        let set = CountedSet(openedBy: LogStage.id(1))
        let next = try #require(set.changed(by: .count(other)))
        var stage = Stage(
            memory: CountedMembers.Memory(
                standing: CountStanding(next), joins: 1, needs: nil, records: []))
        stage.tell(.connected(other, on: ConnectionID(1)))
        let view = CountView(standing: CountStanding(next), isCurrent: true)
        let answer = FenceAnswer(round: 7, holds: [LogStage.position(2, 1)], view: view)
        stage.tell(.message(.answer(answer, retired: []), from: other))
        #expect(!stage.exchange.window.isCurrent(at: stage.now))
        stage.tell(.message(.push([LogStage.record(2, 1)]), from: other))
        #expect(stage.exchange.window.isCurrent(at: stage.now))
        guard case .apply(let record, _)? = stage.effects.first else {
            Issue.record("not applied first")
            return
        }
        #expect(record == LogStage.record(2, 1))
        #expect(stage.effects.last == .window(stage.exchange.window))
    }

    @Test("a retired stream that this node lacks makes everything soft, and holds nobody up")
    func retired() {
        var stage = Stage.opened()
        stage.tell(.connected(other, on: ConnectionID(1)))
        let view = CountView(standing: nil, isCurrent: false)
        let answer = FenceAnswer(round: 7, holds: [], view: view)
        stage.tell(
            .message(.answer(answer, retired: [LogStage.position(9, 4)]), from: other))
        #expect(stage.effects.first == .applyFloors([LogStage.position(9, 4)], count: 2))
        #expect(!stage.exchange.isBehind(other))
        let again = Stage(kept: KeptLog(retired: [LogStage.position(9, 4)]))
        #expect(again.exchange.positions.isEmpty)
    }

    @Test("two contents under one number close the fence until the operator says otherwise")
    func contradiction() {
        var stage = Stage.opened()
        stage.tell(.message(.push([LogStage.record(1, 5)]), from: other))
        let found = CountedMembers.Contradiction.twoRecords(LogStage.position(1, 5))
        #expect(stage.effects.contains(.contradiction(found)))
        #expect(!stage.exchange.window.isCurrent(at: stage.now))
        stage.tell(.recovers)
        // Nothing of before is held for certain any more.
        #expect(stage.effects.contains { if case .applyFloors([], _) = $0 { true } else { false } })
        #expect(!stage.exchange.window.isCurrent(at: stage.now))
        stage.now = stage.now + .milliseconds(2)
        stage.tell(.ticked)
        stage.tell(.synced)
        stage.now = stage.now + .seconds(10)
        #expect(stage.exchange.nextTick <= stage.now)
        stage.tell(.ticked)
        #expect(stage.exchange.window.isCurrent(at: stage.now))
    }

    @Test("who was forgotten stays in receipts for as long as it may take itself for current")
    func forgotten() throws {
        var stage = Stage.opened()
        let member = ExchangeMember(other, LogStage.process(2), .here)
        stage.tell(.membersChanged([member]))
        stage.tell(.connected(other, on: ConnectionID(1)))
        let opened = CountedSet(openedBy: LogStage.id(1))
        let two = try #require(opened.changed(by: .count(other)))
        let one = try #require(two.changed(by: .forget([other])))
        for set in [two, one] {
            let view = CountView(standing: CountStanding(set), isCurrent: false)
            let answer = FenceAnswer(round: 1, holds: [], view: view)
            stage.tell(.message(.answer(answer, retired: []), from: other))
        }
        #expect(stage.exchange.standing?.set == one)
        let name = LogStage.name(1, 2)
        #expect(try stage.issue("a") == .new(name))
        func nodes() -> [NodeID]? { stage.exchange.receipt(of: name)?.lines.map(\.node) }
        stage.tell(.membersChanged([]))
        stage.now = stage.now + .seconds(9)
        stage.tell(.ticked)
        #expect(nodes() == [LogStage.id(1), other])
        stage.now = stage.now + .seconds(1)
        #expect(stage.exchange.nextTick <= stage.now)
        stage.tell(.ticked)
        #expect(nodes() == [LogStage.id(1)])
    }

    @Test("who is cut off stays in receipts until it counts no more or is away for long")
    func company() throws {
        var stage = Stage.opened()
        let member = ExchangeMember(other, LogStage.process(2), .here)
        stage.tell(.membersChanged([member]))
        stage.tell(.connected(other, on: ConnectionID(1)))
        let name = LogStage.name(1, 2)
        #expect(try stage.issue("a") == .new(name))
        stage.tell(.synced)
        func nodes() -> [NodeID]? { stage.exchange.receipt(of: name)?.lines.map(\.node) }
        stage.tell(.membersChanged([]))
        #expect(nodes() == [LogStage.id(1), other])
        stage.now = stage.now + .seconds(3_599)
        stage.tell(.ticked)
        #expect(nodes() == [LogStage.id(1), other])
        stage.now = stage.now + .seconds(1)
        #expect(stage.exchange.nextTick <= stage.now)
        stage.tell(.ticked)
        #expect(nodes() == [LogStage.id(1)])
        stage.tell(.membersChanged([member]))
        #expect(nodes() == [LogStage.id(1), other])
        stage.tell(.membersChanged([ExchangeMember(other, LogStage.process(2), .left)]))
        #expect(nodes() == [LogStage.id(1)])
    }

    @Test("who was never met here is named by those alone who have, once it is away for a fence")
    func hearsay() throws {
        var stage = Stage.opened()
        let process = LogStage.process(2)
        let name = LogStage.name(1, 2)
        #expect(try stage.issue("a") == .new(name))
        func nodes() -> [NodeID]? { stage.exchange.receipt(of: name)?.lines.map(\.node) }
        stage.tell(.membersChanged([ExchangeMember(other, process, .away)]))
        #expect(nodes() == [LogStage.id(1)])
        stage.tell(.membersChanged([ExchangeMember(other, process, .here)]))
        #expect(nodes() == [LogStage.id(1), other])
        stage.tell(.membersChanged([ExchangeMember(other, process, .away)]))
        #expect(nodes() == [LogStage.id(1), other])
        stage.now = stage.now + .seconds(10)
        stage.tell(.ticked)
        #expect(nodes() == [LogStage.id(1)])
    }

    @Test(
        "where most have just started, whom they had answered is not known for one fence",
        arguments: [true, false])
    func young(isOtherYoung: Bool) throws {
        let members = (1...3).map { LogStage.id($0) }
        let set = try #require(
            CountedSet(opener: members[0], generation: 3, members: members))
        var stage = Stage(
            memory: CountedMembers.Memory(
                standing: CountStanding(set), joins: 1, needs: nil, records: []))
        for place in 1...2 {
            stage.tell(.connected(members[place], on: ConnectionID(UInt64(place))))
        }
        let name = LogStage.name(1, 1)
        #expect(try stage.issue("a") == .new(name))
        stage.tell(.synced)
        for (node, isYoung) in [(members[1], isOtherYoung), (members[2], false)] {
            let view = CountView(
                standing: CountStanding(set), isCurrent: true, isYoung: isYoung)
            let positions = [LogStage.position(1, 1)]
            stage.tell(.message(.confirm(positions, members: members, view: view), from: node))
        }
        func receipt() throws -> Receipt { try #require(stage.exchange.receipt(of: name)) }
        let all = try receipt()
        #expect(all.majorityAt != nil && all.lines.allSatisfy(\.standing.isConfirmed))
        #expect(all.isConfirmedByAll == !isOtherYoung && all.isSettled == !isOtherYoung)
        stage.now = stage.now + .seconds(10)
        #expect(stage.exchange.nextTick <= stage.now)
        stage.tell(.ticked)
        #expect(try receipt().isConfirmedByAll)
    }

    @Test("where most were forgotten within a fence, whom they had answered is not known for one")
    func replaced() throws {
        var stage = Stage.opened()
        var set = CountedSet(openedBy: LogStage.id(1))
        stage.tell(.connected(other, on: ConnectionID(1)))
        let changes: [CountChange] = [
            .count(other), .count(LogStage.id(3)), .forget([LogStage.id(3)]), .forget([other]),
        ]
        for change in changes {
            set = try #require(set.changed(by: change))
            let view = CountView(standing: CountStanding(set), isCurrent: true)
            let answer = FenceAnswer(round: 1, holds: [], view: view)
            stage.tell(.message(.answer(answer, retired: []), from: other))
        }
        let name = LogStage.name(1, 2)
        #expect(try stage.issue("a") == .new(name))
        stage.tell(.synced)
        func receipt() throws -> Receipt { try #require(stage.exchange.receipt(of: name)) }
        #expect(try !receipt().isCompanyKnown)
        stage.now = stage.now + .seconds(10)
        stage.tell(.ticked)
        #expect(try receipt().isCompanyKnown)
    }

    @Test(
        "who says nothing more is waited for no longer than a fence, once its set is left",
        arguments: [
            CountedSet(openedBy: LogStage.id(2), recovery: 1),
            CountedSet(
                opener: LogStage.id(1), generation: 8, members: [1, 2].map { LogStage.id($0) }),
        ])
    func silent(next: CountedSet?) throws {
        var stage = Stage.opened()
        stage.tell(.connected(other, on: ConnectionID(1)))
        let members = [LogStage.id(1), other] + (3...5).map { LogStage.id($0) }
        let first = CountedSet(
            opener: LogStage.id(1), generation: 5, members: members.sorted())
        for set in [first, next] {
            let view = CountView(standing: CountStanding(try #require(set)), isCurrent: true)
            let answer = FenceAnswer(round: 1, holds: [], view: view)
            stage.tell(.message(.answer(answer, retired: []), from: other))
        }
        stage.tell(.synced)
        guard case .new(let name) = try stage.issue("a") else {
            Issue.record("it was issued before")
            return
        }
        stage.tell(.synced)
        func receipt() throws -> Receipt { try #require(stage.exchange.receipt(of: name)) }
        #expect(try !receipt().isCompanyKnown)
        stage.now = stage.now + .seconds(10)
        stage.tell(.ticked)
        #expect(try receipt().isCompanyKnown)
    }
}
