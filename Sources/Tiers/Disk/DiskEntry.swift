/// The position of a record in the disk log.
package struct DiskLocation: Hashable, Sendable {
    /// The number of the segment.
    package let segment: UInt16
    /// The offset from the start of the segment in units of ``DiskEntry/unitBytes``; below 2^24.
    package let offsetUnits: UInt32

    /// Creates a location; `offsetUnits` must be at most ``DiskEntry/unitsMax``.
    package init(segment: UInt16, offsetUnits: UInt32) {
        precondition(offsetUnits <= DiskEntry.unitsMax, "a record at unit \(offsetUnits)")
        self.segment = segment
        self.offsetUnits = offsetUnits
    }
}

/// The facts of a record that are known without reading it: location, length and usage.
///
/// Packed into 16 bytes: segment 16 bits, offset 24, length 24; last access 32, access count 8,
/// flags 8, share 16.
package struct DiskEntry: Hashable, Sendable {
    /// The bits that the reclaim policy stores with an entry; the index does not interpret them.
    package struct Flags: OptionSet, Hashable, Sendable {
        /// The bits.
        package let rawValue: UInt8

        /// Creates flags from their bits.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The entry is in the main queue, not in the small queue for new entries.
        package static let inMain = Flags(rawValue: 1 << 0)
    }

    /// The unit of offsets and lengths in bytes: records begin and end at multiples of it.
    package static let unitBytes = DiskFormat.unitBytes
    /// The largest offset and length in units: one unit less than 1 GiB.
    package static let unitsMax: UInt32 = (1 << 24) - 1
    /// The value at which ``accessCount`` saturates.
    package static let accessCountMax = UInt8.max

    private let locationBits: UInt64
    private var accessBits: UInt64

    /// Creates an entry for a record of `lengthUnits` units, at most ``unitsMax``.
    ///
    /// - Parameters:
    ///   - location: where the record begins.
    ///   - lengthUnits: the length of the record.
    ///   - lastAccess: seconds on the owner's clock.
    ///   - accessCount: the number of accesses.
    ///   - flags: the bits of the policy.
    ///   - share: the ``DiskShareID`` of the record.
    package init(
        location: DiskLocation, lengthUnits: UInt32, lastAccess: UInt32, accessCount: UInt8 = 0,
        flags: Flags = [], share: UInt16 = DiskShareID.images
    ) {
        precondition(lengthUnits <= Self.unitsMax, "a record of \(lengthUnits) units")
        let start = UInt64(location.segment) << 24 | UInt64(location.offsetUnits)
        locationBits = start << 24 | UInt64(lengthUnits)
        accessBits =
            UInt64(lastAccess) << 32 | UInt64(accessCount) << 24 | UInt64(flags.rawValue) << 16
            | UInt64(share)
    }

    /// The position of the record.
    package var location: DiskLocation {
        DiskLocation(
            segment: UInt16(truncatingIfNeeded: locationBits >> 48),
            offsetUnits: UInt32(truncatingIfNeeded: locationBits >> 24) & Self.unitsMax)
    }

    /// The length of the record, including head and body, in units of ``unitBytes``.
    package var lengthUnits: UInt32 { UInt32(truncatingIfNeeded: locationBits) & Self.unitsMax }

    /// The time of the last access, in seconds on the owner's clock.
    ///
    /// The index only compares values; the greater is the later.
    package var lastAccess: UInt32 {
        get { UInt32(truncatingIfNeeded: accessBits >> 32) }
        set { accessBits = UInt64(newValue) << 32 | (accessBits & 0xFFFF_FFFF) }
    }

    /// The number of accesses, up to ``accessCountMax``.
    package var accessCount: UInt8 {
        get { UInt8(truncatingIfNeeded: accessBits >> 24) }
        set { accessBits = (accessBits & ~(0xFF << 24)) | UInt64(newValue) << 24 }
    }

    /// The bits that the policy stores with the entry.
    package var flags: Flags { Flags(rawValue: UInt8(truncatingIfNeeded: accessBits >> 16)) }

    /// The share of the disk that the record counts towards; see ``DiskShareID``.
    package var share: UInt16 { UInt16(truncatingIfNeeded: accessBits) }
}
