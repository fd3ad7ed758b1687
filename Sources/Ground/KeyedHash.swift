/// SipHash-1-3 with a secret key (Aumasson, Bernstein, INDOCRYPT 2012; the 1-3 rounds are those
/// that the hash tables of several languages use).
///
/// Locates entries in memory, and marks by their targets. Without the key, an attacker cannot
/// construct colliding inputs.
package struct KeyedHash: Sendable {
    fileprivate let key0: UInt64
    fileprivate let key1: UInt64

    /// Creates a hash from the halves of a 128-bit secret key.
    package init(key0: UInt64, key1: UInt64) {
        self.key0 = key0
        self.key1 = key1
    }

    /// Returns the hash of all of `bytes`.
    package func callAsFunction(_ bytes: Span<UInt8>) -> UInt64 {
        self(bytes, 0..<bytes.count)
    }

    /// Returns the hash of the part of `bytes` in `range`, which must lie inside.
    package func callAsFunction(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64 {
        var state = SipState(key0: key0, key1: key1)
        var index = range.lowerBound
        let count = range.count
        let wordsEnd = range.lowerBound + (count & ~7)
        while index < wordsEnd {
            state.absorb(littleEndianWord(bytes, at: index))
            index += 8
        }
        var last = UInt64(truncatingIfNeeded: count) << 56
        var shift: UInt64 = 0
        while index < range.upperBound {
            last |= UInt64(bytes[index]) << shift
            shift += 8
            index += 1
        }
        state.absorb(last)
        return state.finish()
    }
}

/// An incremental ``KeyedHash`` whose ``value`` may be read after every piece.
package struct KeyedHashStream: Sendable {
    private var state: SipState
    /// The bytes after the last whole word, the first in the lowest bits.
    private var rest: UInt64 = 0
    private var count = 0

    /// Creates an empty stream with the key of `hash`.
    package init(_ hash: KeyedHash) {
        state = SipState(key0: hash.key0, key1: hash.key1)
    }

    /// Appends bytes; how the input is divided into calls does not affect the value.
    package mutating func add(_ bytes: ArraySlice<UInt8>) {
        let span = bytes.span
        var index = 0
        while index < span.count, count & 7 != 0 {
            add(span[index])
            index &+= 1
        }
        while span.count &- index >= 8 {
            state.absorb(littleEndianWord(span.extracting(index..<index &+ 8), at: 0))
            count &+= 8
            index &+= 8
        }
        while index < span.count {
            add(span[index])
            index &+= 1
        }
    }

    @inline(__always)
    private mutating func add(_ byte: UInt8) {
        rest |= UInt64(byte) &<< UInt64(count & 7 &* 8)
        count &+= 1
        guard count & 7 == 0 else { return }
        state.absorb(rest)
        rest = 0
    }

    /// The ``KeyedHash`` of all bytes added so far.
    package var value: UInt64 {
        var last = state
        last.absorb(rest | UInt64(truncatingIfNeeded: count) << 56)
        return last.finish()
    }
}

/// Returns the little-endian 64-bit number at `index`; `index + 8` must not exceed the count.
@inline(__always)
@inlinable
package func littleEndianWord(_ bytes: Span<UInt8>, at index: Int) -> UInt64 {
    var word = UInt64(bytes[index])
    word |= UInt64(bytes[index + 1]) << 8
    word |= UInt64(bytes[index + 2]) << 16
    word |= UInt64(bytes[index + 3]) << 24
    word |= UInt64(bytes[index + 4]) << 32
    word |= UInt64(bytes[index + 5]) << 40
    word |= UInt64(bytes[index + 6]) << 48
    word |= UInt64(bytes[index + 7]) << 56
    return word
}

private struct SipState: Sendable {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64

    @inline(__always)
    init(key0: UInt64, key1: UInt64) {
        v0 = key0 ^ 0x736F_6D65_7073_6575
        v1 = key1 ^ 0x646F_7261_6E64_6F6D
        v2 = key0 ^ 0x6C79_6765_6E65_7261
        v3 = key1 ^ 0x7465_6462_7974_6573
    }

    @inline(__always)
    mutating func absorb(_ word: UInt64) {
        v3 ^= word
        round()
        v0 ^= word
    }

    @inline(__always)
    mutating func finish() -> UInt64 {
        v2 ^= 0xFF
        round()
        round()
        round()
        return v0 ^ v1 ^ v2 ^ v3
    }

    @inline(__always)
    private mutating func round() {
        v0 &+= v1
        v1 = rotate(v1, 13) ^ v0
        v0 = rotate(v0, 32)
        v2 &+= v3
        v3 = rotate(v3, 16) ^ v2
        v0 &+= v3
        v3 = rotate(v3, 21) ^ v0
        v2 &+= v1
        v1 = rotate(v1, 17) ^ v2
        v2 = rotate(v2, 32)
    }

    @inline(__always)
    private func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 {
        (word << bits) | (word >> (64 - bits))
    }
}
