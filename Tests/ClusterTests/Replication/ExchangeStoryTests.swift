import Cluster
import Ground
import Testing

@Suite("Replication of invalidations")
struct ExchangeStoryTests {
    /// A node's replication, and the effects of the last event.
    private struct Stage {
        var exchange: InvalidationReplication
        var dice = SplitMix64(seed: 1)
        var now = Instant(nanoseconds: 1_000_000_000)
        var effects: [InvalidationEffect] = []

        init(kept: PersistedLog = PersistedLog(), following set: VoterSet? = nil) {
            var start = InvalidationReplication.InitialState(
                node: LogStage.id(1), process: LogStage.process(1), firstRound: 7)
            start.mayBootstrap = true
            start.persistedLog = kept
            start.persistentState = set.map {
                VoterSetConsensus.PersistentState(
                    configuration: VoterConfiguration($0), joinCount: 1, records: [])
            }
            exchange = InvalidationReplication(start, now: now)
            exchange.started(now: now, using: &dice, effects: &effects)
        }

        mutating func tell(_ event: ReplicationEvent) {
            effects.removeAll()
            exchange.handle(event, now: now, using: &dice, effects: &effects)
        }

        /// Advances the clock and ticks; with `isDue`, expects the tick to be due.
        mutating func pass(_ interval: Interval, isDue: Bool = false) {
            now = now + interval
            #expect(!isDue || exchange.nextTick <= now)
            tell(.ticked)
        }

        /// Delivers a reply of the other node, which follows `set`.
        mutating func answers(
            _ set: VoterSet? = nil, isCurrent: Bool = false, nominee: NodeID? = nil,
            round: UInt64 = 7, holds: [StreamPosition] = [], retired: [StreamPosition] = []
        ) {
            let view = VoterSetView(
                configuration: set.map { VoterConfiguration($0) }, isCurrent: isCurrent,
                nominee: nominee
            )
            let response = FenceResponse(round: round, synced: holds, view: view)
            tell(.messageReceived(.roundResponse(response, retired: retired), from: LogStage.id(2)))
        }

        mutating func issue(_ id: String) throws -> IssueOutcome {
            effects.removeAll()
            return try exchange.issue(LogStage.purge(id), now: now, using: &dice, effects: &effects)
        }

        /// A single node that has opened a cluster and synced it.
        static func opened() -> Stage {
            var stage = Stage()
            stage.tell(.formationRuleChanged(.unanimous))
            stage.tell(.synced)
            return stage
        }

        var repairs: [RepairResponse] {
            effects.compactMap { effect in
                guard case .send(.repairResponse(let response), _) = effect else { return nil }
                return response
            }
        }
    }

    private let other = LogStage.id(2)

    @Test("A node without peers bootstraps and is current once that is synced")
    func opening() {
        var stage = Stage()
        #expect(stage.effects == [.publishWindow(FenceWindow(closedAt: stage.now))])
        stage.tell(.formationRuleChanged(.unanimous))
        #expect(stage.effects.contains { if case .write = $0 { true } else { false } })
        #expect(!stage.exchange.window.isCurrent(at: stage.now))
        stage.tell(.synced)
        #expect(stage.effects.last == .publishWindow(stage.exchange.window))
        #expect(stage.exchange.window.isCurrent(at: stage.now))
        #expect(stage.exchange.voterConfiguration?.set.members == [LogStage.id(1)])
    }

    @Test("A node with peers bootstraps only after all have replied that they know no cluster")
    func notAlone() {
        var stage = Stage()
        stage.tell(.membersChanged([ReplicationMember(other, LogStage.process(2), .live)]))
        stage.tell(.formationRuleChanged(.unanimous))
        #expect(stage.exchange.voterConfiguration == nil)
        stage.tell(.connected(other, on: ConnectionID(1)))
        #expect(stage.exchange.voterConfiguration == nil)
        stage.answers(nominee: LogStage.id(1))
        #expect(stage.exchange.voterConfiguration != nil)
    }

    @Test("A consensus record is not carried by queries, nor sent before it is synced")
    func countStaysHome() throws {
        var stage = Stage()
        stage.tell(.connected(other, on: ConnectionID(1)))
        stage.tell(.formationRuleChanged(.unanimous))
        stage.answers(nominee: LogStage.id(1))
        // The join is number 1 and not synced yet; a purge is number 2.
        #expect(try stage.issue("a") == .issued(LogStage.name(1, 2)))
        let unsent = try #require(stage.exchange.unsentInvalidations(to: other))
        #expect(unsent.records.map(\.id) == [LogStage.name(1, 2)])
        stage.exchange.invalidationsSent(unsent, to: other)
        #expect(stage.exchange.unsentInvalidations(to: other)?.isEmpty == true)
        let range = LogStage.range(1, 1...2)
        stage.tell(.messageReceived(.repairRequest([range]), from: other))
        let before = try #require(stage.repairs.first)
        #expect(before.records.map(\.id.number) == [2] && before.covered == [range])
        stage.tell(.synced)
        stage.tell(.messageReceived(.repairRequest([range]), from: other))
        #expect(stage.repairs.last?.records.map(\.id.number) == [1, 2])
    }

