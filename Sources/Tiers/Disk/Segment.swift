package import Ground

/// The state of one segment in ``SegmentAllocator``.
package struct Segment: Hashable, Sendable {
    /// The stages in the life of a segment, in order.
    package enum State: UInt8, Sendable {
        /// Holds nothing; the file may be truncated. Next: open.
        case free
        /// Records are appended. Next: closed.
        case open
        /// Holds records; nothing is appended. Next: reclaiming.
        case closed
        /// The records are being re-inserted or dropped. Next: free.
        case reclaiming
    }

    /// The current state.
    package internal(set) var state = State.free
    /// The queue that the segment belongs to; meaningless while it is free.
    package internal(set) var queue = SegmentQueue.small
    /// The sequence number, greater than that of any segment opened before; 0 while free.
    package internal(set) var sequence: UInt64 = 0
    /// The bytes taken by records and their footer entries; at most
    /// ``SegmentAllocator/Settings/capacityBytes``.
    package internal(set) var usedBytes = 0
    /// The number of records appended, live or not.
    package internal(set) var recordCount = 0
    /// The part of ``usedBytes`` that belongs to entries not known to be removed.
    package internal(set) var liveBytes = 0
    /// The least invalidation version of its records; `nil` if it has none.
    package var leastVersion: InvalidationVersion?

    /// Creates a free segment.
    package init() {}

    /// Creates a closed segment as recovery finds it.
    ///
    /// `usedBytes` and `liveBytes` include footer entries.
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

    /// Sets ``liveBytes`` of a recovered segment; a value above ``usedBytes`` is lowered to it.
    package mutating func setLiveBytes(_ bytes: Int) {
        liveBytes = min(bytes, usedBytes)
    }

    /// Counts a new record of `bytes`, including its footer entry, with this invalidation version.
    mutating func append(_ bytes: Int, _ version: InvalidationVersion) {
        usedBytes += bytes
        liveBytes += bytes
        recordCount += 1
        leastVersion = leastVersion.map { min($0, version) } ?? version
    }
}

/// The number of a segment of the disk log: 0 up to the maximum number of segments, exclusive.
package struct SegmentID: Hashable, Sendable {
    /// The number.
    package var index: UInt32

    /// Creates an id from a number.
    package init(index: UInt32) {
        self.index = index
    }
}

/// The two queues of the log's segments, each first in, first out.
///
/// The raw values are stored in segment headers.
package enum SegmentQueue: UInt8, CaseIterable, Sendable {
    /// New entries; an eighth of the log.
    case small = 0
    /// Entries requested again while in the small queue or soon after, and all re-inserted records.
    case main = 1
}

/// The header of a segment; see "Segment header" in <doc:DiskFormat>.
package struct SegmentHeader: Hashable, Sendable {
    /// The node that owns the segment.
    package var nodeID: NodeID
    /// The size of the file in bytes.
    package var segmentBytes: UInt64
    /// The sequence number, greater than that of every segment opened before.
    package var sequence: UInt64
    /// A random number drawn each time the file is reused; part of all checksum seeds.
    package var salt: UInt64
    /// The node's invalidation version when the segment was opened.
    package var openedAtVersion: InvalidationVersion
    /// The wall time when the segment was opened, in milliseconds since 1970.
    package var openedWall: Int64
    /// The queue of its records: 0 small, 1 main.
    package var queue: UInt8

    /// Creates a header from its parts.
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

    /// The encoded header, ``DiskFormat/headerBytes`` long.
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

    /// Decodes a header and checks that it belongs to this node.
    ///
    /// - Throws: the reason if the header is invalid, or of another node or segment size.
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
