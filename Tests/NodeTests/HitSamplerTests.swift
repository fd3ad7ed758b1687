import Front
import Testing

@Suite("The sample of hits")
struct HitSamplerTests {
    @Test("While there are few hits, each is in the sample and stands for itself")
    func few() {
        var sampler = HitSampler()
        for _ in 0..<3 {
            #expect(sample(255, by: &sampler) == Array(repeating: 1, count: 255))
            sampler.ticked()
        }
    }

    @Test("After a tick with many hits about a hundred stand for all", arguments: [8, 12, 16, 20])
    func many(exponent: Int) {
        var sampler = HitSampler()
        let hits = 1 << exponent
        #expect(sample(hits, by: &sampler).count == hits)
        sampler.ticked()
        let chosen = sample(hits, by: &sampler)
        #expect(64...256 ~= chosen.count)
        #expect(chosen.reduce(0, +) == UInt64(hits))
    }

    @Test("After a tick with few hits all are in the sample again")
    func fewAgain() {
        var sampler = HitSampler()
        _ = sample(1 << 16, by: &sampler)
        sampler.ticked()
        sampler.ticked()
        #expect(sample(10, by: &sampler) == Array(repeating: 1, count: 10))
    }

    /// The weights of those of the next `hits` hits that are in the sample.
    private func sample(_ hits: Int, by sampler: inout HitSampler) -> [UInt64] {
        (0..<hits).compactMap { _ in sampler.countHit() }
    }
}
