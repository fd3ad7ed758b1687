import Ground
import Testing

@Suite struct XXH64Tests {
    private static let seed: UInt64 = 2_654_435_761

    /// The input of the reference implementation's self-test.
    private static let sanityBytes: [UInt8] = {
        var state: UInt64 = 2_654_435_761
        return (0..<222).map { _ in
            defer { state &*= 11_400_714_785_074_694_797 }
            return UInt8(state >> 56)
        }
    }()

    @Test(
        "XXH64 gives the reference values",
        arguments: [
            (0, 0, 0xEF46_DB37_51D8_E999), (0, seed, 0xAC75_FDA2_929B_17EF),
            (1, 0, 0xE934_A84A_DB05_2768), (1, seed, 0x5014_6076_43A9_B4C3),
            (4, 0, 0x9136_A0DC_A574_57EE),
            (14, 0, 0x8282_DCC4_994E_35C8), (14, seed, 0xC3BD_6BF6_3DEB_6DF0),
            (222, 0, 0xB641_AE8C_B691_C174), (222, seed, 0x20CB_8AB7_AE10_C14A),
        ] as [(Int, UInt64, UInt64)])
    func vectors(count: Int, seed: UInt64, expected: UInt64) {
        let bytes = Array(Self.sanityBytes[..<count])
        let hash = XXH64.hash(bytes.span, seed: seed)
        #expect(hash == expected)
    }

    @Test("Input longer than a stripe matches other implementations")
    func otherImplementations() {
        let bytes = Array("Nobody inspects the spammish repetition".utf8)
        let hash = XXH64.hash(bytes.span, seed: 0)
        #expect(hash == 0xFBCE_A83C_8A37_8BF1)
    }

    @Test("Cutting a stream in two, anywhere, changes nothing", arguments: [0, seed])
    func twoParts(seed: UInt64) {
        for count in 0...130 {
            let bytes = Array(Self.sanityBytes[..<count])
            let whole = XXH64.hash(bytes.span, seed: seed)
            for cut in 0...count {
                let hash = Self.streamed(bytes, cuts: [cut], seed: seed)
                #expect(hash == whole, "\(count) bytes cut at \(cut)")
            }
        }
    }

    @Test("Cutting a stream into any parts changes nothing", arguments: 0..<200)
    func manyParts(round: Int) {
        var dice = SplitMix64(seed: UInt64(round))
        let bytes = (0..<Int(dice.next() % 5_000)).map { _ in UInt8(dice.next() >> 56) }
        let partMax = 1 << (dice.next() % 12)
        var cuts: [Int] = []
        var cut = 0
        while cut < bytes.count {
            cuts.append(cut)
            cut += Int(dice.next() % UInt64(partMax + 1))
        }
        let seed = dice.next()
        let whole = XXH64.hash(bytes.span, seed: seed)
        let hash = Self.streamed(bytes, cuts: cuts, seed: seed)
        #expect(hash == whole)
    }

    @Test("A stream continues after an intermediate hash was taken")
    func goesOn() {
        var stream = XXH64(seed: 0)
        for count in 0..<Self.sanityBytes.count {
            let soFar = stream.finish()
            let prefix = Array(Self.sanityBytes[..<count])
            let whole = XXH64.hash(prefix.span, seed: 0)
            #expect(soFar == whole)
            stream.update([Self.sanityBytes[count]].span)
        }
    }

    @Test("Every flipped bit changes the hash")
    func flippedBits() {
        var bytes = Array(Self.sanityBytes[..<77])
        let whole = XXH64.hash(bytes.span, seed: 0)
        for bit in 0..<bytes.count * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8)
            let hash = XXH64.hash(bytes.span, seed: 0)
            #expect(hash != whole)
            bytes[bit / 8] ^= 1 << (bit % 8)
        }
    }

    /// The hash of `bytes` in parts that end at `cuts`, and at the end.
    private static func streamed(_ bytes: [UInt8], cuts: [Int], seed: UInt64) -> UInt64 {
        var stream = XXH64(seed: seed)
        var start = 0
        for end in cuts + [bytes.count] {
            stream.update(bytes.span.extracting(start..<end))
            start = end
        }
        return stream.finish()
    }
}
