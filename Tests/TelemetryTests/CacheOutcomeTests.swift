import Telemetry
import Testing

@Suite("Latencies and bytes by outcome")
struct CacheOutcomeTests {
    @Test("A response counts in the first bucket whose bound it does not exceed")
    func buckets() {
        for (place, bound) in LatencyBuckets.bounds.enumerated() {
            for (nanoseconds, bucket) in [
                (bound * 1_000 - 1, place), (bound * 1_000, place), (bound * 1_000 + 1, place + 1),
            ] {
                let loop = OutcomeHistograms()
                loop.add(.peer, nanoseconds: Int64(nanoseconds), bodyBytes: 7)
                let row = OutcomeSnapshot([loop])[.peer]
                #expect(row.counts.firstIndex(of: 1) == bucket && row.count == 1)
                #expect(row.nanoseconds == nanoseconds && row.bodyBytes == 7)
            }
        }
    }

    @Test("Outcomes are separate, loops are summed, and a negative time counts as zero")
    func sums() {
        let loops = [OutcomeHistograms(), OutcomeHistograms()]
        for (place, outcome) in CacheOutcome.allCases.enumerated() {
            for loop in loops {
                for _ in 0...place { loop.add(outcome, nanoseconds: -5, bodyBytes: 3) }
            }
        }
        for (place, row) in OutcomeSnapshot(loops).rows.enumerated() {
            let count = UInt64(2 * (place + 1))
            #expect(row.outcome.rawValue == place && row.counts[0] == count && row.count == count)
            #expect(row.nanoseconds == 0 && row.bodyBytes == 3 * count)
        }
    }
}
