import Ground
import Testing

@Suite struct SplitMix64Tests {
    @Test("SplitMix64 gives the reference values")
    func vectors() {
        var dice = SplitMix64(seed: 1_234_567)
        let values = (0..<5).map { _ in dice.next() }
        #expect(
            values == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973,
                9_817_491_932_198_370_423, 4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ])
        var zero = SplitMix64(seed: 0)
        let first = zero.next()
        #expect(first == 0xE220_A839_7B1D_CDAF)
    }

    @Test("A copy generates the same sequence as the original")
    func copies() {
        var dice = SplitMix64(seed: 5)
        _ = dice.next()
        var copy = dice
        let pairs = (0..<100).map { _ in (dice.next(), copy.next()) }
        #expect(pairs.allSatisfy { $0 == $1 })
    }
}
