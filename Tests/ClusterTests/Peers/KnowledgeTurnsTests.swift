import Cluster
import Ground
import Testing

@Suite("Positions that go with gossip")
struct KnowledgeTurnsTests {
    private static func position(_ number: UInt64, _ count: UInt64 = 1) -> StreamPosition {
        StreamPosition(process: ProcessID(high: 0, low: number), count: count)
    }

    private static let own = ProcessID(high: 0, low: 50)

    @Test("few go all")
    func few() {
        var turns = KnowledgeTurns(own: Self.own)
        let positions = (1...64).map { Self.position($0) }
        #expect(turns.next(of: positions) == positions)
        #expect(turns.next(of: positions) == positions)
        #expect(turns.next(of: []) == [])
    }

    @Test(
        "of many each goes in its turn, whatever comes and goes, and the own one always",
        arguments: 1...20 as ClosedRange<UInt64>)
    func many(seed: UInt64) {
        var dice = Dice(seed: seed)
        var turns = KnowledgeTurns(own: Self.own)
        let count = Int.random(in: 70...1_000, using: &dice)
        // Those with an even number stay; of the others some are there.
        let stay = (1...UInt64(count)).map { 2 * $0 }
        var heard: Set<ProcessID> = []
        let rounds = (2 * count + KnowledgeTurns.countMax - 2) / (KnowledgeTurns.countMax - 1)
        for _ in 0...rounds {
            let guests = stay.map { $0 + 1 }.filter { _ in Bool.random(using: &dice) }
            let now = (stay + guests).sorted().map { Self.position($0) }
            let said = turns.next(of: now)
            #expect(said.count == KnowledgeTurns.countMax)
            #expect(Set(said.map(\.process)).count == said.count)
            #expect(said.allSatisfy { now.contains($0) })
            #expect(said.contains { $0.process == Self.own })
            heard.formUnion(said.map(\.process))
        }
        #expect(stay.allSatisfy { heard.contains(ProcessID(high: 0, low: $0)) })
    }
}
