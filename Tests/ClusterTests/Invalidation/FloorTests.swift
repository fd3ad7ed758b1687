import Cluster
import Ground
import Testing

@Suite("Records that the log has dropped")
struct FloorTests {
    private func settings(
        _ change: (inout InvalidationLog.Settings) -> Void
    ) -> InvalidationLog.Settings {
        var settings = InvalidationLog.Settings()
        change(&settings)
        return settings
    }

    @Test("Records are dropped when there are many and they are old, oldest first")
    func dropped() {
        let settings = settings {
            $0.recordsMin = 10
            $0.ageMin = .seconds(60)
        }
        var stage = LogStage(members: 1...2, settings: settings)
        stage.receive(LogStage.records(1, 1...10), from: 1)
        stage.synced()
        stage.now = stage.now + .seconds(30)
        stage.receive(LogStage.records(2, 1...5), from: 2)
        stage.synced()
        #expect(stage.log.heldCount == 15)
        stage.now = stage.now + .seconds(31)
        stage.wait(.zero)
        #expect(stage.notes() == [.dropped(LogStage.position(1, 5))])
        #expect(stage.log.heldCount == 10)
        #expect(stage.log.record(LogStage.name(1, 5)) == nil)
        #expect(stage.log.record(withClientID: Array("1/5".utf8)) == nil)
        #expect(stage.log.record(withClientID: Array("1/6".utf8)) == LogStage.name(1, 6))
        #expect(stage.log.receipt(of: LogStage.name(1, 5)) == nil)
        // Dropped records still count towards the position.
        #expect(stage.log.syncedPositions == [LogStage.position(1, 10), LogStage.position(2, 5)])
        #expect(stage.receive(LogStage.records(1, 1...10), from: 1).isEmpty)
    }

    @Test("The limit on bytes applies whatever others need, but not to unsynced records")
    func bytes() {
        let settings = settings { $0.bytesMax = 2_000 }
        var stage = LogStage(members: 1...1, settings: settings)
        stage.receive(LogStage.records(1, 1...100), from: 1)
        #expect(stage.log.heldCount == 100)
        stage.synced()
        #expect(stage.log.heldBytes <= 2_000 && stage.log.heldBytes > 1_800)
        let floor = 100 - UInt64(stage.log.heldCount)
        #expect(stage.notes() == [.dropped(LogStage.position(1, floor))])
    }

