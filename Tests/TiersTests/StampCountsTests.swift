import Ground
import Testing
import Tiers

@Suite("Who holds which stamp")
struct StampCountsTests {
    @Test("the least is that of all who have begun and not ended", arguments: 0..<4)
    func model(seed: UInt64) {
        var dice = Dice(seed: 77 + seed)
        var counts = StampCounts()
        var model: [Stamp] = []
        for _ in 0..<5_000 {
            if model.count < 20, dice.next() % 2 == 0 {
                let stamp = Stamp(epoch: dice.next() % 3, count: dice.next() % 6)
                counts.begin(stamp)
                model.append(stamp)
            } else if let stamp = model.randomElement(using: &dice) {
                counts.end(stamp)
                model.remove(at: model.firstIndex(of: stamp) ?? 0)
            }
            #expect(counts.least == model.min())
        }
    }
}
