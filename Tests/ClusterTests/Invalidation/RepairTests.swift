import Cluster
import Ground
import Testing

@Suite("Repair of missing records")
struct RepairTests {
    @Test("Missing records are requested from a member that has them, after time for a push")
    func asked() {
        var stage = LogStage(members: 1...2)
        #expect(stage.hear([LogStage.position(2, 5)], from: 1).isEmpty)
        #expect(stage.log.lags(behind: [LogStage.position(2, 5)]))
        stage.receive([LogStage.record(2, 3)], from: 2)
        let effects = stage.wait(.milliseconds(20))
        #expect(effects.asks == [1: [LogStage.range(2, 1...2), LogStage.range(2, 4...5)]])
        // After a push in time there is nothing to request.
        stage.hear([LogStage.position(1, 1)], from: 1)
        stage.receive([LogStage.record(1, 1)], from: 1)
        #expect(stage.wait(.milliseconds(20)).asks.isEmpty)
    }

    @Test("A member that does not reply within a second is replaced by the next one")
    func retried() {
        var stage = LogStage(members: 1...3)
        for number in [1, 2] as [UInt64] { stage.hear([LogStage.position(9, 4)], from: number) }
        let range = [LogStage.range(9, 1...4)]
        #expect(stage.wait(.milliseconds(20)).asks == [1: range])
        #expect(stage.wait(.milliseconds(900)).asks.isEmpty)
        #expect(stage.wait(.milliseconds(100)).asks == [2: range])
        stage.disconnect(2)
        #expect(stage.wait(.seconds(1)).asks == [1: range])
        stage.disconnect(1)
        #expect(stage.wait(.seconds(1)).asks.isEmpty)
        // It returns and reports its positions.
        stage.connect(2, on: 7)
        stage.hear([LogStage.position(9, 4)], from: 2)
        #expect(stage.wait(.milliseconds(20)).asks == [2: range])
    }

    @Test("A member that lacks what it reported is not asked again; a partial reply is continued")
    func lacking() {
        var stage = LogStage(members: 1...2)
        for number in [1, 2] as [UInt64] { stage.hear([LogStage.position(9, 4)], from: number) }
        stage.wait(.milliseconds(20))
        let cut = RepairResponse(
            records: LogStage.records(9, 1...2), covered: [LogStage.range(9, 1...2)])
        #expect(stage.answer(cut, from: 1).asks == [1: [LogStage.range(9, 3...4)]])
        let empty = RepairResponse(covered: [LogStage.range(9, 3...4)])
        #expect(stage.answer(empty, from: 1).asks == [2: [LogStage.range(9, 3...4)]])
        #expect(stage.answer(empty, from: 2).asks.isEmpty)
        #expect(stage.wait(.seconds(2)).asks.isEmpty)
    }

    @Test("A reply is limited in size but always makes progress, for dead streams too")
    func answered() {
        var stage = LogStage(members: 1...1)
        stage.receive(LogStage.records(9, 1...300), from: 1)
        var want: [StreamRange] = [LogStage.range(9, 1...300)]
        var got: [UInt64] = []
        while let range = want.first {
            let response = stage.log.repairResponse(
                to: [range], of: LogStage.id(2), bytesMax: 2_000)
            #expect(response.records.reduce(0) { $0 + $1.bytesCount } <= 2_000)
            #expect(!response.records.isEmpty && response.floors.isEmpty)
            got += response.records.map(\.id.number)
            want = got.count < 300 ? [LogStage.range(9, UInt64(got.count + 1)...300)] : []
        }
        #expect(got == Array(1...300))
        let huge = LogStage.range(9, 299...UInt64.max)
        let last = stage.log.repairResponse(to: [huge], of: LogStage.id(2), bytesMax: 9_999)
        #expect(last.records.map(\.id.number) == [299, 300] && last.covered == [huge])
    }

    @Test("An unreachable number costs one request a second at most")
    func absurd() {
        var stage = LogStage(members: 1...1)
        stage.receive([LogStage.record(1, .max)], from: 1)
        stage.hear([LogStage.position(1, .max), LogStage.position(9, .max)], from: 1)
        let asks = stage.wait(.milliseconds(20)).asks
        #expect(asks == [1: [LogStage.range(1, 1...(.max - 1)), LogStage.range(9, 1...(.max))]])
        stage.synced()
        #expect(stage.log.syncedPositions.isEmpty)
        stage.answer(RepairResponse(floors: [LogStage.position(1, .max)]), from: 1)
        stage.synced()
        #expect(stage.log.syncedPositions == [LogStage.position(1, .max)])
    }
}