    @Test("A query that was not sent, or used an earlier connection, has carried nothing")
    func toldOnceSent() throws {
        var stage = Stage()
        stage.tell(.connected(other, on: ConnectionID(1)))
        _ = try stage.issue("a")
        let refused = try #require(stage.exchange.unsentInvalidations(to: other))
        #expect(refused.records.count == 1)
        #expect(stage.exchange.unsentInvalidations(to: other) == refused)
        stage.tell(.connected(other, on: ConnectionID(2)))
        _ = try stage.issue("b")
        stage.exchange.invalidationsSent(refused, to: other)
        let unsent = try #require(stage.exchange.unsentInvalidations(to: other))
        #expect(unsent.positions == [LogStage.position(1, 2)])
        stage.exchange.invalidationsSent(unsent, to: other)
        #expect(stage.exchange.unsentInvalidations(to: other)?.isEmpty == true)
    }

    @Test("A reply opens the fence only after everything it names is applied")
    func appliedFirst() throws {
        let set = VoterSet(foundedBy: LogStage.id(1))
        let next = try #require(set.applying(by: .add(other)))
        var stage = Stage(following: next)
        stage.tell(.connected(other, on: ConnectionID(1)))
        stage.answers(next, isCurrent: true, holds: [LogStage.position(2, 1)])
        #expect(!stage.exchange.window.isCurrent(at: stage.now))
        stage.tell(.messageReceived(.push([LogStage.record(2, 1)]), from: other))
        #expect(stage.exchange.window.isCurrent(at: stage.now))
        guard case .apply(let record, _)? = stage.effects.first else {
            Issue.record("not applied first")
            return
        }
        #expect(record == LogStage.record(2, 1))
        #expect(stage.effects.last == .publishWindow(stage.exchange.window))
    }

