package import Ground

/// The list of records at the end of a closed segment; see "Footer" in <doc:DiskFormat>.
package struct SegmentFooter: Hashable, Sendable {
    /// The facts of one record.
    package struct Entry: Hashable, Sendable {
        /// The digest of the entry.
        package var digest: EntryDigest
        /// The offset of the record in the segment, in units of ``DiskFormat/unitBytes``.
        package var offsetUnits: UInt32
        /// The length of the record, including its body, in units of ``DiskFormat/unitBytes``.
        package var units: UInt32
        /// The node's invalidation version when the request for the entry began.
        package var invalidationVersion: InvalidationVersion
        /// The last access in seconds since 1970.
        package var lastAccess: UInt32
        /// The number of accesses.
        package var accessCount: UInt16
        /// The share of the disk; see ``DiskShareID``.
        package var share: UInt16

        /// Creates an entry from its parts.
        package init(
            digest: EntryDigest, offsetUnits: UInt32, units: UInt32,
            invalidationVersion: InvalidationVersion,
            lastAccess: UInt32, accessCount: UInt16, share: UInt16 = DiskShareID.images
        ) {
            self.digest = digest
            self.offsetUnits = offsetUnits
            self.units = units
            self.invalidationVersion = invalidationVersion
            self.lastAccess = lastAccess
            self.accessCount = accessCount
            self.share = share
        }

        /// The length of an encoded entry in bytes.
        package static let bytesCount = 48
    }

    /// The records in the order in which they were written.
    package var entries: [Entry]
    /// The offset in bytes at which the records end.
    package var recordsEnd: UInt64
    /// The sequence number of the segment's header.
    package var sequence: UInt64
    /// The least invalidation version of records no longer listed, if it is below that of all
    /// listed ones; otherwise `nil`.
    ///
    /// A scan would find these records again, so marks that cover them are still needed.
    package var leastOmittedVersion: InvalidationVersion?
    /// The fingerprints of all names of records in the segment, including records without an entry,
    /// in ascending order.
    ///
    /// `nil` if unknown, as in footers of earlier versions.
    package var fingerprints: [UInt32]?

    /// Creates a footer from its parts.
    package init(
        entries: [Entry], recordsEnd: UInt64, sequence: UInt64,
        leastOmittedVersion: InvalidationVersion? = nil,
        fingerprints: [UInt32]? = nil
    ) {
        self.entries = entries
        self.recordsEnd = recordsEnd
        self.sequence = sequence
        self.leastOmittedVersion = leastOmittedVersion
        self.fingerprints = fingerprints
    }

    /// The least invalidation version of the segment's records; ``InvalidationVersion/last`` if it
    /// has none.
    package var leastVersion: InvalidationVersion {
        entries.map(\.invalidationVersion).reduce(leastOmittedVersion ?? .last, min)
    }

    /// The length of the trailer in bytes.
    package static let trailerBytes = 64

    /// The magic of a footer with fingerprints, and of one without.
    private static let (magic, formerMagic) = ("NUTHFOO2", "NUTHFOOT")

    /// The number of names per record that the reserved space allows.
    ///
    /// A segment with a record of more names has a footer without fingerprints.
    package static let fingerprintsMax = 8
    /// The maximum number of bytes per record in the footer.
    package static let bytesPerRecord = Entry.bytesCount + 4 * fingerprintsMax

    /// Returns the length of a footer with `count` entries and this number of fingerprints, in
    /// bytes.
    package static func bytesCount(of count: Int, fingerprints: Int = 0) -> Int {
        count * Entry.bytesCount + (fingerprints + 1) / 2 * 8 + trailerBytes
    }

    private var bytesCount: Int {
        Self.bytesCount(of: entries.count, fingerprints: fingerprints?.count ?? 0)
    }

    /// Returns the offset of the footer in a segment of `segmentBytes`.
    package func start(segmentBytes: UInt64) -> UInt64 { segmentBytes - UInt64(bytesCount) }

    /// Returns the encoded footer for a segment with this `salt` and length.
    package func bytes(salt: UInt64, segmentBytes: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        let size = bytesCount
        bytes.reserveCapacity(size)
        for entry in entries {
            bytes.appendLittle(entry.digest.first)
            bytes.appendLittle(entry.digest.second)
            bytes.appendLittle(entry.offsetUnits)
            bytes.appendLittle(entry.units)
            bytes.append(entry.invalidationVersion)
            bytes.appendLittle(entry.lastAccess)
            bytes.appendLittle(entry.accessCount)
            bytes.appendLittle(entry.share)
        }
        for name in fingerprints ?? [] { bytes.appendLittle(name) }
        bytes.pad(to: size - Self.trailerBytes)
        let trailer = bytes.count
        bytes += Array((fingerprints == nil ? Self.formerMagic : Self.magic).utf8)
        bytes.appendLittle(UInt64(0))
        bytes.appendLittle(UInt32(entries.count))
        bytes.appendLittle(UInt32(fingerprints?.count ?? Entry.bytesCount))
        bytes.appendLittle(start(segmentBytes: segmentBytes))
        bytes.append(leastVersion)
        bytes.appendLittle(recordsEnd)
        bytes.appendLittle(sequence)
        let sum = Self.checksum(bytes.span, trailer: trailer, salt: salt)
        bytes.setLittle(sum, at: trailer + 8)
        return bytes
    }

    /// Reads the length of a footer from its trailer, without verifying the checksum.
    ///
    /// - Returns: the number of bytes at the end of the segment.
    /// - Throws: the reason if the trailer is invalid.
    package static func bytesCount(
        trailer: Span<UInt8>, segmentBytes: UInt64
    ) throws(DiskFormatError) -> Int {
        guard trailer.count >= trailerBytes else { throw .truncated }
        let hasNames = trailer.matches(magic, at: 0..<8)
        guard hasNames || trailer.matches(formerMagic, at: 0..<8) else { throw .badMagic }
        let names = hasNames ? Int(trailer.little32(at: 20)) : 0
        let size = UInt64(bytesCount(of: Int(trailer.little32(at: 16)), fingerprints: names))
        guard hasNames || Int(trailer.little32(at: 20)) == Entry.bytesCount,
            size + UInt64(DiskFormat.headerBytes) <= segmentBytes,
            trailer.little64(at: 24) == segmentBytes - size
        else { throw .truncated }
        return Int(size)
    }

    /// Decodes a footer.
    ///
    /// - Parameters:
    ///   - bytes: the ``bytesCount(trailer:segmentBytes:)`` bytes at the end of the segment.
    ///   - header: the header of the segment.
    /// - Throws: the reason if the footer is invalid.
    package init(_ bytes: Span<UInt8>, header: SegmentHeader) throws(DiskFormatError) {
        guard bytes.count >= Self.trailerBytes else { throw .truncated }
        let trailer = bytes.count - Self.trailerBytes
        guard
            bytes.little64(at: trailer + 8)
                == Self.checksum(bytes, trailer: trailer, salt: header.salt)
        else { throw .checksumMismatch }
        let size = try Self.bytesCount(
            trailer: bytes.extracting(trailer..<bytes.count), segmentBytes: header.segmentBytes)
        sequence = bytes.little64(at: trailer + 56)
        guard size == bytes.count, sequence == header.sequence else { throw .badMagic }
        recordsEnd = bytes.little64(at: trailer + 48)
        entries = []
        let entriesEnd = Int(bytes.little32(at: trailer + 16)) * Entry.bytesCount
        entries.reserveCapacity(entriesEnd / Entry.bytesCount)
        for start in stride(from: 0, to: entriesEnd, by: Entry.bytesCount) {
            entries.append(Entry(bytes, at: start))
        }
        if bytes.matches(Self.magic, at: trailer..<trailer + 8) {
            let count = Int(bytes.little32(at: trailer + 20))
            fingerprints = (0..<count).map { bytes.little32(at: entriesEnd + 4 * $0) }
        }
        let least = bytes.invalidationVersion(at: trailer + 32)
        leastOmittedVersion = least < leastVersion ? least : nil
    }

    /// Returns the checksum of a footer, without its magic bytes and the checksum stored in it.
    private static func checksum(_ bytes: Span<UInt8>, trailer: Int, salt: UInt64) -> UInt64 {
        var sum = XXH64(seed: salt)
        sum.update(bytes.extracting(0..<trailer))
        sum.update(bytes.extracting(trailer + 16..<trailer + trailerBytes))
        return sum.finish()
    }
}

extension SegmentFooter.Entry {
    fileprivate init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(
            digest: EntryDigest(
                first: bytes.little64(at: offset), second: bytes.little64(at: offset + 8)),
            offsetUnits: bytes.little32(at: offset + 16), units: bytes.little32(at: offset + 20),
            invalidationVersion: bytes.invalidationVersion(at: offset + 24),
            lastAccess: bytes.little32(at: offset + 40),
            accessCount: bytes.little16(at: offset + 44),
            share: bytes.little16(at: offset + 46))
    }
}
