import Ground
import Testing
import Tiers

@Suite("Estimating how often keys were requested lately")
struct FrequencySketchTests {
    @Test("A key is never underestimated and seldom overestimated")
    func estimates() {
        var sketch = FrequencySketch(words: 1_024)
        var dice = SplitMix64(seed: 1)
        var counts: [UInt64: UInt8] = [:]
        for _ in 0..<3_000 {
            // A few keys are frequent, most are requested once.
            let hash = dice.next() % (Bool.random(using: &dice) ? 30 : 3_000)
            let mixed = hash &* 0xD6E8_FEB8_6659_FD93
            counts[mixed, default: 0] = min(15, counts[mixed, default: 0] + 1)
            _ = sketch.increment(mixed)
        }
        #expect(counts.allSatisfy { sketch.frequency($0.key) >= $0.value })
        let exact = counts.count { sketch.frequency($0.key) == $0.value }
        #expect(Double(exact) > 0.9 * Double(counts.count), "\(exact) of \(counts.count)")
        #expect(sketch.frequency(0xDEAD_BEEF) <= 1)
    }

    @Test("An increment returns the new estimate, up to 15")
    func uses() {
        var sketch = FrequencySketch(words: 64)
        let given = (0..<20).map { _ in sketch.increment(77) }
        #expect(given == (1...15).map { UInt8($0) } + Array(repeating: 15, count: 5))
        #expect(sketch.frequency(77) == 15)
    }

    @Test("Former popularity is forgotten")
    func ageing() {
        var sketch = FrequencySketch(words: 64)
        for _ in 0..<15 { _ = sketch.increment(77) }
        var dice = SplitMix64(seed: 2)
        for _ in 0..<640 where sketch.frequency(77) == 15 { _ = sketch.increment(dice.next()) }
        #expect(sketch.frequency(77) == 7)
    }
}
