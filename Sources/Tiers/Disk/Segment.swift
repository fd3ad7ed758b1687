package import Ground

/// What ``SegmentAllocator`` knows of one segment.
package struct Segment: Hashable, Sendable {
    package enum State: UInt8, Sendable {
        /// Holds nothing, and its file may be cut to nothing. Next: open.
        case free
        /// Takes records. Next: closed.
        case open
        /// Holds records, takes no more. Next: reclaiming.
        case closed
        /// Its records are being re-inserted or dropped. Next: free.
        case reclaiming
    }

    package internal(set) var state = State.free
    /// Which queue it belongs to; without meaning while free.
    package internal(set) var queue = SegmentQueue.small
    /// Greater than that of any segment opened before; 0 while free.
    package internal(set) var sequence: UInt64 = 0
    /// Bytes taken by records and their footer entries; at most ``SegmentAllocator/Settings/room``.
    package internal(set) var usedBytes = 0
    /// Records appended, alive or not.
    package internal(set) var recordCount = 0
    /// Those of ``usedBytes`` whose entries are not known to be gone.
    package internal(set) var liveBytes = 0
    /// The least stamp of its records; nil if it has none.
    package var leastVersion: InvalidationVersion?

    package init() {}

    /// A closed segment as recovery finds it.
    ///
    /// `usedBytes` and `liveBytes` count records with their footer entries.
    package init(
        closedIn queue: SegmentQueue, sequence: UInt64, usedBytes: Int, recordCount: Int,
        liveBytes: Int, leastVersion: InvalidationVersion?
    ) {
        state = .closed
        self.queue = queue
        self.sequence = sequence
        self.usedBytes = usedBytes
        self.recordCount = recordCount
        self.liveBytes = liveBytes
        self.leastVersion = leastVersion
    }

    /// Of a recovered segment, so many bytes are an entry's; never more than are used.
    package mutating func setLiveBytes(_ bytes: Int) {
        liveBytes = min(bytes, usedBytes)
    }

    mutating func append(_ bytes: Int, _ version: InvalidationVersion) {
        usedBytes += bytes
        liveBytes += bytes
        recordCount += 1
        leastVersion = leastVersion.map { min($0, version) } ?? version
    }
}

/// Names a segment of the disk's log: 0 up to the number of segments that the cap allows.
package struct SegmentID: Hashable, Sendable {
    package var index: UInt32

    package init(index: UInt32) {
        self.index = index
    }
}

/// The two queues that the log's segments belong to, each first in, first out.
///
/// The raw values are for segment headers.
package enum SegmentQueue: UInt8, CaseIterable, Sendable {
    /// Newcomers, a tenth of the log.
    case small = 0
    /// What was asked for again while it was in the small queue or soon after, and all that is
    /// re-inserted.
    case main = 1
}

/// The first bytes of a segment; see "Segment header" in <doc:DiskFormat>.
package struct SegmentHeader: Hashable, Sendable {
    package var nodeID: NodeID
    /// Size of the file in bytes.
    package var segmentBytes: UInt64
    /// Greater than that of every segment opened before.
    package var sequence: UInt64
    /// Drawn anew each time the file is used.
    package var salt: UInt64
    /// The node's stamp when the segment was opened.
    package var openedAtVersion: InvalidationVersion
    /// Wall time of the opening, in milliseconds since 1970.
    package var openedWall: Int64
    /// Which queue its records belong to: 0 small, 1 main.
    package var queue: UInt8

    package init(
        nodeID: NodeID, segmentBytes: UInt64, sequence: UInt64, salt: UInt64,
        openedAtVersion: InvalidationVersion, openedWall: Int64, queue: UInt8
    ) {
        self.nodeID = nodeID
        self.segmentBytes = segmentBytes
        self.sequence = sequence
        self.salt = salt
        self.openedAtVersion = openedAtVersion
        self.openedWall = openedWall
        self.queue = queue
    }

    /// The header's bytes, ``DiskFormat/headerBytes`` of them.
    package var bytes: [UInt8] {
        var bytes = Array("NUTHSEGM".utf8)
        bytes.appendFormatVersion(UInt32(DiskFormat.headerBytes))
        bytes.appendLittle(UInt64(0))
        bytes.append(nodeID)
        bytes.appendLittle(segmentBytes)
        bytes.appendLittle(sequence)
        bytes.appendLittle(salt)
        bytes.append(openedAtVersion)
        bytes.appendLittle(UInt64(bitPattern: openedWall))
        bytes.append(queue)
        bytes.pad(to: DiskFormat.headerBytes)
        bytes.writeChecksum(at: 16, from: 24, seed: 0)
        return bytes
    }

    /// What a segment that begins with these bytes says of itself.
    ///
    /// - Throws: what is wrong with it, or that it is not one of this node's.
    package init(
        _ bytes: Span<UInt8>, nodeID wanted: NodeID, segmentBytes size: UInt64
    ) throws(DiskFormatError) {
        try bytes.checkMagic("NUTHSEGM", count: DiskFormat.headerBytes)
        guard Int(bytes.little32(at: 12)) == DiskFormat.headerBytes else { throw .badMagic }
        guard
            bytes.little64(at: 16) == bytes.checksum(24..<DiskFormat.headerBytes, seed: 0)
        else { throw .checksumMismatch }
        nodeID = NodeID(bytes, at: 24)
        guard nodeID == wanted else { throw .nodeMismatch }
        segmentBytes = bytes.little64(at: 40)
        guard segmentBytes == size else { throw .segmentSizeMismatch(segmentBytes) }
        sequence = try bytes.count(at: 48)
        salt = bytes.little64(at: 56)
        openedAtVersion = bytes.invalidationVersion(at: 64)
        openedWall = Int64(bitPattern: bytes.little64(at: 80))
        queue = bytes[88]
    }
}
