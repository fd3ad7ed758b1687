package import Ground

/// The identity of the node that owns a directory; see "Identity" in <doc:DiskFormat>.
package struct NodeIdentity: Hashable, Sendable {
    /// The id of the node, drawn once for the lifetime of the directory.
    package var nodeID: NodeID
    /// The number of this start; part of the invalidation version of entries and marks.
    package var bootEpoch: UInt64
    /// The size of every segment in bytes.
    package var segmentBytes: UInt64
    /// The latest wall time that the node has seen, in milliseconds since 1970.
    package var newestWall: Int64

    /// Creates an identity from its parts.
    package init(
        nodeID: NodeID, bootEpoch: UInt64, segmentBytes: UInt64, newestWall: Int64
    ) {
        self.nodeID = nodeID
        self.bootEpoch = bootEpoch
        self.segmentBytes = segmentBytes
        self.newestWall = newestWall
    }

    /// The size of the file in bytes.
    package static let bytesCount = 128

    /// The encoded file.
    package var bytes: [UInt8] {
        var bytes = Array("NUTHNODE".utf8)
        bytes.appendFormatVersion()
        bytes.appendLittle(UInt64(0))
        bytes.append(nodeID)
        bytes.appendLittle(bootEpoch)
        bytes.appendLittle(segmentBytes)
        bytes.appendLittle(UInt64(bitPattern: newestWall))
        bytes.pad(to: Self.bytesCount)
        bytes.writeChecksum(at: 16, from: 24, seed: 0)
        return bytes
    }

    /// Decodes the file.
    ///
    /// - Throws: the reason if the file is invalid.
    package init(_ bytes: Span<UInt8>) throws(DiskFormatError) {
        try bytes.checkMagic("NUTHNODE", count: Self.bytesCount)
        guard bytes.little64(at: 16) == bytes.checksum(24..<Self.bytesCount, seed: 0) else {
            throw .checksumMismatch
        }
        nodeID = NodeID(bytes, at: 24)
        bootEpoch = try bytes.count(at: 40)
        segmentBytes = bytes.little64(at: 48)
        newestWall = Int64(bitPattern: bytes.little64(at: 56))
    }
}

extension [UInt8] {
    /// Appends the versions of the format, and `behind` in four bytes, after a file's magic bytes.
    mutating func appendFormatVersion(_ behind: UInt32 = 0) {
        appendLittle(DiskFormat.major)
        appendLittle(DiskFormat.minor)
        appendLittle(behind)
    }

    mutating func append(_ version: InvalidationVersion) {
        appendLittle(version.epoch)
        appendLittle(version.count)
    }

    /// Overwrites the eight bytes at `offset` with the checksum of all bytes from `start` on.
    mutating func writeChecksum(at offset: Int, from start: Int, seed: UInt64) {
        let sum = span.checksum(start..<count, seed: seed)
        setLittle(sum, at: offset)
    }
}

extension Span<UInt8> {
    func checksum(_ range: Range<Int>, seed: UInt64) -> UInt64 {
        XXH64.hash(extracting(range), seed: seed)
    }

    /// Returns the counter stored at `offset`; throws if it exceeds ``DiskFormat/countMax``.
    func count(at offset: Int) throws(DiskFormatError) -> UInt64 {
        let count = little64(at: offset)
        guard count <= DiskFormat.countMax else { throw .counterOutOfRange }
        return count
    }

    func invalidationVersion(at offset: Int) -> InvalidationVersion {
        InvalidationVersion(epoch: little64(at: offset), count: little64(at: offset + 8))
    }

    /// Throws unless the file has at least `count` bytes and begins with `magic` and the version
    /// `major`.
    func checkMagic(
        _ magic: String, count wanted: Int, major: UInt16 = DiskFormat.major
    ) throws(DiskFormatError) {
        guard count >= 10 else { throw .truncated }
        guard matches(magic, at: 0..<8) else { throw .badMagic }
        let found = little16(at: 8)
        guard found == major else { throw .unsupportedVersion(major: found) }
        guard count >= wanted else { throw .truncated }
    }
}