@Suite("Invalidations carried along with queries")
struct KnowledgeTests {
    @Test("A query carries what the peer was not sent yet, once for each connection")
    func unsent() {
        var stage = LogStage(members: 1...2)
        #expect(stage.log.unsentInvalidations(to: LogStage.id(1))?.isEmpty == true)
        #expect(stage.log.unsentInvalidations(to: LogStage.id(9)) == nil)
        stage.receive([LogStage.record(2, 1)], from: 2)
        let (_, effects) = stage.issue(LogStage.purge("a"))
        let records =
            [LogStage.record(2, 1)]
            + effects.compactMap { effect in
                guard case .apply(let record, _) = effect else { return nil }
                return record
            }
        guard let unsent = stage.log.unsentInvalidations(to: LogStage.id(1)) else { return }
        #expect(unsent.records == records && unsent.positions.isEmpty)
        // It could not be sent, so the next query carries it again.
        #expect(stage.log.unsentInvalidations(to: LogStage.id(1)) == unsent)
        stage.log.invalidationsSent(unsent, to: LogStage.id(1))
        #expect(stage.log.unsentInvalidations(to: LogStage.id(1))?.isEmpty == true)
        // Known positions need not be carried, nor records that were pushed.
        stage.hear([LogStage.position(2, 1)], from: 2)
        stage.synced()
        stage.synced()
        #expect(
            stage.log.unsentInvalidations(to: LogStage.id(2))?.records == Array(records.dropFirst())
        )
        stage.log.recordPushed(upTo: 1, to: LogStage.id(2))
        #expect(stage.log.unsentInvalidations(to: LogStage.id(2))?.isEmpty == true)
        // On a new connection all positions are sent first.
        let opening = stage.connect(1, on: 50)
        let all = [LogStage.position(2, 1), LogStage.position(100, 1)]
        #expect(opening.first == .send(.appliedPositions(all), to: [LogStage.id(1)]))
        // A query may overtake that message, so it carries them itself.
        let first = stage.log.unsentInvalidations(to: LogStage.id(1))
        #expect(first?.positions == all && first?.records.isEmpty == true)
        if let first { stage.log.invalidationsSent(first, to: LogStage.id(1)) }
        #expect(stage.log.unsentInvalidations(to: LogStage.id(1))?.isEmpty == true)
    }

    @Test("Records that do not fit into a query are carried as positions")
    func overflow() {
        var stage = LogStage(members: 1...2)
        stage.receive(LogStage.records(2, 1...59) + [LogStage.record(2, 70)], from: 2)
        #expect(
            stage.log.unsentInvalidations(to: LogStage.id(1))?.positions == [
                LogStage.position(2, 70)
            ])
        stage.receive(LogStage.records(2, 1_000...10_000), from: 2)
        let unsent = stage.log.unsentInvalidations(to: LogStage.id(1))
        #expect(unsent?.positions == [LogStage.position(2, 10_000)])
        #expect(unsent?.records.isEmpty == true)
    }

    @Test("A node lags behind a requester until it has what that one has applied")
    func behind() {
        var stage = LogStage(members: 1...2)
        let asks = stage.tell([LogStage.position(9, 3)], by: 1).asks
        #expect(asks == [1: [LogStage.range(9, 1...3)]])
        #expect(stage.log.lags(behind: LogStage.id(1)))
        #expect(!stage.log.lags(behind: LogStage.id(2)))
        stage.answer(
            RepairResponse(
                records: [LogStage.record(9, 1), LogStage.record(9, 3)],
                covered: [LogStage.range(9, 1...3)]), from: 1)
        // Number 2 was lost with its issuer; the requester has not applied it either.
        #expect(!stage.log.lags(behind: LogStage.id(1)))
        #expect(stage.log.lags(behind: [LogStage.position(9, 3)]))
        stage.tell([LogStage.position(9, 3)], by: 2)
        #expect(stage.log.lags(behind: LogStage.id(2)))
        stage.receive([LogStage.record(9, 2)], from: 2)
        #expect(!stage.log.lags(behind: LogStage.id(2)))
    }
}
