/// How a node's disk limit is divided: segments of one size, and what the file system takes beside.
package struct DiskPlan: Hashable, Sendable {
    /// A multiple of ``segmentUnitBytes``.
    package let segmentBytes: Int
    /// The most segments there may be, the free one included.
    package let segments: Int

    /// No log can be kept within the limit.
    package struct TooSmall: Error, Hashable {
        /// The least limit that can be kept, in bytes.
        package let neededBytes: UInt64
    }

    /// The least limit there can be.
    package static let limitBytesMin =
        fixedBytes
        + UInt64(SegmentAllocator.Settings.segmentsMin)
        * (segmentBytesMin + UInt64(fileOverheadBytes))

    /// Segments are whole multiples of it.
    package static let segmentUnitBytes: UInt64 = 64 << 10
    /// No segment is smaller.
    package static let segmentBytesMin: UInt64 = 1 << 20
    /// What a kill costs at the next start is a scan of two open segments.
    private static let segmentBytesUsual: UInt64 = 128 << 20
    /// Offsets are 24 bits of units.
    private static let segmentBytesMax: UInt64 = 1 << 30
    private static let segmentsMax = 65_000
    /// Segments below which none is made larger for the sake of large objects.
    private static let segmentsWanted: UInt64 = 22
    /// What a record and its segment have beside the body.
    private static let headRoomBytes: UInt64 = 128 << 10
    /// Blocks that a file system adds to a file's own, for where its parts lie.
    static let fileOverheadBytes = 8 << 10
    /// The directory, the lock, the identity and its successor.
    private static let fixedBytes: UInt64 = 64 << 10

    /// A plan for `limitBytes`, of a limit that has `otherBytes` more for other things; the largest
    /// body that may be stored has `objectBytesMax`.
    ///
    /// Segments keep their `formerSegmentBytes` as long as that makes sense, because with another
    /// size everything stored is lost.
    package init(
        limitBytes: UInt64, otherBytes: UInt64 = 0, objectBytesMax: UInt64,
        formerSegmentBytes: UInt64?
    ) throws(TooSmall) {
        guard limitBytes >= Self.limitBytesMin else {
            throw TooSmall(neededBytes: Self.limitBytesMin)
        }
        let room = limitBytes - Self.fixedBytes
        let bytes =
            Self.kept(formerSegmentBytes, room: room)
            ?? Self.segmentBytes(
                limitBytes: limitBytes + otherBytes,
                recordBytesMax: min(objectBytesMax, Self.segmentBytesMax) + Self.headRoomBytes)
        segmentBytes = bytes
        segments = min(Self.segmentsMax, Self.count(room, bytes))
    }

    /// The size of segments, a multiple of `unit`: a 64th of the limit, but `least` to 128 MiB.
    ///
    /// Or as large as the longest record, as long as that leaves ``segmentsWanted``, because what
    /// is larger than a segment is not kept. With fewer the free one and the two that are open
    /// would be too much of the limit.
    package static func segmentBytes(
        limitBytes: UInt64, recordBytesMax: UInt64, least: UInt64 = segmentBytesMin,
        unit: UInt64 = segmentUnitBytes
    ) -> Int {
        let units = { (bytes: UInt64) in (bytes + unit - 1) / unit }
        let common = units(min(limitBytes / 64, segmentBytesUsual))
        let large = min(
            units(min(recordBytesMax, segmentBytesMax)), limitBytes / (segmentsWanted * unit))
        let nameable = units(limitBytes / UInt64(segmentsMax))
        return Int(min(max(least / unit, common, large, nameable) * unit, segmentBytesMax))
    }

    private static func kept(_ former: UInt64?, room: UInt64) -> Int? {
        guard let former, former % segmentUnitBytes == 0, former >= segmentBytesMin,
            former <= segmentBytesMax
        else { return nil }
        let count = count(room, Int(former))
        return count >= 2 * SegmentAllocator.Settings.segmentsMin && count <= segmentsMax
            ? Int(former) : nil
    }

    private static func count(_ room: UInt64, _ segmentBytes: Int) -> Int {
        Int(room / UInt64(segmentBytes + fileOverheadBytes))
    }
}
