import Cluster
import Ground
import Testing

@Suite("Reports of more streams than a node may have")
struct StreamFloodTests {
    /// Members 1 and 2, of which each sends the reports of unknown processes in many messages.
    private static func stage() -> LogStage {
        var settings = InvalidationLog.Settings()
        settings.streamsMax = 16
        return LogStage(members: 1...2, settings: settings)
    }

    private static let messages = (0..<20 as Range<UInt64>).map { message in
        (0..<50 as Range<UInt64>).map { LogStage.position(1_000 + message * 50 + $0, .max) }
    }

    /// The processes whose records were requested.
    private static func requested(_ effects: [InvalidationEffect]) -> Set<ProcessID> {
        Set(effects.asks.values.joined().map(\.process))
    }

    @Test("Applied positions of unknown processes replace a stream once in the time of a repair")
    func applied() {
        var stage = Self.stage()
        var requested: Set<ProcessID> = []
        for positions in Self.messages {
            requested.formUnion(Self.requested(stage.tell(positions, by: 1)))
        }
        // All but this node's own stream.
        #expect(requested.count == 15)
        #expect(stage.log.streamsCount == 16)
        #expect(stage.log.lags(behind: LogStage.id(1)))
    }

    @Test("Confirmed positions of unknown processes replace a stream once in the time of a repair")
    func confirmed() {
        var stage = Self.stage()
        for positions in Self.messages { stage.confirm(positions, members: [1, 2, 100], by: 1) }
        let requested = Self.requested(stage.wait(.milliseconds(20)))
        #expect(requested == Set(Self.messages[0].prefix(15).map(\.process)))
        #expect(stage.log.streamsCount == 16)
    }

    @Test("What is kept of reports does not grow with their number")
    func kept() {
        var stage = Self.stage()
        for _ in 0..<3 {
            for positions in Self.messages {
                stage.tell(positions, by: 1)
                stage.confirm(positions, members: [1, 2, 100], by: 1)
                stage.confirm(positions, members: [1, 2, 100], by: 2)
            }
            stage.wait(.seconds(2))
        }
        // What the first one has applied, in streams here or not, and what two have synced and
        // confirmed.
        #expect(stage.log.reportedCount <= 2 * 16 + 2 * (16 + 16))
    }

    @Test("A full table takes the stream of a member at once")
    func member() {
        var stage = Self.stage()
        for positions in Self.messages { stage.tell(positions, by: 1) }
        let effects = stage.receive([LogStage.record(1, 1)], from: 1)
        #expect(effects.applied == [LogStage.name(1, 1)])
        let reported = Self.messages[0] + [LogStage.position(2, 3)]
        let requested = Self.requested(stage.tell(reported, by: 2))
        #expect(requested.contains(LogStage.process(2)))
        #expect(stage.log.streamsCount == 16)
    }

    @Test("A full table takes the stream of an unknown process after the time of a repair")
    func later() {
        var stage = Self.stage()
        for positions in Self.messages { stage.tell(positions, by: 1) }
        stage.wait(.seconds(1))
        #expect(Self.requested(stage.tell([LogStage.position(7, 1)], by: 2)).count == 1)
    }

    @Test("Records of many unknown processes in one message leave no more than the limit allows")
    func records() {
        var stage = Self.stage()
        let records = (1_000..<1_050 as Range<UInt64>).map { LogStage.record($0, 1) }
        // None is retired before it is synced.
        #expect(stage.receive(records, from: 1).applied.count == 15)
        #expect(stage.log.lags(behind: LogStage.id(1)))
        stage.synced()
        #expect(stage.receive(Array(records.suffix(35)), from: 1).applied.count == 15)
        #expect(stage.log.streamsCount == 16)
    }
}