    @Test("A node behind a floor makes everything stale once and then has the position")
    func fellBehind() {
        let settings = settings { $0.bytesMax = 1_000 }
        var stage = LogStage(members: 1...2, settings: settings)
        stage.receive(LogStage.records(1, 1...50) + LogStage.records(2, 1...50), from: 1)
        stage.synced()
        let ranges = [LogStage.range(1, 1...50), LogStage.range(2, 1...50)]
        let response = stage.log.repairResponse(to: ranges, of: LogStage.id(7), bytesMax: 9_999)
        #expect(response.floors.count == 2)

        var late = LogStage(members: 1...2)
        let know = [LogStage.position(1, 50), LogStage.position(2, 50)]
        late.hear(know, from: 1)
        late.wait(.milliseconds(20))
        let effects = late.answer(response, from: 1)
        let count = UInt64(response.records.count) + 1
        #expect(effects.contains(.applyFloors(response.floors, count: count)))
        #expect(effects.asks.isEmpty)
        // Like a record, a floor counts only once it is synced.
        #expect(late.log.syncedPositions.isEmpty)
        #expect(!late.log.lags(behind: know))
        late.synced()
        late.synced()
        #expect(late.log.syncedPositions == know)
        #expect(late.answer(response, from: 1).isEmpty)
        // A node that requests from this one receives the same floor.
        #expect(
            late.log.repairResponse(to: ranges, of: LogStage.id(8), bytesMax: 9_999) == response)
    }

    @Test("After a restart everything synced is known, under a new process id")
    func recovered() {
        let kept = PersistedLog(
            records: (LogStage.records(1, 4...9) + LogStage.records(3, 2...3)).reversed(),
            floors: [LogStage.position(1, 3), LogStage.position(4, 7)],
            retired: [LogStage.position(5, 11)])
        var stage = LogStage(members: 1...2, kept: kept)
        #expect(stage.log.syncedPositions == [LogStage.position(1, 9), LogStage.position(4, 7)])
        #expect(stage.log.appliedPositions.contains(LogStage.position(3, 3)))
        #expect(stage.log.appliedCount == 0)
        let known = LogStage.records(1, 1...9) + LogStage.records(5, 9...11)
        #expect(stage.receive(known, from: 1).isEmpty)
        #expect(stage.issue(LogStage.purge("1/4")).outcome == .duplicate(LogStage.name(1, 4)))
        #expect(stage.issue(LogStage.purge("x")).outcome == .issued(LogStage.name(100, 1)))
    }

    @Test("A dead process's stream that all have is retired in time and not learnt again")
    func retired() {
        let settings = settings { $0.ageMin = .seconds(60) }
        var stage = LogStage(members: 1...2, settings: settings)
        stage.receive(LogStage.records(9, 1...3), from: 1)
        stage.receive(LogStage.records(1, 1...3), from: 1)
        stage.synced()
        stage.synced()
        stage.confirm([LogStage.position(9, 3)], members: [1, 2, 100], by: 1)
        stage.wait(.seconds(61))
        #expect(stage.notes() == [])
        // The second member has it too.
        stage.confirm([LogStage.position(9, 3)], members: [1, 2, 100], by: 2)
        stage.wait(.seconds(1))
        #expect(stage.notes() == [.retired(LogStage.position(9, 3))])
        #expect(stage.log.syncedPositions == [LogStage.position(1, 3)])
        #expect(stage.hear([LogStage.position(9, 3)], from: 1).isEmpty)
        #expect(stage.receive(LogStage.records(9, 1...3), from: 1).isEmpty)
        #expect(stage.wait(.seconds(1)).isEmpty)
        // If it continues after all, it continues where it was.
        #expect(stage.receive([LogStage.record(9, 4)], from: 1).applied.count == 1)
        stage.synced()
        #expect(stage.log.syncedPositions.contains(LogStage.position(9, 4)))
    }

    @Test("A dead process's stream with gaps makes everything stale before it is retired")
    func retiredWithGaps() {
        let settings = settings { $0.ageMin = .seconds(60) }
        var stage = LogStage(members: 1...1, settings: settings)
        // The second record was lost with its process.
        stage.receive([LogStage.record(9, 1), LogStage.record(9, 3)], from: 1)
        stage.synced()
        stage.confirm([LogStage.position(9, 3)], members: [1, 100], by: 1)
        let position = LogStage.position(9, 3)
        let effects = stage.wait(.seconds(61))
        #expect(effects.contains(.applyFloors([position], count: 3)))
        #expect(effects.writes == [.floor(position, count: 3)])
        #expect(!stage.log.syncedPositions.contains(position))
        stage.synced()
        #expect(stage.log.syncedPositions.contains(position))
        stage.wait(.seconds(61))
        #expect(stage.notes() == [.retired(position)])
    }

    @Test("After a restart a stream that continued after its retirement starts where it ended")
    func revivedBeforeRestart() {
        let kept = PersistedLog(
            records: LogStage.records(9, 7...8), floors: [LogStage.position(8, 2)],
            retired: [LogStage.position(9, 6), LogStage.position(8, 5)])
        var stage = LogStage(members: 1...1, kept: kept)
        #expect(stage.log.syncedPositions == [LogStage.position(9, 8)])
        #expect(!stage.log.lags(behind: [LogStage.position(9, 8), LogStage.position(8, 5)]))
        #expect(stage.log.catchUpTarget(of: LogStage.id(1)).retired == [LogStage.position(8, 5)])
        #expect(stage.hear([LogStage.position(9, 8)], from: 1).isEmpty)
    }

    @Test("A returning node that lacks retired streams makes everything stale once for all")
    func cameBack() {
        let retired = (1...40 as ClosedRange<UInt64>).map { LogStage.position(1_000 + $0, $0) }
        var stage = LogStage(members: 1...2, kept: PersistedLog(retired: retired))
        let catchUp = stage.log.catchUpTarget(of: LogStage.id(1))
        #expect(catchUp.retired == retired && catchUp.positions.isEmpty)
        var late = LogStage(members: 1...2, kept: PersistedLog(retired: Array(retired.dropLast(2))))
        let effects = late.happens {
            $0.applyCatchUpTarget(catchUp, from: LogStage.id(1), now: $1, effects: &$2)
        }
        #expect(effects.first == .applyFloors(Array(retired.suffix(2)), count: 1))
        late.synced()
        let again = late.happens {
            $0.applyCatchUpTarget(catchUp, from: LogStage.id(2), now: $1, effects: &$2)
        }
        #expect(again.isEmpty)
    }

    @Test("A stream that ends at the greatest number, or is empty, does no harm")
    func extremes() {
        var stage = LogStage(members: 1...2)
        _ = stage.receive([LogStage.record(7, .max), LogStage.record(7, 2)], from: 1)
        stage.happens {
            $0.repairResponseReceived(
                RepairResponse(
                    floors: [LogStage.position(8, .max), LogStage.position(9, 0)], covered: []),
                from: LogStage.id(1), now: $1, effects: &$2)
        }
        stage.synced()
        _ = stage.receive([LogStage.record(7, 1), LogStage.record(8, .max)], from: 2)
        stage.synced()
        #expect(stage.log.syncedPositions.contains(LogStage.position(8, .max)))
        #expect(!stage.log.syncedPositions.contains { $0.process == LogStage.process(9) })
    }

    @Test("Streams that end at the greatest number leave a member at most that far behind")
    func greatestLag() {
        var stage = LogStage(members: 1...2)
        let floors = [LogStage.position(7, .max), LogStage.position(8, .max)]
        stage.answer(RepairResponse(floors: floors), from: 1)
        stage.synced()
        #expect(stage.log.syncedPositions == floors)
        #expect(stage.log.lag(of: LogStage.id(2)) == .max)
    }

    @Test("A stream that a full log refused is retired and starts again")
    func emptyStream() {
        let settings = settings {
            $0.streamsMax = 3
            $0.unsyncedBytesMax = 1
        }
        var stage = LogStage(members: 1...2, settings: settings)
        // The first fills it; nothing of the second is kept when the third replaces it.
        for run: UInt64 in [5, 7, 8] { _ = stage.receive([LogStage.record(run, 1)], from: 1) }
        stage.synced()
        _ = stage.receive([LogStage.record(7, 1)], from: 1)
        stage.synced()
        #expect(stage.log.syncedPositions.contains(LogStage.position(7, 1)))
    }

    @Test("Any number of restarts leaves no more than the limits allow")
    func bounded() {
        let settings = settings {
            $0.streamsMax = 8
            $0.retiredMax = 20
        }
        var stage = LogStage(members: 1...2, settings: settings)
        var forgotten: [ProcessID] = []
        for run in 1_000..<1_100 as Range<UInt64> {
            let effects = stage.receive([LogStage.record(run, 1)], from: 1) + stage.synced()
            for case .metadata(.forgotten(let process)) in effects.writes {
                forgotten.append(process)
            }
            stage.now = stage.now + .seconds(1)
            #expect(stage.log.streamsCount <= 8)
        }
        #expect(stage.log.catchUpTarget(of: LogStage.id(1)).retired.count == 20)
        #expect(forgotten.count == 100 - 7 - 20 && forgotten[0] == LogStage.process(1_000))
    }
}
