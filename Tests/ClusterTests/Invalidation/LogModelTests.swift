import Cluster
import Ground
import Testing

@Suite("The log compared with a table")
struct LogModelTests {
    @Test("In any order of records, holdings and positions agree with the table", arguments: 0..<6)
    func model(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var stage = LogStage(members: 1...1)
        var held: [UInt64: InvalidationRecord] = [:]
        for _ in 0..<1_500 {
            let number = UInt64.random(in: 1...1_200, using: &dice)
            let record = LogStage.record(1, number)
            let isNew = held.updateValue(record, forKey: number) == nil
            #expect(stage.receive([record], from: 1).applied.isEmpty == !isNew)
        }
        stage.synced()
        stage.synced()
        #expect(stage.log.heldCount == held.count)
        var prefix: UInt64 = 0
        while held[prefix + 1] != nil { prefix += 1 }
        #expect(stage.log.syncedPositions.first?.count ?? 0 == prefix)
        for number in 1...1_201 as ClosedRange<UInt64> {
            #expect(stage.log.record(LogStage.name(1, number)) == held[number])
        }
        let all = stage.log.repairResponse(
            to: [LogStage.range(1, 1...1_200)], of: LogStage.id(1), bytesMax: .max)
        #expect(all.records == held.keys.sorted().compactMap { held[$0] })
        // Every gap is requested, and nothing that is held.
        stage.hear([LogStage.position(1, 1_200)], from: 1)
        let ranges = stage.wait(.milliseconds(20)).asks[1] ?? []
        let asked = ranges.flatMap { Array($0.numbers) }
        let missing = (1...1_200 as ClosedRange<UInt64>).filter { held[$0] == nil }
        #expect(Set(missing).isSubset(of: asked))
        #expect(ranges.count <= 32)
        #expect(ranges.dropLast().allSatisfy { $0.numbers.allSatisfy { held[$0] == nil } })
    }
}
