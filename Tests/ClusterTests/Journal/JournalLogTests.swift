import Cluster
import Ground
import Testing

/// A log whose writes go to a journal on a disk.
private struct KeepingNode {
    private static let node = LogStage.id(100)

    var stage: LogStage
    var journal: Journal
    var disk = JournalDisk()
    var dice: SplitMix64
    private(set) var dropped = 0

    init(seed: UInt64, _ settings: InvalidationLog.Settings, _ limits: Journal.Settings) {
        stage = LogStage(members: 1...5, settings: settings)
        journal = Journal(node: Self.node, epoch: 1, settings: limits)
        dice = SplitMix64(seed: seed)
    }

    /// Performs the log's effects on the disk, and all that follow.
    mutating func run(_ effects: [InvalidationEffect]) {
        for case .write(let batch) in effects { write(batch) }
    }

    private mutating func write(_ batch: [LogWrite]) {
        let effects = journal.write(batch, marks: { _, _ in [] }, using: &dice)
        guard let effects else {
            let surplus = journal.surplusPositions
            return run(stage.happens { $0.dropForSpace(surplus, now: $1, effects: &$2) })
        }
        for effect in effects { disk.run(effect) }
        journal.synced()
        for case .metadata(.dropped) in batch { dropped += 1 }
        run(stage.synced())
    }

    /// Writes the pending metadata.
    mutating func flush() {
        run(stage.happens { $0.applyLocally(.everythingSoft, effects: &$2) })
    }

    /// The log as a start finds it.
    func restarted() -> InvalidationLog {
        let (kept, found) = JournalRecovery.recover(disk.contents, node: Self.node)
        #expect(found.damage == [])
        return InvalidationLog(
            node: Self.node, process: LogStage.process(101), settings: stage.log.settings,
            persisted: kept, now: LogStage.start)
    }
}

@Suite("The log and its journal")
struct JournalLogTests {
    @Test(
        "After a start the log has the same positions and records",
        arguments: 1...15 as ClosedRange<UInt64>)
    func restart(seed: UInt64) {
        var settings = InvalidationLog.Settings()
        settings.recordsMin = 60
        settings.ageMin = .seconds(20)
        var node = KeepingNode(seed: seed, settings, JournalWorld.small)
        var numbers = [UInt64](repeating: 0, count: 6)
        for _ in 0..<400 {
            let stream = Int.random(in: 1...5, using: &node.dice)
            switch Int.random(in: 0..<8, using: &node.dice) {
            case 0: node.run(node.stage.wait(.seconds(2)))
            case 1:
                let purge = LogStage.purge("\(node.dice.next())")
                node.run(node.stage.issue(purge).effects)
            default:
                let first = numbers[stream] + 1
                numbers[stream] += UInt64.random(in: 1...4, using: &node.dice)
                let records = LogStage.records(UInt64(stream), first...numbers[stream])
                node.run(node.stage.receive(records, from: UInt64(stream)))
            }
        }
        #expect(node.dropped > 5)
        node.flush()
        let (log, before) = (node.restarted(), node.stage.log)
        #expect(log.syncedPositions == before.syncedPositions)
        #expect(log.heldCount == before.heldCount)
        for position in before.syncedPositions {
            for number in 1...position.count {
                let name = RecordID(stream: position.process, number: number)
                #expect(log.record(name) == before.record(name))
            }
        }
    }

    @Test("Retired streams stay retired after a start")
    func retired() {
        var settings = InvalidationLog.Settings()
        settings.ageMin = .seconds(20)
        var node = KeepingNode(seed: 7, settings, JournalWorld.small)
        node.run(node.stage.receive(LogStage.records(1, 1...9), from: 1))
        node.run(node.stage.receive(LogStage.records(2, 1...9), from: 2))
        for number in 1...5 as ClosedRange<UInt64> {
            node.run(node.stage.confirm([LogStage.position(1, 9)], members: [], by: number))
        }
        // Member 1 has another process from now on.
        let living = (1...5).map {
            ReplicationMember(LogStage.id($0), LogStage.process($0 == 1 ? 11 : $0), .live)
        }
        node.run(node.stage.happens { $0.membersChanged(living, now: $1, effects: &$2) })
        node.run(node.stage.wait(.seconds(30)))
        node.run(node.stage.receive(LogStage.records(3, 1...1), from: 3))
        #expect(node.stage.log.streamsCount == 3)
        var log = node.restarted()
        let catchUp = log.catchUpTarget(of: LogStage.id(9))
        #expect(catchUp.retired == [LogStage.position(1, 9)])
        #expect(catchUp.positions == node.stage.log.syncedPositions)
    }

    @Test("A log larger than its disk limit drops its oldest records")
    func surplus() {
        var limits = JournalWorld.small
        limits.bytesMax = 64 << 10
        var node = KeepingNode(seed: 8, InvalidationLog.Settings(), limits)
        for number in 1...2_000 as ClosedRange<UInt64> {
            node.run(node.stage.receive([LogStage.record(1, number)], from: 1))
            if node.stage.log.unsyncedBytes > 0 { node.run(node.stage.wait(.seconds(2))) }
            #expect(node.disk.bytesCount <= limits.bytesMax)
        }
        #expect(node.dropped > 3)
        #expect(node.stage.log.syncedPositions == [LogStage.position(1, 2_000)])
        #expect(node.stage.log.heldCount > 100)
        node.flush()
        let log = node.restarted()
        #expect(log.syncedPositions == node.stage.log.syncedPositions)
        #expect(log.heldCount == node.stage.log.heldCount)
    }

    @Test("Dropping records after a gap makes everything stale")
    func givenUp() {
        var stage = LogStage(members: 1...2)
        stage.receive(LogStage.records(1, 1...4) + LogStage.records(1, 6...9), from: 1)
        stage.receive(LogStage.records(2, 1...4), from: 2)
        stage.synced()
        stage.synced()
        let surplus = [LogStage.position(1, 8), LogStage.position(2, 3), LogStage.position(7, 3)]
        let effects = stage.happens { $0.dropForSpace(surplus, now: $1, effects: &$2) }
        let dropped = [LogStage.position(1, 4), LogStage.position(2, 3)]
        #expect(
            effects == [
                .applyFloors([LogStage.position(1, 8)], count: 13),
                .write(dropped.map { .metadata(.dropped($0)) }),
            ])
        #expect(stage.log.heldCount == 2)
        #expect(stage.synced().writes == [.floor(LogStage.position(1, 8), count: 13)])
        stage.synced()
        #expect(stage.log.syncedPositions == [LogStage.position(1, 9), LogStage.position(2, 4)])
    }
}
