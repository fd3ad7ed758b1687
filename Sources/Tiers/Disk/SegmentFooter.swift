package import Ground

/// What a closed segment's end says of its records; see "Footer" in <doc:DiskFormat>.
package struct SegmentFooter: Hashable, Sendable {
    /// One record.
    package struct Entry: Hashable, Sendable {
        package var digest: EntryDigest
        /// Where the record begins and what it takes, in ``DiskFormat/unitBytes``.
        package var offsetUnits: UInt32
        package var units: UInt32
        package var invalidationVersion: InvalidationVersion
        /// In seconds since 1970.
        package var lastAccess: UInt32
        package var accessCount: UInt16
        /// See ``DiskShareID``.
        package var share: UInt16

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

        /// Size in bytes.
        package static let bytesCount = 48
    }

    package var entries: [Entry]
    /// Where the records end.
    package var recordsEnd: UInt64
    /// That of the segment's header.
    package var sequence: UInt64
    /// The least stamp of records that are not named any more; nil if it is none below those that
    /// are.
    ///
    /// A scan would find them again, so marks that cover them are still wanted.
    package var leastOmittedVersion: InvalidationVersion?
    /// The fingerprints of all names of records in the segment, those without an entry included,
    /// ascending; nil if that is not known, as in footers of earlier versions.
    package var fingerprints: [UInt32]?

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

    /// The least stamp of the segment's records; ``InvalidationVersion/last`` if there are none.
    package var leastVersion: InvalidationVersion {
        entries.map(\.invalidationVersion).reduce(leastOmittedVersion ?? .last, min)
    }

    /// Size of the trailer.
    package static let trailerBytes = 64

    /// One with names, and one without.
    private static let (magic, formerMagic) = ("NUTHFOO2", "NUTHFOOT")

    /// The most names of a record that there is room for; a segment with one of more has a footer
    /// without names.
    package static let fingerprintsMax = 8
    /// The most bytes that a record takes in the footer.
    package static let bytesPerRecord = Entry.bytesCount + 4 * fingerprintsMax

    /// What a footer of `count` entries, and so many names, takes at the end of a segment.
    package static func bytesCount(of count: Int, fingerprints: Int = 0) -> Int {
        count * Entry.bytesCount + (fingerprints + 1) / 2 * 8 + trailerBytes
    }

    private var bytesCount: Int {
        Self.bytesCount(of: entries.count, fingerprints: fingerprints?.count ?? 0)
    }

    /// Where it begins in a segment of `segmentBytes`.
    package func start(segmentBytes: UInt64) -> UInt64 { segmentBytes - UInt64(bytesCount) }

    /// The bytes that end a segment with this `salt` of `segmentBytes`.
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

    /// How many bytes at the end of the segment the footer takes whose trailer these bytes are; not
    /// yet checked.
    ///
    /// - Throws: that no trailer is like this.
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

    /// The footer of these bytes, ``bytesCount(trailer:segmentBytes:)`` of them, in the segment
    /// that `header` begins.
    ///
    /// - Throws: what is wrong with it.
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
