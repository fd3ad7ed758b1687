/// XXH64 (Collet, xxHash fast digest algorithm, version 0.2.0): the checksum of data on disk, and
/// the hash of names that need no secret.
///
/// Detects wear and torn writes. Not a defence against deliberate changes.
///
/// A stripe of 32 bytes feeds four independent lanes of 8 bytes each; the bytes after the last
/// whole stripe are mixed in at the end. Invariant: ``pending`` holds fewer than 32 bytes between
/// calls.
package struct XXH64: Sendable {
    private var lanes: Lanes
    /// The bytes after the last whole stripe, in the first ``pendingCount`` elements.
    private var pending: InlineArray<32, UInt8>
    private var pendingCount = 0
    /// The number of bytes added so far, modulo 2^64.
    private var length: UInt64 = 0
    private let seed: UInt64

    /// Creates an empty stream; each `seed` gives a different hash function.
    package init(seed: UInt64) {
        self.seed = seed
        lanes = Lanes(seed: seed)
        pending = InlineArray(repeating: 0)
    }

    /// Returns the hash of `bytes` alone.
    package static func hash(_ bytes: Span<UInt8>, seed: UInt64) -> UInt64 {
        var stream = XXH64(seed: seed)
        stream.update(bytes)
        return stream.finish()
    }

    /// Adds the next bytes; how the input is divided into calls does not affect the hash.
    package mutating func update(_ bytes: Span<UInt8>) {
        length &+= UInt64(bytes.count)
        var index = 0
        if pendingCount > 0 {
            index = min(Stripe.bytes - pendingCount, bytes.count)
            buffer(bytes, 0..<index)
            guard pendingCount == Stripe.bytes else { return }
            _ = lanes.absorb(pending.span, from: 0)
            pendingCount = 0
        }
        index = lanes.absorb(bytes, from: index)
        buffer(bytes, index..<bytes.count)
    }

    /// Returns the hash of all bytes so far; more may be added afterwards.
    package func finish() -> UInt64 {
        var hash = length < Stripe.bytes ? seed &+ Prime.fifth : lanes.merged
        hash &+= length
        let rest = pending.span
        var index = 0
        while index + 8 <= pendingCount {
            hash ^= Lanes.round(0, littleEndianWord(rest, at: index))
            hash = rotate(hash, 27) &* Prime.first &+ Prime.fourth
            index += 8
        }
        if index + 4 <= pendingCount {
            var word = UInt64(rest[index]) | UInt64(rest[index + 1]) << 8
            word |= UInt64(rest[index + 2]) << 16 | UInt64(rest[index + 3]) << 24
            hash ^= word &* Prime.first
            hash = rotate(hash, 23) &* Prime.second &+ Prime.third
            index += 4
        }
        while index < pendingCount {
            hash ^= UInt64(rest[index]) &* Prime.fifth
            hash = rotate(hash, 11) &* Prime.first
            index += 1
        }
        hash = (hash ^ hash >> 33) &* Prime.second
        hash = (hash ^ hash >> 29) &* Prime.third
        return hash ^ hash >> 32
    }

    private mutating func buffer(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        for index in range {
            pending[pendingCount] = bytes[index]
            pendingCount += 1
        }
    }
}

private enum Stripe {
    static let bytes = 32
}

private enum Prime {
    static let first: UInt64 = 0x9E37_79B1_85EB_CA87
    static let second: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    static let third: UInt64 = 0x1656_67B1_9E37_79F9
    static let fourth: UInt64 = 0x85EB_CA77_C2B2_AE63
    static let fifth: UInt64 = 0x27D4_EB2F_1656_67C5
}

/// The four accumulators.
private struct Lanes {
    private var first: UInt64
    private var second: UInt64
    private var third: UInt64
    private var fourth: UInt64

    @inline(__always)
    init(seed: UInt64) {
        first = seed &+ Prime.first &+ Prime.second
        second = seed &+ Prime.second
        third = seed
        fourth = seed &- Prime.first
    }

    /// Adds all whole stripes from `start` and returns the index after the last of them.
    ///
    /// A stripe is extracted before it is read, so that one bounds check covers all its bytes and
    /// the compiler reads each lane with one load.
    @inline(__always)
    mutating func absorb(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var (first, second, third, fourth) = (first, second, third, fourth)
        var index = start
        while bytes.count &- index >= Stripe.bytes {
            let stripe = bytes.extracting(index..<index &+ Stripe.bytes)
            first = Self.round(first, littleEndianWord(stripe, at: 0))
            second = Self.round(second, littleEndianWord(stripe, at: 8))
            third = Self.round(third, littleEndianWord(stripe, at: 16))
            fourth = Self.round(fourth, littleEndianWord(stripe, at: 24))
            index &+= Stripe.bytes
        }
        (self.first, self.second, self.third, self.fourth) = (first, second, third, fourth)
        return index
    }

    var merged: UInt64 {
        var hash = rotate(first, 1) &+ rotate(second, 7)
        hash &+= rotate(third, 12) &+ rotate(fourth, 18)
        hash = Self.merge(hash, first)
        hash = Self.merge(hash, second)
        hash = Self.merge(hash, third)
        return Self.merge(hash, fourth)
    }

    @inline(__always)
    static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
        rotate(lane &+ word &* Prime.second, 31) &* Prime.first
    }

    @inline(__always)
    private static func merge(_ hash: UInt64, _ lane: UInt64) -> UInt64 {
        (hash ^ round(0, lane)) &* Prime.first &+ Prime.fourth
    }
}

@inline(__always)
private func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 {
    (word &<< bits) | (word &>> (64 &- bits))
}

/// A seeded pseudo-random generator (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
///
/// The same seed gives the same sequence on every platform. Not for secrets: the shell draws hash
/// keys and process ids from the system's generator.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator whose sequence `seed` determines.
    package init(seed: UInt64) {
        state = seed
    }

    /// Returns the next 64 bits of the sequence.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
