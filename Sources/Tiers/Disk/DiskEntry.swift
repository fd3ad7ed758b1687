/// Where a record begins in the disk log.
package struct DiskLocation: Hashable, Sendable {
    /// The number of the segment.
    package let segment: UInt16
    /// From the start of the segment, in units of ``DiskEntry/unitBytes``; below 2^24.
    package let offsetUnits: UInt32

    package init(segment: UInt16, offsetUnits: UInt32) {
        precondition(offsetUnits <= DiskEntry.unitsMax, "a record at unit \(offsetUnits)")
        self.segment = segment
        self.offsetUnits = offsetUnits
    }
}

/// What is known of a record without reading it: where it lies, how long it is, how it is used.
///
/// Packed into 16 bytes: segment 16 bits, offset 24, length 24; last access 32, access count 8,
/// flags 8, and share 16.
package struct DiskEntry: Hashable, Sendable {
    /// Bits that the policy keeps with an entry; the index hands them back as they were.
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The entry is in the main queue, not in that of the newcomers.
        package static let inMain = Flags(rawValue: 1 << 0)
    }

    /// The unit of offsets and lengths: records begin and end at multiples of it.
    package static let unitBytes = DiskFormat.unitBytes
    /// The largest offset and the longest record, in units: one unit less than 1 GiB.
    package static let unitsMax: UInt32 = (1 << 24) - 1
    /// What ``accessCount`` stops at.
    package static let accessCountMax = UInt8.max

    private let locationBits: UInt64
    private var accessBits: UInt64

    /// An entry for a record of `lengthUnits` units, at most ``unitsMax``.
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

    package var location: DiskLocation {
        DiskLocation(
            segment: UInt16(truncatingIfNeeded: locationBits >> 48),
            offsetUnits: UInt32(truncatingIfNeeded: locationBits >> 24) & Self.unitsMax)
    }

    /// The length of the record, head and body, in units of ``unitBytes``.
    package var lengthUnits: UInt32 { UInt32(truncatingIfNeeded: locationBits) & Self.unitsMax }

    /// When the entry was last asked for, in seconds on the owner's clock.
    ///
    /// To the index it is a number, of which the greater is the later.
    package var lastAccess: UInt32 {
        get { UInt32(truncatingIfNeeded: accessBits >> 32) }
        set { accessBits = UInt64(newValue) << 32 | (accessBits & 0xFFFF_FFFF) }
    }

    /// How often the entry was asked for, up to ``accessCountMax``.
    package var accessCount: UInt8 {
        get { UInt8(truncatingIfNeeded: accessBits >> 24) }
        set { accessBits = (accessBits & ~(0xFF << 24)) | UInt64(newValue) << 24 }
    }

    package var flags: Flags { Flags(rawValue: UInt8(truncatingIfNeeded: accessBits >> 16)) }

    /// Whose part of the disk it counts to; see ``DiskShareID``.
    package var share: UInt16 { UInt16(truncatingIfNeeded: accessBits) }
}
