package import Ground
import Tiers

/// Records that an event loop has read as a whole of late, and found good.
///
/// Bytes in the page cache are not looked at again for ``trust``. It is short because nobody can
/// tell whether the system has dropped them meanwhile and read them again from a disk that has lost
/// them. Of fixed size: where all places are taken that a record can have, the longest known goes.
package struct VerifiedRecordCache: Sendable {
    /// For how long a record is taken for what it was.
    package static let verificationLifetime = Interval.seconds(10)

    private struct CacheSlot {
        /// Of the segment's use: no two have the same one.
        var salt: UInt64 = 0
        var checkedAt = Instant.zero
        /// 0 for none: no record begins there.
        var offset: UInt32 = 0
        var metaBytes: UInt32 = 0
    }

    /// In groups; which one is a record's, its place on disk says.
    private var slots: [CacheSlot]

    private static let ways = 4
    private static let setBits = 11

    /// Knows none; without a disk tier it needs no places.
    package init(isEmpty: Bool = false) {
        let count = isEmpty ? 0 : Self.ways << Self.setBits
        slots = Array(repeating: CacheSlot(), count: count)
    }

    /// A record was read at `now`, all of it.
    package mutating func add(_ reading: DiskRecordHandle, now: Instant) {
        let (salt, offset) = (reading.generation.salt, reading.entry.location.offsetUnits)
        var chosen = Self.set(salt, offset).lowerBound
        for index in Self.set(salt, offset) {
            if slots[index].salt == salt, slots[index].offset == offset {
                chosen = index
                break
            }
            if slots[index].checkedAt < slots[chosen].checkedAt { chosen = index }
        }
        slots[chosen] = CacheSlot(
            salt: salt, checkedAt: now, offset: offset, metaBytes: UInt32(reading.metaBytes))
    }

    /// From the record's beginning to its body; nil if it was not read of late.
    func metaBytes(of entry: DiskEntry, _ use: SegmentSlot.Generation, now: Instant) -> Int? {
        let offset = entry.location.offsetUnits
        for index in Self.set(use.salt, offset)
        where slots[index].salt == use.salt && slots[index].offset == offset {
            return now < slots[index].checkedAt + Self.verificationLifetime
                ? Int(slots[index].metaBytes) : nil
        }
        return nil
    }

    private static func set(_ salt: UInt64, _ offset: UInt32) -> Range<Int> {
        let mixed = (salt ^ UInt64(offset)) &* 0x9E37_79B9_7F4A_7C15
        let start = Int(mixed >> (64 - UInt64(setBits))) * ways
        return start..<start + ways
    }
}
