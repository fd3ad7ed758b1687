package import Ground

/// A slot of the ring: a group of keys that have the same owners.
package struct RingSlot: Hashable, Comparable, Sendable {
    /// 0 to 262,143.
    package let number: UInt32

    /// How many slots there are; a constant of the protocol.
    package static let count = 1 << bits
    static let bits = 18

    package init(number: UInt32) {
        precondition(number < Self.count, "slot \(number) of \(Self.count)")
        self.number = number
    }

    /// The slot of a key: the highest 18 bits of the little-endian number in the first eight bytes
    /// of its SHA-256.
    ///
    /// The digests of all variants of a URL have these bits in common
    /// (``EntryName/placed(with:)``): they, and the index of them, have the same owners. The bits
    /// are others than those by which digests are spread inside a node, so that the keys of one
    /// owner are spread there as all are.
    @inline(__always)
    package init(of keyDigest: EntryDigest) {
        number = UInt32(truncatingIfNeeded: keyDigest.first &>> UInt64(64 - Self.bits))
    }

    package static func < (left: RingSlot, right: RingSlot) -> Bool {
        left.number < right.number
    }
}
