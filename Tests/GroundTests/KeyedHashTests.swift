import Ground
import Testing

@Suite struct KeyedHashTests {
    /// The key of the reference vectors: bytes 0, 1, 2 … 15; their messages count up from 0
    /// likewise.
    static let hash = KeyedHash(key0: 0x0706_0504_0302_0100, key1: 0x0F0E_0D0C_0B0A_0908)

    @Test(
        "SipHash-1-3 gives the reference values",
        arguments: [
            (0, 0xABAC_0158_050F_C4DC), (1, 0xC9F4_9BF3_7D57_CA93), (2, 0x82CB_9B02_4DC7_D44D),
            (7, 0xD392_7D98_9BB1_1140), (8, 0x3690_9511_8D29_9A8E), (9, 0x25A4_8EB3_6C06_3DE4),
            (15, 0xD320_D86D_2A51_9956), (16, 0xCC4F_DD1A_7D90_8B66),
            (31, 0x2370_DD1F_8C21_D1BC), (63, 0x9D19_9062_B7BB_B3A8),
        ] as [(Int, UInt64)])
    func vectors(count: Int, expected: UInt64) {
        let bytes = (0..<count).map { UInt8($0) }
        let value = Self.hash(bytes.span)
        #expect(value == expected)
    }

    @Test("A zero key matches CPython 3.11 without hash randomisation")
    func otherImplementation() {
        let bytes = Array("nuthatch cache key".utf8)
        let value = KeyedHash(key0: 0, key1: 0)(bytes.span)
        #expect(value == 432_582_793_691_145_153)
    }

    @Test("A range inside other bytes hashes like its copy", arguments: 0..<24)
    func ranges(start: Int) {
        let bytes = (0..<64).map { UInt8($0 * 7 % 251) }
        for end in start..<64 {
            let inside = Self.hash(bytes.span, start..<end)
            let copy = Array(bytes[start..<end])
            let alone = Self.hash(copy.span)
            #expect(inside == alone)
        }
    }

    @Test("At every cut, incremental hashing gives the hash of all bytes so far")
    func pieces() {
        let bytes = (0..<70).map { UInt8($0 * 5 % 251) }
        for step in 1..<20 {
            var stream = KeyedHashStream(Self.hash)
            var start = 0
            while start < bytes.count {
                let value = stream.value
                #expect(value == Self.hash(bytes.span, 0..<start))
                let end = min(start + step, bytes.count)
                stream.add(bytes[start..<end])
                start = end
            }
            let value = stream.value
            #expect(value == Self.hash(bytes.span))
        }
    }

    @Test("Different keys give different hashes")
    func keyMatters() {
        let bytes = Array("http://a.example/1.png".utf8)
        let values = [(0, 0), (1, 0), (0, 1)].map { (key: (UInt64, UInt64)) in
            KeyedHash(key0: key.0, key1: key.1)(bytes.span)
        }
        #expect(Set(values).count == 3)
    }

    @Test("Words are read in little-endian order")
    func littleEndian() {
        let bytes: [UInt8] = [9, 0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01]
        let word = littleEndianWord(bytes.span, at: 1)
        #expect(word == 0x0123_4567_89AB_CDEF)
    }
}
