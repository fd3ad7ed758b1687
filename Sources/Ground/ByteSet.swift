/// A set of ASCII bytes, one bit each; no byte above 127 is a member.
@usableFromInline package struct ByteSet: Hashable, Sendable {
    /// The bits of bytes 0 to 63.
    @usableFromInline let low: UInt64
    /// The bits of bytes 64 to 127.
    @usableFromInline let high: UInt64

    /// Creates a set from the bits of bytes 0 to 63 and of bytes 64 to 127.
    @inlinable @inline(__always)
    package init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// Returns true if `byte` is in the set.
    @inlinable @inline(__always)
    package func contains(_ byte: UInt8) -> Bool {
        let word = byte < 64 ? low : high
        return byte < 128 && (word &>> UInt64(byte & 63)) & 1 != 0
    }

    /// The token characters, `tchar` (RFC 9110 §5.6.2).
    @inlinable @inline(__always)
    package static var token: ByteSet {
        ByteSet(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE)
    }
}
