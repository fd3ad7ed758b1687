import Ground
import Testing
import Tiers

@Suite("Counting the versions in use")
struct VersionCountsTests {
    @Test("The least version is the minimum of those inserted and not removed", arguments: 0..<4)
    func model(seed: UInt64) {
        var dice = SplitMix64(seed: 77 + seed)
        var counts = VersionCounts()
        var model: [InvalidationVersion] = []
        for _ in 0..<5_000 {
            if model.count < 20, dice.next() % 2 == 0 {
                let version = InvalidationVersion(epoch: dice.next() % 3, count: dice.next() % 6)
                counts.insert(version)
                model.append(version)
            } else if let version = model.randomElement(using: &dice) {
                counts.remove(version)
                model.remove(at: model.firstIndex(of: version) ?? 0)
            }
            #expect(counts.least == model.min())
        }
    }
}
