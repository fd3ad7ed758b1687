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
