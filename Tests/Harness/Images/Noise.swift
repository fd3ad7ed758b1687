import NIOCore

/// An endless sequence of pseudo-random bytes that repeats one loop.
///
/// The loop's length is prime, so two parts whose distance is a multiple of a power of two differ,
/// and a cache that mixes up its chunks is detected.
struct Noise: Sendable {
    private let loop: ByteBuffer

    /// Any byte value.
    static let bytes = Noise { UInt8(truncatingIfNeeded: $0) }
    /// Letters only, for bodies that must be text.
    static let letters = Noise { 0x61 + UInt8(truncatingIfNeeded: $0 & 0xF) }

    private static let loopBytes = 1_048_573

    private init(_ byte: (UInt64) -> UInt8) {
        let words = Self.loopBytes / 8 + 1
        var bytes: [UInt8] = []
        bytes.reserveCapacity(words * 8)
        var seed: UInt64 = 0x6E75_7468_6174_6368
        for _ in 0..<words {
            var word = Self.mix(&seed)
            for _ in 0..<8 {
                bytes.append(byte(word))
                word >>= 8
            }
        }
        loop = ByteBuffer(bytes: bytes[..<Self.loopBytes])
    }

    /// The next number of the splitmix64 sequence.
    static func mix(_ seed: inout UInt64) -> UInt64 {
        seed &+= 0x9E37_79B9_7F4A_7C15
        var word = seed
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// Returns the offset in the sequence at which the bytes of a seed begin.
    static func offset(_ seed: UInt64) -> Int {
        var seed = seed
        return Int(mix(&seed) % UInt64(loopBytes))
    }

    func append(_ start: Int, count: Int, to slices: inout [ByteBuffer]) {
        var at = start % Self.loopBytes
        var left = count
        while left > 0 {
            let length = min(left, Self.loopBytes - at)
            if let slice = loop.getSlice(at: at, length: length) { slices.append(slice) }
            left -= length
            at = 0
        }
    }
}
