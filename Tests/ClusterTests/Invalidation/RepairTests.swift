import Cluster
import Ground
import Testing

@Suite("What is missing in the log")
struct RepairTests {
    @Test("what somebody else has is asked of it, once a push has had its time")
    func asked() {
        var stage = LogStage(members: 1...2)
        #expect(stage.hear([LogStage.position(2, 5)], from: 1).isEmpty)
        #expect(stage.log.lags(behind: [LogStage.position(2, 5)]))
        stage.receive([LogStage.record(2, 3)], from: 2)
        let effects = stage.wait(.milliseconds(20))
        #expect(effects.asks == [1: [LogStage.range(2, 1...2), LogStage.range(2, 4...5)]])
        // A push that came in time leaves nothing to ask.
        stage.hear([LogStage.position(1, 1)], from: 1)
        stage.receive([LogStage.record(1, 1)], from: 1)
        #expect(stage.wait(.milliseconds(20)).asks.isEmpty)
    }

    @Test("who does not answer within a second is left for the next who has it")
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
        // It comes back, and says so.
        stage.connect(2, on: 7)
        stage.hear([LogStage.position(9, 4)], from: 2)
        #expect(stage.wait(.milliseconds(20)).asks == [2: range])
    }

    @Test("who has not what it said to have is not asked again; who goes on is asked on")
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

    @Test("an answer is cut at its size but always goes on, streams of dead processes too")
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

    @Test("a number that nothing can reach costs one question a second and no more")
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

@Suite("Questions carry knowledge")
struct KnowledgeTests {
    @Test("a question says what the peer was not told, once for each connection")
    func untold() {
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
        guard let untold = stage.log.unsentInvalidations(to: LogStage.id(1)) else { return }
        #expect(untold.records == records && untold.positions.isEmpty)
        // It could not be sent; the next one says it too.
        #expect(stage.log.unsentInvalidations(to: LogStage.id(1)) == untold)
        stage.log.invalidationsSent(untold, to: LogStage.id(1))
        #expect(stage.log.unsentInvalidations(to: LogStage.id(1))?.isEmpty == true)
        // Whoever is known to have it need not be told; a push tells it once it is on its way.
        stage.hear([LogStage.position(2, 1)], from: 2)
        stage.synced()
        stage.synced()
        #expect(
            stage.log.unsentInvalidations(to: LogStage.id(2))?.records == Array(records.dropFirst())
        )
        stage.log.recordPushed(upTo: 1, to: LogStage.id(2))
        #expect(stage.log.unsentInvalidations(to: LogStage.id(2))?.isEmpty == true)
        // On a new connection everything is told first.
        let opening = stage.connect(1, on: 50)
        let all = [LogStage.position(2, 1), LogStage.position(100, 1)]
        #expect(opening.first == .send(.appliedPositions(all), to: [LogStage.id(1)]))
        // A question may overtake that, and tells it by itself.
        let first = stage.log.unsentInvalidations(to: LogStage.id(1))
        #expect(first?.positions == all && first?.records.isEmpty == true)
        if let first { stage.log.invalidationsSent(first, to: LogStage.id(1)) }
        #expect(stage.log.unsentInvalidations(to: LogStage.id(1))?.isEmpty == true)
    }

    @Test("what does not fit in a question is said by number")
    func overflow() {
        var stage = LogStage(members: 1...2)
        stage.receive(LogStage.records(2, 1...59) + [LogStage.record(2, 70)], from: 2)
        #expect(
            stage.log.unsentInvalidations(to: LogStage.id(1))?.positions == [
                LogStage.position(2, 70)
            ])
        stage.receive(LogStage.records(2, 1_000...10_000), from: 2)
        let untold = stage.log.unsentInvalidations(to: LogStage.id(1))
        #expect(untold?.positions == [LogStage.position(2, 10_000)])
        #expect(untold?.records.isEmpty == true)
    }

    @Test("who was told of more is behind until it has it, or the asker has not either")
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
        // Number 2 went with its issuer; the asker has not applied it either.
        #expect(!stage.log.lags(behind: LogStage.id(1)))
        #expect(stage.log.lags(behind: [LogStage.position(9, 3)]))
        stage.tell([LogStage.position(9, 3)], by: 2)
        #expect(stage.log.lags(behind: LogStage.id(2)))
        stage.receive([LogStage.record(9, 2)], from: 2)
        #expect(!stage.log.lags(behind: LogStage.id(2)))
    }
}
