/// How a node's disk limit is divided: segments of one size, and what the file system takes beside.
package struct DiskPlan: Hashable, Sendable {
    /// A power of two.
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
        + UInt64(SegmentLedger.Settings.segmentsMin * (segmentBytesMin + fileOverheadBytes))

    static let segmentBytesMin = 1 << 20
    /// Most images are smaller.
    private static let segmentBytesCommon = 8 << 20
    /// What a kill costs at the next start is a scan of two open segments.
    static let segmentBytesUsual = 128 << 20
    /// Offsets are 24 bits of units.
    static let segmentBytesMax = 1 << 30
    private static let segmentsMax = 65_000
    /// Blocks that a file system adds to a file's own, for where its parts lie.
    static let fileOverheadBytes = 8 << 10
    /// The directory, the lock, the identity and its successor.
    private static let fixedBytes: UInt64 = 64 << 10

    /// A plan for `limitBytes`, of a limit that has `otherBytes` more for other things.
    ///
    /// Segments keep their `formerSegmentBytes` as long as that makes sense, because with another
    /// size everything stored is lost.
    package init(
        limitBytes: UInt64, otherBytes: UInt64 = 0, formerSegmentBytes: UInt64?
    ) throws(TooSmall) {
        guard limitBytes >= Self.limitBytesMin else {
            throw TooSmall(neededBytes: Self.limitBytesMin)
        }
        let room = limitBytes - Self.fixedBytes
        let bytes =
            Self.kept(formerSegmentBytes, room: room) ?? Self.chosen(limitBytes + otherBytes)
        segmentBytes = bytes
        segments = min(Self.segmentsMax, Self.count(room, bytes))
    }

    /// Between a 64th and a 128th of the limit: with fewer, larger segments the free one and the
    /// two that are open would be too much of it.
    ///
    /// Below 512 MiB up to a 16th, because what is larger than a segment is not kept, and images of
    /// some megabytes are common.
    private static func chosen(_ limitBytes: UInt64) -> Int {
        var bytes = segmentBytesMin
        while bytes < segmentBytesCommon, UInt64(bytes) * 32 <= limitBytes { bytes *= 2 }
        while bytes < segmentBytesUsual, UInt64(bytes) * 128 <= limitBytes { bytes *= 2 }
        while bytes < segmentBytesMax, UInt64(bytes) * UInt64(segmentsMax) < limitBytes {
            bytes *= 2
        }
        return bytes
    }

    private static func kept(_ former: UInt64?, room: UInt64) -> Int? {
        guard let former, former & (former &- 1) == 0, former >= UInt64(segmentBytesMin),
            former <= UInt64(segmentBytesMax)
        else { return nil }
        let count = count(room, Int(former))
        return count >= 2 * SegmentLedger.Settings.segmentsMin && count <= segmentsMax
            ? Int(former) : nil
    }

    private static func count(_ room: UInt64, _ segmentBytes: Int) -> Int {
        Int(room / UInt64(segmentBytes + fileOverheadBytes))
    }
}
