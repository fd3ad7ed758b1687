import Ground
import Telemetry
import Testing

@Suite("Finding the most frequent keys")
struct SpaceSavingTests {
    @Test("Below its capacity every count is exact")
    func exact() {
        var saving = SpaceSaving(countersMax: 4)
        for key in [1, 2, 1, 3, 1, 2] as [UInt64] { saving.add(key) }
        saving.add(3, times: 10)
        let counts = saving.counters.sorted { $0.key < $1.key }
        #expect(counts.map(\.count) == [3, 2, 11] && counts.allSatisfy { $0.error == 0 })
    }

    @Test(
        "No count is too small or too large by more than its error, and frequent keys are found",
        arguments: 1...20)
    func bounds(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var saving = SpaceSaving(countersMax: 32)
        var truth: [UInt64: UInt64] = [:]
        for _ in 0..<5_000 {
            // A few keys are frequent, the others are rare.
            let key = UInt64.random(in: 0..<(Bool.random(using: &dice) ? 8 : 2_000), using: &dice)
            saving.add(key)
            truth[key, default: 0] += 1
        }
        #expect(saving.counters.count == 32)
        for counter in saving.counters {
            let count = truth[counter.key] ?? 0
            #expect(counter.count >= count && counter.count - counter.error <= count)
        }
        let kept = Set(saving.counters.map(\.key))
        for (key, count) in truth where count > 5_000 / 32 { #expect(kept.contains(key), "\(key)") }
    }

    @Test("Formerly frequent keys are forgotten")
    func ageing() {
        var saving = SpaceSaving(countersMax: 4)
        saving.add(1, times: 8)
        saving.add(2)
        saving.decay()
        #expect(saving.counters.map(\.key) == [1] && saving.counters[0].count == 4)
        for _ in 0..<3 { saving.decay() }
        #expect(saving.counters.isEmpty)
    }
}
