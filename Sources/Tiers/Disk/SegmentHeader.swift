package import Ground

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
