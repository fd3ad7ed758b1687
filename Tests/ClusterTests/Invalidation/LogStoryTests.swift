import Cluster
import Ground
import Testing

@Suite("The path of a record")
struct LogStoryTests {
    @Test("A record is applied at once, written, and pushed to the members when it is synced")
    func issued() {
        var stage = LogStage(members: 1...2)
        let (outcome, effects) = stage.issue(LogStage.purge("a"))
        #expect(outcome == .issued(LogStage.name(100, 1)))
        guard let record = stage.log.record(LogStage.name(100, 1)) else {
            Issue.record("the record is not held")
            return
        }
        #expect(effects == [.apply(record, count: 1), .write([.record(record, count: 1)])])
        #expect(stage.log.syncedPositions.isEmpty)
        let pushed = stage.synced()
        #expect(
            pushed == [
                .ownRecordsSynced(upTo: 1),
                .send(.push([record]), to: [LogStage.id(1), LogStage.id(2)]),
            ])
        #expect(stage.log.syncedPositions == [LogStage.position(100, 1)])
    }

    @Test("Frequent batches start some milliseconds apart; a single record does not wait")
    func batchInterval() {
        var stage = LogStage(members: 1...1, batchInterval: .milliseconds(2))
        #expect(stage.issue(LogStage.purge("a")).effects.writes.count == 1)
        stage.synced()
        #expect(stage.issue(LogStage.purge("b")).effects.writes.isEmpty)
        #expect(stage.wait(.milliseconds(1)).writes.isEmpty)
        #expect(stage.log.nextTick == stage.now + .milliseconds(1))
        #expect(stage.issue(LogStage.purge("c")).effects.writes.isEmpty)
        #expect(stage.wait(.milliseconds(1)).writes.count == 2)
        #expect(stage.wait(.milliseconds(5)).writes.isEmpty, "a batch is in progress")
        stage.synced()
        #expect(stage.issue(LogStage.purge("d")).effects.writes.count == 1)
        for id in ["e", "f", "g"] { _ = stage.issue(LogStage.purge(id)) }
        stage.synced()
        #expect(stage.wait(.milliseconds(2)).writes.count == 3)
        stage.synced()
        #expect(stage.issue(LogStage.purge("h")).effects.writes.isEmpty)
        #expect(stage.log.nextTick == stage.now + .milliseconds(5), "the last batch was larger")
    }

    @Test("Records that arrive during a sync are written together in the next batch")
    func groupCommit() {
        var stage = LogStage(members: 1...1)
        #expect(stage.issue(LogStage.purge("a")).effects.writes.count == 1)
        for id in ["b", "c", "d"] {
            #expect(stage.issue(LogStage.purge(id)).effects.writes.isEmpty)
        }
        stage.receive([LogStage.record(1, 1)], from: 1)
        #expect(stage.synced().writes.count == 4)
        #expect(stage.log.syncedPositions == [LogStage.position(100, 1)])
        #expect(stage.synced().first == .ownRecordsSynced(upTo: 4))
        #expect(stage.log.syncedPositions == [LogStage.position(1, 1), LogStage.position(100, 4)])
        #expect(stage.log.unsyncedBytes == 0)
    }

    @Test("Equal id and content is a duplicate; other content is a conflict")
    func idempotent() throws {
        var stage = LogStage(members: 1...1)
        _ = stage.issue(LogStage.purge("a", "http://a.example/1"))
        let again = stage.issue(LogStage.purge("a", "http://a.example/1"))
        #expect(again.outcome == .duplicate(LogStage.name(100, 1)))
        let other = stage.issue(LogStage.purge("a", "http://a.example/2"))
        #expect(other.outcome == .conflict(LogStage.name(100, 1)))
        #expect(again.effects.isEmpty && other.effects.isEmpty)
        // At any node: a log knows the client ids of received records.
        stage.receive([LogStage.record(1, 1)], from: 1)
        #expect(stage.issue(LogStage.purge("1/1")).outcome == .duplicate(LogStage.name(1, 1)))
        #expect(stage.log.record(withClientID: Array("1/1".utf8)) == LogStage.name(1, 1))
        #expect(throws: InvalidationFault.invalidID) {
            var effects: [InvalidationEffect] = []
            return try stage.log.issue(
                Invalidation(id: [], .purge(.everythingSoft)), now: stage.now,
                effects: &effects)
        }
    }

    @Test("A record is applied despite gaps; its position counts when there is none")
    func gaps() {
        var stage = LogStage(members: 1...1)
        let late = stage.receive([LogStage.record(1, 3), LogStage.record(1, 3)], from: 1)
        #expect(late.applied == [LogStage.name(1, 3)])
        stage.synced()
        #expect(stage.log.syncedPositions.isEmpty)
        #expect(stage.log.appliedPositions == [LogStage.position(1, 3)])
        let rest = stage.receive(LogStage.records(1, 1...3), from: 1)
        #expect(rest.applied == [LogStage.name(1, 1), LogStage.name(1, 2)])
        #expect(stage.log.syncedPositions.isEmpty)
        stage.synced()
        #expect(stage.log.syncedPositions == [LogStage.position(1, 3)])
        #expect(rest.contains(.apply(LogStage.record(1, 2), count: 3)))
        #expect(stage.receive(LogStage.records(1, 1...3), from: 1).isEmpty)
    }

    @Test("The sender and the issuer of a record are sent a confirmation when it is synced")
    func confirmation() {
        var stage = LogStage(members: 1...3)
        stage.receive([LogStage.record(1, 1)], from: 2)
        _ = stage.log.takeConfirmations()
        stage.synced()
        #expect(stage.confirmations() == ["1.1 to 1", "1.1 to 2"])
        // The other members receive it with the next round.
        stage.wait(.seconds(1))
        #expect(stage.confirmations() == ["1.1 to 1, 2, 3"])
        stage.wait(.seconds(1))
        #expect(stage.confirmations() == [])
    }

    @Test("With many members confirmations are delayed and combined for each")
    func confirmationOfMany() {
        var stage = LogStage(members: 1...20)
        stage.wait(.zero)
        _ = stage.log.takeConfirmations()
        for number in 1...3 as ClosedRange<UInt64> {
            stage.receive([LogStage.record(1, number)], from: 1)
            stage.synced()
        }
        stage.receive([LogStage.record(2, 1)], from: 1)
        stage.synced()
        #expect(stage.confirmations() == [])
        #expect(stage.log.nextTick == stage.now + .milliseconds(12))
        stage.wait(.milliseconds(12))
        #expect(stage.confirmations() == ["1.3, 2.1 to 1", "2.1 to 2"])
    }

    @Test("Two contents under one number, or records of this process by another, are conflicts")
    func contradiction() {
        var stage = LogStage(members: 1...1)
        stage.receive([LogStage.record(1, 1)], from: 1)
        let other = InvalidationRecord(LogStage.name(1, 1), content: [1, 2, 3])
        stage.receive([other], from: 1)
        #expect(stage.contradictions() == [LogStage.position(1, 1)])
        _ = stage.issue(LogStage.purge("a"))
        let foreign = LogStage.record(100, 2)
        stage.receive([foreign], from: 1)
        #expect(stage.contradictions() == [LogStage.position(100, 2)])
        #expect(stage.issue(LogStage.purge("b")).outcome == .issued(LogStage.name(100, 2)))
        stage.hear([LogStage.position(100, 9)], from: 1)
        #expect(stage.contradictions() == [LogStage.position(100, 9)])
    }

    @Test("A record that is not understood is kept and relayed unchanged")
    func relayed() {
        var stage = LogStage(members: 1...2)
        let content: [UInt8] = [5, 0, 200, 1, 7, 9, 0, 1, 0, 3]
        let record = InvalidationRecord(LogStage.name(1, 1), content: content)
        #expect(record.invalidation.purge == .everythingSoft)
        #expect(stage.receive([record], from: 1).applied == [record.id])
        stage.synced()
        let range = LogStage.range(1, 1...1)
        let response = stage.log.repairResponse(to: [range], of: LogStage.id(2), bytesMax: 1)
        #expect(response == RepairResponse(records: [record], covered: [range]))
        #expect(stage.log.unsentInvalidations(to: LogStage.id(2))?.records == [record])
    }

    @Test("A failed write is repeated, and nothing counts as synced before")
    func failed() {
        var stage = LogStage(members: 1...1)
        _ = stage.issue(LogStage.purge("a"))
        #expect(stage.happens { log, now, _ in log.writeFailed(now: now) }.isEmpty)
        #expect(stage.issue(LogStage.purge("b")).effects.writes.isEmpty)
        #expect(stage.wait(.milliseconds(900)).writes.isEmpty)
        #expect(stage.wait(.milliseconds(100)).writes.count == 2)
        #expect(stage.synced().first == .ownRecordsSynced(upTo: 2))
    }

    @Test("With too many unsynced records new ones are refused and requested later")
    func overload() {
        var settings = InvalidationLog.Settings()
        settings.unsyncedBytesMax = 100
        var stage = LogStage(members: 1...1, settings: settings)
        _ = stage.issue(LogStage.purge("a"))
        _ = stage.issue(LogStage.purge("b"))
        #expect(stage.issue(LogStage.purge("c")).outcome == .busy)
        #expect(stage.issue(LogStage.purge("a")).outcome == .duplicate(LogStage.name(100, 1)))
        #expect(stage.receive([LogStage.record(1, 1)], from: 1).isEmpty)
        #expect(stage.log.lags(behind: LogStage.id(1)))
        stage.synced()
        stage.synced()
        #expect(stage.wait(.seconds(1)).asks == [1: [LogStage.range(1, 1...1)]])
        stage.answer(
            RepairResponse(
                records: [LogStage.record(1, 1)], covered: [LogStage.range(1, 1...1)]), from: 1)
        #expect(!stage.log.lags(behind: LogStage.id(1)))
    }
}
