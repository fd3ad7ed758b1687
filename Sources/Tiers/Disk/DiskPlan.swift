/// The division of a node's disk limit into segments of one size and the file system's overhead.
package struct DiskPlan: Hashable, Sendable {
    /// The size of a segment in bytes, a multiple of ``segmentUnitBytes``.
    package let segmentBytes: Int
    /// The maximum number of segments, including the free one.
    package let segments: Int

    /// The error for a limit within which no log can be kept.
    package struct TooSmall: Error, Hashable {
        /// The smallest usable limit in bytes.
        package let neededBytes: UInt64
    }

    /// The smallest usable limit in bytes.
    package static let limitBytesMin =
        fixedBytes
        + UInt64(SegmentAllocator.Settings.segmentsMin)
        * (segmentBytesMin + UInt64(fileOverheadBytes))

    /// The unit of segment sizes in bytes.
    package static let segmentUnitBytes: UInt64 = 64 << 10
    /// The smallest segment size in bytes.
    package static let segmentBytesMin: UInt64 = 1 << 20
    /// The largest segment size unless long records or the number of segments require a larger one.
    ///
    /// The start after a crash scans two open segments, so they must not take long to read.
    private static let segmentBytesUsual: UInt64 = 128 << 20
    /// The largest segment size: offsets have 24 bits, in units of 64 bytes.
    private static let segmentBytesMax: UInt64 = 1 << 30
    /// The maximum number of segments: their numbers have 16 bits.
    private static let segmentsMax = 65_000
    /// The number of segments that must remain when they are enlarged for large objects.
    private static let segmentsWanted: UInt64 = 22
    /// The bytes allowed for all that a record and its segment hold beside the body.
    private static let headRoomBytes: UInt64 = 128 << 10
    /// The blocks that a file system allocates per file for its own metadata.
    static let fileOverheadBytes = 8 << 10
    /// The bytes of the directory, the lock, the identity and the copy that replaces it.
    private static let fixedBytes: UInt64 = 64 << 10

    /// Divides a limit into segments.
    ///
    /// Segments keep their former size if it is valid and gives 8 to 65,000 segments, because
    /// everything stored is lost with another size.
    ///
    /// - Parameters:
    ///   - limitBytes: the limit of the log.
    ///   - otherBytes: the part of the node's limit reserved for other data, added to compute
    ///     segment sizes.
    ///   - objectBytesMax: the largest body that may be stored.
    ///   - formerSegmentBytes: the segment size of the existing log; `nil` if there is none.
    /// - Throws: ``TooSmall`` if the limit is below ``limitBytesMin``.
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

    /// Returns the size of segments: a 64th of the limit, at least `least` and at most 128 MiB.
    ///
    /// Segments are made larger for the longest record, as long as ``segmentsWanted`` remain,
    /// because a record longer than a segment is not kept. With fewer segments, the free one and
    /// the two open ones would take too much of the limit. They are also larger if there would
    /// otherwise be more than 65,000 of them.
    ///
    /// - Parameters:
    ///   - limitBytes: the node's limit.
    ///   - recordBytesMax: the longest record that may be stored.
    ///   - least: the smallest segment size.
    ///   - unit: the size is a multiple of it.
    /// - Returns: the size of a segment in bytes, at most 1 GiB.
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

    /// Returns the former segment size if it is kept, otherwise `nil`.
    private static func kept(_ former: UInt64?, room: UInt64) -> Int? {
        guard let former, former % segmentUnitBytes == 0, former >= segmentBytesMin,
            former <= segmentBytesMax
        else { return nil }
        let count = count(room, Int(former))
        return count >= 2 * SegmentAllocator.Settings.segmentsMin && count <= segmentsMax
            ? Int(former) : nil
    }

    /// Returns the number of segments that fit in `room`, with the file system's overhead for each.
    private static func count(_ room: UInt64, _ segmentBytes: Int) -> Int {
        Int(room / UInt64(segmentBytes + fileOverheadBytes))
    }
}
