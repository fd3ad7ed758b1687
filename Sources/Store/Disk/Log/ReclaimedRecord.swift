import Ground
import Tiers

/// A record of the segment that is being reclaimed, whose head has been read and checked.
struct ReclaimedRecord {
    /// Why a record was not copied.
    enum CopyFailure: Error {
        /// The source record cannot be read.
        case unreadable
        /// The destination cannot be written.
        case unwritable
    }

    /// The entry of the record.
    let entry: DiskEntry
    /// The decoded head of the record.
    let record: DiskRecord
    /// The generation of its segment.
    let use: SegmentSlot.Generation
    private let view: DiskView
    /// Bytes from the record's start to its body; a newer version's head may be longer than ours.
    private let metaBytes: Int
    /// Bytes read together with the head, from the record's start.
    private let block: [UInt8]

    /// Records up to this size are read in one read with their heads.
    private static let blockBytes = 80 << 10

    /// Reads the head of a record; `nil` if it cannot be read.
    init?(_ entry: DiskEntry, _ use: SegmentSlot.Generation, in view: DiskView) {
        guard let block = try? view.readBlock(entry, use, bytesMax: Self.blockBytes),
            let (record, metaBytes) = try? view.record(
                in: block.span, entry, use, isVerified: true),
            // A record of a newer version may be longer than what is written of it here.
            record.extent.recordBytes <= entry.bytes
        else { return nil }
        self.entry = entry
        self.record = record
        self.view = view
        self.use = use
        self.metaBytes = metaBytes
        self.block = block
    }

    /// Writes the record at `offset` of an open segment, checking every chunk; returns the record
    /// as written.
    ///
    /// - Throws: ``CopyFailure`` if a chunk is damaged, or if a write fails.
    func copy(
        to segment: OpenSegment, at offset: UInt64, accessCount: UInt8
    ) throws(CopyFailure) -> DiskRecord {
        var copy = record
        copy.lastAccess = entry.lastAccess
        copy.accessCount = UInt16(accessCount)
        let bodyStart = copy.extent.metaBytes
        let salt = segment.header.salt
        for number in record.chunkSums.indices {
            let range = DiskView.chunk(number, of: Int(record.bodyBytes))
            let chunk = try chunk(number, at: range)
            let seed = DiskFormat.chunkSeed(salt: salt, offset: offset, number: number)
            copy.chunkSums[number] = XXH64.hash(chunk.span, seed: seed)
            try write(chunk.span, to: segment, at: offset + UInt64(bodyStart + range.lowerBound))
        }
        let end = bodyStart + Int(copy.bodyBytes)
        let padding = [UInt8](repeating: 0, count: copy.extent.recordBytes - end)
        try write(padding.span, to: segment, at: offset + UInt64(end))
        try write(copy.metaBytes(salt: salt, offset: offset).span, to: segment, at: offset)
        return copy
    }

    /// Returns the checked bytes of a chunk, which has this range in the body.
    private func chunk(_ number: Int, at range: Range<Int>) throws(CopyFailure) -> [UInt8] {
        let start = metaBytes + range.lowerBound
        let known =
            start + range.count <= block.count ? Array(block[start..<start + range.count]) : nil
        let read = known ?? (try? use.file.read(range.count, at: entry.offset + UInt64(start)))
        guard let chunk = read, chunk.count == range.count,
            (try? view.verifyChecksum(chunk.span, number, record, entry, use)) != nil
        else { throw .unreadable }
        return chunk
    }

    private func write(
        _ bytes: Span<UInt8>, to segment: OpenSegment, at offset: UInt64
    ) throws(CopyFailure) {
        do { try segment.file.write(bytes, at: offset, view.counters) } catch { throw .unwritable }
    }
}
