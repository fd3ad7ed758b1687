package import Ground

/// That an entry was used: how often, and when last.
package struct Touch: Hashable, Sendable {
    package var digest: EntryDigest
    /// Uses since the last touch that was handed on; saturating.
    package var count: UInt32
    /// The last of them, in seconds on the owner's clock.
    package var lastAccess: UInt32

    package init(digest: EntryDigest, count: UInt32, lastAccess: UInt32) {
        self.digest = digest
        self.count = count
        self.lastAccess = lastAccess
    }

    /// Takes in a touch of the same entry.
    package mutating func merge(_ other: Touch) {
        let (sum, isOver) = count.addingReportingOverflow(other.count)
        count = isOver ? .max : sum
        lastAccess = max(lastAccess, other.lastAccess)
    }
}

/// What the hits of one event loop leave behind until it is handed on (DESIGN.md §6 "Touches").
///
/// A touch is a look at one or two slots and allocates nothing. Open addressing with linear
/// probing, never more than half full; who chooses digests that fall together makes a touch cost a
/// walk over at most ``keysMax`` slots.
package struct TouchTable: Sendable {
    private var slots: [Touch]
    /// Positions in the order of their first touch.
    private var usedSlots: [UInt32] = []
    /// The most entries that are remembered.
    package let keysMax: Int

    private static let free = Touch(
        digest: EntryDigest(first: 0, second: 0), count: 0, lastAccess: 0)

    /// An empty table for `keysMax` entries.
    package init(keysMax: Int) {
        precondition(keysMax > 0, "a table for \(keysMax) entries")
        self.keysMax = keysMax
        var size = 2
        while size < keysMax * 2 { size *= 2 }
        slots = Array(repeating: Self.free, count: size)
        usedSlots.reserveCapacity(keysMax)
    }

    /// Entries remembered.
    package var count: Int { usedSlots.count }
    /// True if what is remembered has to be taken before another entry is touched.
    package var isFull: Bool { usedSlots.count == keysMax }

    /// Notes a use; false if there is no room for another entry, and nothing was noted.
    package mutating func touch(_ digest: EntryDigest, at second: UInt32) -> Bool {
        let mask = slots.count - 1
        var position = Int(truncatingIfNeeded: digest.second) & mask
        while slots[position].count > 0 {
            if slots[position].digest == digest {
                slots[position].merge(Touch(digest: digest, count: 1, lastAccess: second))
                return true
            }
            position = (position + 1) & mask
        }
        guard !isFull else { return false }
        slots[position] = Touch(digest: digest, count: 1, lastAccess: second)
        usedSlots.append(UInt32(position))
        return true
    }

    /// Everything remembered, in the order of first touches; then nothing is.
    package mutating func take() -> [Touch] {
        let touches = usedSlots.map { slots[Int($0)] }
        for position in usedSlots { slots[Int(position)] = Self.free }
        usedSlots.removeAll(keepingCapacity: true)
        return touches
    }
}

/// That an entry was used, as one node tells it to another: the last use is so long ago.
package struct AgedTouch: Hashable, Sendable {
    package var digest: EntryDigest
    /// Uses since the last touch that was handed on; saturating.
    package var count: UInt32
    /// Since the last of them.
    package var ageSeconds: UInt32

    package init(digest: EntryDigest, count: UInt32, ageSeconds: UInt32) {
        self.digest = digest
        self.count = count
        self.ageSeconds = ageSeconds
    }

    /// `touch`, told at the second `now` of this node's clock; what lies ahead of it has no age.
    package init(_ touch: Touch, now: UInt32) {
        self.init(
            digest: touch.digest, count: touch.count,
            ageSeconds: now > touch.lastAccess ? now - touch.lastAccess : 0)
    }

    /// The touch on the clock of who is told at the second `now`; not before its beginning.
    package func touch(now: UInt32) -> Touch {
        Touch(digest: digest, count: count, lastAccess: now > ageSeconds ? now - ageSeconds : 0)
    }
}

/// The batch is "TOUCHES" in <doc:PeerProtocol>.
extension AgedTouch: BatchElement {
    package static let kind = PeerFrameKind.touches
    package static let countMax = PeerProtocol.touchesMax
    package static let limit = PeerLimit.touches
    package static let bytesCount = 24

    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(
            digest: bytes.digest(at: offset), count: bytes.little32(at: offset + 16),
            ageSeconds: bytes.little32(at: offset + 20))
    }

    package func put(into writer: inout StructureWriter) {
        writer.put(digest)
        writer.put(count)
        writer.put(ageSeconds)
    }
}
