import Admin
import Client
import Telemetry
import Testing

@Suite("What follows from statistics")
struct RatesTests {
    @Test("ratios are of what the cache could have served, in requests and in bytes")
    func ratios() {
        let loop = OutcomeHistograms()
        for _ in 0..<8 { loop.add(.hit, nanoseconds: 60_000, bodyBytes: 10) }
        loop.add(.miss, nanoseconds: 60_000_000_000, bodyBytes: 20)
        loop.add(.generated, nanoseconds: 1, bodyBytes: 5)
        let document = StatisticsDocument(
            MetricsSnapshot(loops: [], node: NodeCounters(), outcomes: [loop]))
        #expect(document.requests.hits == 8 && document.requests.cacheable == 9)
        #expect(document.requests.all == 10 && document.bytes.hitRatio == 0.8)
        #expect(SourceCounts().hitRatio == nil)
        let buckets = document.latency.all
        #expect(buckets.reduce(0, +) == 9 && document.latency.bounds == LatencyBuckets.bounds)
        let middle = LatencyHistogram.quantile(0.5, of: buckets, bounds: document.latency.bounds)
        #expect(middle.map { (50...100).contains($0) } == true)
        #expect(
            LatencyHistogram.quantile(1, of: buckets, bounds: LatencyBuckets.bounds) == .infinity)
        #expect(LatencyHistogram.quantile(0.5, of: [0, 0], bounds: [1]) == nil)
    }

    @Test("counts are added and subtracted source by source")
    func sums() {
        var (one, two) = (SourceCounts(), SourceCounts())
        (one.memory, one.origin, two.memory, two.stale) = (5, 2, 1, 4)
        let sum = one + two
        #expect((sum.memory, sum.origin, sum.stale) == (6, 2, 4))
        #expect(sum - two == one && sum.all == one.all + two.all)
    }

    @Test("quantiles never fall as the share rises, and lie in the bucket that has them")
    func quantiles() throws {
        let buckets: [UInt64] = [3, 0, 5, 1, 0]
        var last = 0.0
        for step in 0...100 {
            let value = try #require(
                LatencyHistogram.quantile(
                    Double(step) / 100, of: buckets, bounds: [10, 20, 50, 100]))
            #expect(value >= last)
            last = value
        }
        #expect(last == 100)
    }
}
