/// A byte range in a buffer, as an offset and a count; 8 bytes in all.
///
/// A parser returns extents instead of copies. The extent does not identify its buffer.
@usableFromInline package struct Extent: Hashable, Sendable {
    /// Offset of the first byte.
    @usableFromInline package var start: UInt32
    /// Number of bytes; 0 for an empty value.
    @usableFromInline package var count: UInt32

    /// Creates an extent from an offset and a count in bytes, both of which must fit in 32 bits.
    @inlinable package init(start: Int, count: Int) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.count = UInt32(truncatingIfNeeded: count)
    }

    /// The extent without bytes, at the start of the buffer.
    package static let empty = Extent(start: 0, count: 0)

    /// Offset one past the last byte.
    @inlinable package var end: Int { Int(start) + Int(count) }
    /// The extent as a range of offsets.
    @inlinable package var range: Range<Int> { Int(start)..<end }
    /// True if the extent has no bytes.
    @inlinable package var isEmpty: Bool { count == 0 }
}

extension Span<UInt8> {
    /// Returns the little-endian 16-bit number at `offset`.
    @inlinable package func little16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) | UInt16(self[offset + 1]) << 8
    }

    /// Returns the little-endian 32-bit number at `offset`.
    @inlinable package func little32(at offset: Int) -> UInt32 {
        UInt32(little16(at: offset)) | UInt32(little16(at: offset + 2)) << 16
    }

    /// Returns the little-endian 64-bit number at `offset`.
    @inlinable package func little64(at offset: Int) -> UInt64 {
        littleEndianWord(self, at: offset)
    }

    /// Returns the extent stored in the eight bytes at `offset`: start, then count, both
    /// little-endian.
    @inlinable package func extent(at offset: Int) -> Extent {
        Extent(start: Int(little32(at: offset)), count: Int(little32(at: offset + 4)))
    }
}

extension [UInt8] {
    /// Appends the two bytes of `number` in little-endian order.
    @inlinable package mutating func appendLittle(_ number: UInt16) {
        append(UInt8(truncatingIfNeeded: number))
        append(UInt8(truncatingIfNeeded: number >> 8))
    }

    /// Appends the four bytes of `number` in little-endian order.
    @inlinable package mutating func appendLittle(_ number: UInt32) {
        appendLittle(UInt16(truncatingIfNeeded: number))
        appendLittle(UInt16(truncatingIfNeeded: number >> 16))
    }

    /// Appends the eight bytes of `number` in little-endian order.
    @inlinable package mutating func appendLittle(_ number: UInt64) {
        appendLittle(UInt32(truncatingIfNeeded: number))
        appendLittle(UInt32(truncatingIfNeeded: number >> 32))
    }

    /// Overwrites the eight bytes at `offset` with `number` in little-endian order.
    @inlinable package mutating func setLittle(_ number: UInt64, at offset: Int) {
        for place in 0..<8 {
            self[offset + place] = UInt8(truncatingIfNeeded: number >> UInt64(8 * place))
        }
    }

    /// Appends zero bytes until the array has `count` bytes; does nothing if it already has as
    /// many.
    @inlinable package mutating func pad(to count: Int) {
        while self.count < count { append(0) }
    }
}