    @Test("A retired stream that this node lacks makes everything stale and delays nothing")
    func retired() {
        var stage = Stage.opened()
        stage.tell(.connected(other, on: ConnectionID(1)))
        stage.answers(retired: [LogStage.position(9, 4)])
        #expect(stage.effects.first == .applyFloors([LogStage.position(9, 4)], count: 2))
        #expect(!stage.exchange.isBehind(other))
        #expect(
            Stage(kept: PersistedLog(retired: [LogStage.position(9, 4)])).exchange.syncedPositions
                .isEmpty)
    }

    @Test("Two contents under one number close the fence until the operator acts")
    func contradiction() {
        var stage = Stage.opened()
        stage.tell(.messageReceived(.push([LogStage.record(1, 5)]), from: other))
        let found = VoterSetConsensus.Conflict.conflictingRecords(LogStage.position(1, 5))
        #expect(stage.effects.contains(.reportConflict(found)))
        #expect(!stage.exchange.window.isCurrent(at: stage.now))
        stage.tell(.recoveryRequested)
        // No entry from before is certain any more.
        #expect(stage.effects.contains { if case .applyFloors([], _) = $0 { true } else { false } })
        #expect(!stage.exchange.window.isCurrent(at: stage.now))
        stage.pass(.milliseconds(2))
        stage.tell(.synced)
        stage.pass(.seconds(10), isDue: true)
        #expect(stage.exchange.window.isCurrent(at: stage.now))
    }

    @Test("A removed member stays in receipts for as long as it may consider itself current")
    func forgotten() throws {
        var stage = Stage.opened()
        stage.tell(.membersChanged([ReplicationMember(other, LogStage.process(2), .live)]))
        stage.tell(.connected(other, on: ConnectionID(1)))
        let opened = VoterSet(foundedBy: LogStage.id(1))
        let two = try #require(opened.applying(by: .add(other)))
        let one = try #require(two.applying(by: .remove([other])))
        for set in [two, one] { stage.answers(set, round: 1) }
        #expect(stage.exchange.voterConfiguration?.set == one)
        let name = LogStage.name(1, 2)
        #expect(try stage.issue("a") == .issued(name))
        func nodes() -> [NodeID]? { stage.exchange.receipt(of: name)?.confirmations.map(\.node) }
        stage.tell(.membersChanged([]))
        stage.pass(.seconds(9))
        #expect(nodes() == [LogStage.id(1), other])
        stage.pass(.seconds(1), isDue: true)
        #expect(nodes() == [LogStage.id(1)])
    }

    @Test("A disconnected voter stays in receipts until it is removed or away for long")
    func company() throws {
        var stage = Stage.opened()
        let member = ReplicationMember(other, LogStage.process(2), .live)
        stage.tell(.membersChanged([member]))
        stage.tell(.connected(other, on: ConnectionID(1)))
        let name = LogStage.name(1, 2)
        #expect(try stage.issue("a") == .issued(name))
        stage.tell(.synced)
        func nodes() -> [NodeID]? { stage.exchange.receipt(of: name)?.confirmations.map(\.node) }
        stage.tell(.membersChanged([]))
        #expect(nodes() == [LogStage.id(1), other])
        stage.pass(.seconds(3_599))
        #expect(nodes() == [LogStage.id(1), other])
        stage.pass(.seconds(1), isDue: true)
        #expect(nodes() == [LogStage.id(1)])
        stage.tell(.membersChanged([member]))
        #expect(nodes() == [LogStage.id(1), other])
        stage.tell(.membersChanged([ReplicationMember(other, LogStage.process(2), .left)]))
        #expect(nodes() == [LogStage.id(1)])
    }

    @Test("A member that was never connected leaves receipts once it is away for a fence")
    func hearsay() throws {
        var stage = Stage.opened()
        let process = LogStage.process(2)
        let name = LogStage.name(1, 2)
        #expect(try stage.issue("a") == .issued(name))
        func nodes() -> [NodeID]? { stage.exchange.receipt(of: name)?.confirmations.map(\.node) }
        stage.tell(.membersChanged([ReplicationMember(other, process, .dead)]))
        #expect(nodes() == [LogStage.id(1)])
        stage.tell(.membersChanged([ReplicationMember(other, process, .live)]))
        #expect(nodes() == [LogStage.id(1), other])
        stage.tell(.membersChanged([ReplicationMember(other, process, .dead)]))
        #expect(nodes() == [LogStage.id(1), other])
        stage.pass(.seconds(10))
        #expect(nodes() == [LogStage.id(1)])
    }

    @Test(
        "After a majority has just started, its earlier contacts are unknown for one fence",
        arguments: [true, false])
    func young(isOtherYoung: Bool) throws {
        let members = (1...3).map { LogStage.id($0) }
        let set = try #require(VoterSet(founder: members[0], generation: 3, members: members))
        var stage = Stage(following: set)
        for place in 1...2 {
            stage.tell(.connected(members[place], on: ConnectionID(UInt64(place))))
        }
        let name = LogStage.name(1, 1)
        #expect(try stage.issue("a") == .issued(name))
        stage.tell(.synced)
        for (node, isYoung) in [(members[1], isOtherYoung), (members[2], false)] {
            let view = VoterSetView(
                configuration: VoterConfiguration(set), isCurrent: true, isRecentlyStarted: isYoung)
            let positions = [LogStage.position(1, 1)]
            stage.tell(
                .messageReceived(.confirmation(positions, members: members, view: view), from: node)
            )
        }
        let all = try #require(stage.exchange.receipt(of: name))
        #expect(all.majorityAt != nil && all.confirmations.allSatisfy(\.status.isConfirmed))
        #expect(all.isConfirmedByAll == !isOtherYoung && all.isSettled == !isOtherYoung)
        stage.pass(.seconds(10), isDue: true)
        #expect(stage.exchange.receipt(of: name)?.isConfirmedByAll == true)
    }

    @Test("After a majority was removed within a fence, its contacts are unknown for one fence")
    func replaced() throws {
        var stage = Stage.opened()
        var set = VoterSet(foundedBy: LogStage.id(1))
        stage.tell(.connected(other, on: ConnectionID(1)))
        let changes: [VoterSetChange] = [
            .add(other), .add(LogStage.id(3)), .remove([LogStage.id(3)]), .remove([other]),
        ]
        for change in changes {
            set = try #require(set.applying(by: change))
            stage.answers(set, isCurrent: true, round: 1)
        }
        let name = LogStage.name(1, 2)
        #expect(try stage.issue("a") == .issued(name))
        stage.tell(.synced)
        #expect(stage.exchange.receipt(of: name)?.isMembershipComplete == false)
        stage.pass(.seconds(10))
        #expect(stage.exchange.receipt(of: name)?.isMembershipComplete == true)
    }

    @Test(
        "A silent member of a former set is awaited for one fence at most",
        arguments: [
            VoterSet(foundedBy: LogStage.id(2), recovery: 1),
            VoterSet(
                founder: LogStage.id(1), generation: 8, members: [1, 2].map { LogStage.id($0) }),
        ])
    func silent(next: VoterSet?) throws {
        var stage = Stage.opened()
        stage.tell(.connected(other, on: ConnectionID(1)))
        let members = [LogStage.id(1), other] + (3...5).map { LogStage.id($0) }
        let first = VoterSet(founder: LogStage.id(1), generation: 5, members: members.sorted())
        for case let set? in [first, next] {
            stage.answers(set, isCurrent: true, round: 1)
        }
        stage.tell(.synced)
        guard case .issued(let name) = try stage.issue("a") else {
            Issue.record("it was a duplicate")
            return
        }
        stage.tell(.synced)
        #expect(stage.exchange.receipt(of: name)?.isMembershipComplete == false)
        stage.pass(.seconds(10))
        #expect(stage.exchange.receipt(of: name)?.isMembershipComplete == true)
    }
}
