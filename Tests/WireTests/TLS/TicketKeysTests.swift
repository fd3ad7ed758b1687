import Ground
import Testing
import Wire

@Suite struct TicketKeysTests {
    static func dice(_ seed: UInt64) -> [UInt8] {
        var dice = SplitMix64(seed: seed)
        return (0..<TicketKeys.entropyBytes).map { _ in UInt8.random(in: 0...255, using: &dice) }
    }

    @Test("A key is due for rotation after its period, not before")
    func due() {
        let keys = TicketKeys(now: noon, entropy: Self.dice(1))
        #expect(!keys.isRotationDue(now: noon))
        #expect(!keys.isRotationDue(now: noon + TicketKeys.period - .milliseconds(1)))
        #expect(keys.isRotationDue(now: noon + TicketKeys.period))
        var rotated = keys
        rotated.rotate(now: noon + TicketKeys.period, entropy: Self.dice(2))
        #expect(!rotated.isRotationDue(now: noon + TicketKeys.period))
        #expect(rotated != keys)
    }

    @Test("A key is dropped a lifetime after its replacement")
    func forgotten() {
        var keys = TicketKeys(now: noon, entropy: Self.dice(1))
        let start = keys
        keys.removeExpired(now: .distantFuture)
        #expect(keys == start)
        let rotation = noon + .seconds(60)
        keys.rotate(now: rotation, entropy: Self.dice(2))
        let both = keys
        keys.removeExpired(now: rotation + TicketKeys.lifetime - .milliseconds(1))
        #expect(keys == both)
        keys.removeExpired(now: rotation + TicketKeys.lifetime)
        #expect(keys == TicketKeys(now: rotation, entropy: Self.dice(2)))
    }

    @Test("With frequent rotations only the newest keys are kept")
    func bounded() {
        var keys = TicketKeys(now: noon, entropy: Self.dice(0))
        for seed in 1...100 { keys.rotate(now: noon, entropy: Self.dice(UInt64(seed))) }
        var same = TicketKeys(now: noon, entropy: Self.dice(93))
        for seed in 94...100 { same.rotate(now: noon, entropy: Self.dice(UInt64(seed))) }
        #expect(keys == same)
    }
}
