package import Ground

/// A record of uses of an entry: how many, and when the last one was.
package struct Touch: Hashable, Sendable {
    /// The digest of the entry.
    package var digest: EntryDigest
    /// The number of uses since the last forwarded touch; saturating.
    package var count: UInt32
    /// The time of the last use, in seconds on the local node's clock.
    package var lastAccess: UInt32

    /// Creates a touch from its parts.
    package init(digest: EntryDigest, count: UInt32, lastAccess: UInt32) {
        self.digest = digest
        self.count = count
        self.lastAccess = lastAccess
    }

    /// Merges another touch of the same entry: counts are added, the later access is kept.
    package mutating func merge(_ other: Touch) {
        let (sum, isOver) = count.addingReportingOverflow(other.count)
        count = isOver ? .max : sum
        lastAccess = max(lastAccess, other.lastAccess)
    }
}

/// The touches of one event loop's hits until they are forwarded (Design, "Touches").
///
/// A touch reads one or two slots and allocates nothing. The table uses open addressing with linear
/// probing and is at most half full. An attacker who chooses colliding digests makes a touch probe
/// at most ``keysMax`` slots.
package struct TouchTable: Sendable {
    private var slots: [Touch]
    /// The positions of used slots, in the order of first touches.
    private var usedSlots: [UInt32] = []
    /// The maximum number of entries in the table.
    package let keysMax: Int

    private static let free = Touch(
        digest: EntryDigest(first: 0, second: 0), count: 0, lastAccess: 0)

    /// Creates an empty table for `keysMax` entries.
    package init(keysMax: Int) {
        precondition(keysMax > 0, "a table for \(keysMax) entries")
        self.keysMax = keysMax
        var size = 2
        while size < keysMax * 2 { size *= 2 }
        slots = Array(repeating: Self.free, count: size)
        usedSlots.reserveCapacity(keysMax)
    }

    /// The number of entries in the table.
    package var count: Int { usedSlots.count }
    /// True if ``take()`` must be called before another entry can be recorded.
    package var isFull: Bool { usedSlots.count == keysMax }

    /// Records one use.
    ///
    /// - Parameters:
    ///   - digest: The digest of the entry.
    ///   - second: The time of the use, in seconds on the local node's clock.
    /// - Returns: False if the table is full and the entry is not in it; then nothing is recorded.
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

    /// Removes and returns all touches, in the order of first touches.
    package mutating func take() -> [Touch] {
        let touches = usedSlots.map { slots[Int($0)] }
        for position in usedSlots { slots[Int(position)] = Self.free }
        usedSlots.removeAll(keepingCapacity: true)
        return touches
    }
}

/// A touch as sent between nodes: the last use is given as an age, independent of clocks.
package struct AgedTouch: Hashable, Sendable {
    /// The digest of the entry.
    package var digest: EntryDigest
    /// The number of uses since the last forwarded touch; saturating.
    package var count: UInt32
    /// The seconds since the last use.
    package var ageSeconds: UInt32

    /// Creates an aged touch from its parts.
    package init(digest: EntryDigest, count: UInt32, ageSeconds: UInt32) {
        self.digest = digest
        self.count = count
        self.ageSeconds = ageSeconds
    }

    /// Converts `touch` at the second `now` of the local clock; a use in the future has age 0.
    package init(_ touch: Touch, now: UInt32) {
        self.init(
            digest: touch.digest, count: touch.count,
            ageSeconds: now > touch.lastAccess ? now - touch.lastAccess : 0)
    }

    /// Converts to a touch on the receiver's clock, which reads `now` seconds; never below 0.
    package func touch(now: UInt32) -> Touch {
        Touch(digest: digest, count: count, lastAccess: now > ageSeconds ? now - ageSeconds : 0)
    }
}

/// The batch encoding: "TOUCHES" in <doc:PeerProtocol>.
extension AgedTouch: BatchElement {
    /// The frame kind of a batch: TOUCHES.
    package static let kind = PeerFrameKind.touches
    /// The maximum number of touches in a batch.
    package static let countMax = PeerProtocol.touchesMax
    /// The limit that a batch counts against.
    package static let limit = PeerLimit.touches
    /// The encoded size of one touch in bytes.
    package static let bytesCount = 24

    /// Decodes the touch at byte `offset` of `bytes`.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(
            digest: bytes.digest(at: offset), count: bytes.little32(at: offset + 16),
            ageSeconds: bytes.little32(at: offset + 20))
    }

    /// Appends the encoded touch to `writer`.
    package func put(into writer: inout StructureWriter) {
        writer.put(digest)
        writer.put(count)
        writer.put(ageSeconds)
    }
}
