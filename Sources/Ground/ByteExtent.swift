/// Where some bytes lie in a buffer that is named elsewhere: an offset and a count, 8 bytes in all.
///
/// A parser hands out extents instead of copies; an extent means nothing without its buffer.
@usableFromInline package struct Extent: Hashable, Sendable {
    /// Offset of the first byte.
    @usableFromInline package var start: UInt32
    /// Number of bytes; 0 for an empty value.
    @usableFromInline package var count: UInt32

    @inlinable package init(start: Int, count: Int) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.count = UInt32(truncatingIfNeeded: count)
    }

    /// No bytes, at the start of the buffer.
    package static let empty = Extent(start: 0, count: 0)

    /// Offset one past the last byte.
    @inlinable package var end: Int { Int(start) + Int(count) }
    @inlinable package var range: Range<Int> { Int(start)..<end }
    @inlinable package var isEmpty: Bool { count == 0 }
}

extension Span<UInt8> {
    /// The two bytes from `offset`, the first in the lowest bits.
    @inlinable package func little16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) | UInt16(self[offset + 1]) << 8
    }

    /// The four bytes from `offset`, the first in the lowest bits.
    @inlinable package func little32(at offset: Int) -> UInt32 {
        UInt32(little16(at: offset)) | UInt32(little16(at: offset + 2)) << 16
    }

    /// The eight bytes from `offset`, the first in the lowest bits.
    @inlinable package func little64(at offset: Int) -> UInt64 {
        littleEndianWord(self, at: offset)
    }

    /// The start and the count in the eight bytes from `offset`.
    @inlinable package func extent(at offset: Int) -> Extent {
        Extent(start: Int(little32(at: offset)), count: Int(little32(at: offset + 4)))
    }
}

extension [UInt8] {
    /// Appends the bytes of `number`, the lowest bits first.
    @inlinable package mutating func appendLittle(_ number: UInt16) {
        append(UInt8(truncatingIfNeeded: number))
        append(UInt8(truncatingIfNeeded: number >> 8))
    }

    /// Appends the bytes of `number`, the lowest bits first.
    @inlinable package mutating func appendLittle(_ number: UInt32) {
        appendLittle(UInt16(truncatingIfNeeded: number))
        appendLittle(UInt16(truncatingIfNeeded: number >> 16))
    }

    /// Appends the bytes of `number`, the lowest bits first.
    @inlinable package mutating func appendLittle(_ number: UInt64) {
        appendLittle(UInt32(truncatingIfNeeded: number))
        appendLittle(UInt32(truncatingIfNeeded: number >> 32))
    }

    /// Puts the bytes of `number` in place of the eight from `offset`.
    @inlinable package mutating func setLittle(_ number: UInt64, at offset: Int) {
        for place in 0..<8 {
            self[offset + place] = UInt8(truncatingIfNeeded: number >> UInt64(8 * place))
        }
    }

    /// Appends zeros until there are `count` bytes.
    @inlinable package mutating func pad(to count: Int) {
        while self.count < count { append(0) }
    }
}
