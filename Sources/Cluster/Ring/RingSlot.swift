package import Ground

/// A slot of the ring: a group of keys that have the same owners.
package struct RingSlot: Hashable, Comparable, Sendable {
    /// The slot's number, 0 to 262,143.
    package let number: UInt32

    /// The number of slots, 2^18; a constant of the protocol.
    package static let count = 1 << bits
    static let bits = 18

    /// Creates a slot from its number, which must be below ``count``.
    package init(number: UInt32) {
        precondition(number < Self.count, "slot \(number) of \(Self.count)")
        self.number = number
    }

    /// Creates the slot of a key: the highest 18 bits of the first eight bytes of its SHA-256, read
    /// as a little-endian number.
    ///
    /// The digests of all variants of a URL share these bits (``EntryName/colocated(with:)``), so
    /// the variants and their index have the same owners. Hash tables inside a node use other bits,
    /// so the keys of one owner spread evenly there.
    @inline(__always)
    package init(of keyDigest: EntryDigest) {
        number = UInt32(truncatingIfNeeded: keyDigest.first &>> UInt64(64 - Self.bits))
    }

    /// Orders slots by number.
    package static func < (left: RingSlot, right: RingSlot) -> Bool {
        left.number < right.number
    }
}
