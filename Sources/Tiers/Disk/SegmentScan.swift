import Ground

/// A scan for the records of a segment without a valid footer, because it was not closed or its end
/// is damaged.
///
/// The shell reads ``nextRead`` and passes it to ``bytesRead(_:)`` until it is `nil`. Every byte of
/// a record is verified, so that a torn record never replaces an older one. A damaged record
/// affects only itself: the scan continues one unit after its beginning.
package struct SegmentScan: Sendable {
    /// The result of a read.
    package enum RecordScanResult: Hashable, Sendable {
        /// A valid record at this offset.
        case record(DiskRecord, at: UInt64)
        /// An invalid record at this offset.
        case damaged(at: UInt64, DiskFormatError)
    }

    /// A range of the segment.
    package struct ReadRange: Hashable, Sendable {
        /// The offset in the segment in bytes.
        package var offset: UInt64
        /// The length in bytes.
        package var bytes: Int
    }

    private enum State: Sendable {
        /// Searches for the beginning of a record.
        case seeking
        /// A fixed part with these lengths was found.
        case candidate(DiskRecordExtent)
        /// The metadata and this number of body chunks are valid.
        case body(DiskRecord, checked: Int)
    }

    private let header: SegmentHeader
    private var state = State.seeking
    /// The position from which to search, or of the record being verified.
    private var position: UInt64
    /// The end of the last valid record, as an offset in bytes.
    package private(set) var recordsEnd: UInt64

    /// The position up to which reads are small, because a large one has failed.
    private var smallReadsUntil: UInt64 = 0

    /// The length of reads while searching.
    ///
    /// Where such a read has failed, reads are of one page at most.
    private static let blockBytes = 64 << 10
    private static let pageBytes: UInt64 = 4096

    /// Creates a scan that starts after the header.
    package init(_ header: SegmentHeader) {
        self.header = header
        position = UInt64(DiskFormat.headerBytes)
        recordsEnd = position
    }

    /// The range to read next; `nil` at the end of the segment.
    package var nextRead: ReadRange? {
        switch state {
        case .seeking:
            let left = Int(header.segmentBytes - position)
            guard left >= DiskRecord.fixedBytes else { return nil }
            let toPageEnd = Int(nextPage - position)
            let block =
                position < smallReadsUntil
                ? max(toPageEnd, DiskRecord.fixedBytes) : Self.blockBytes
            return ReadRange(offset: position, bytes: min(left, block))
        case .candidate(let extent):
            return ReadRange(offset: position, bytes: extent.metaBytes)
        case .body(let record, let checked):
            let start = checked * DiskFormat.chunkBytes
            return ReadRange(
                offset: position + UInt64(record.extent.metaBytes + start),
                bytes: min(DiskFormat.chunkBytes, Int(record.bodyBytes) - start))
        }
    }

    /// Processes the bytes of ``nextRead``, which may be fewer only at the end of the file.
    ///
    /// - Returns: the record found or rejected; `nil` if there is no result yet.
    package mutating func bytesRead(_ bytes: Span<UInt8>) -> RecordScanResult? {
        let isShort = bytes.count < nextRead?.bytes ?? 0
        switch state {
        case .seeking:
            seek(bytes, isLast: isShort)
            return nil
        case .candidate where isShort, .body where isShort:
            return skip(.truncated)
        case .candidate:
            do {
                return advance(
                    try DiskRecord(meta: bytes, salt: header.salt, offset: position), checked: 0)
            } catch {
                return skip(error)
            }
        case .body(let record, let checked):
            let seed = DiskFormat.chunkSeed(
                salt: header.salt, offset: position, number: checked)
            guard XXH64.hash(bytes, seed: seed) == record.chunkSums[checked] else {
                return skip(.checksumMismatch)
            }
            return advance(record, checked: checked + 1)
        }
    }

    /// Records that ``nextRead`` could not be read.
    ///
    /// A failed search is repeated in smaller reads, so that all readable records of the same block
    /// are still found.
    ///
    /// - Returns: the record being verified, as damaged; `nil` during a search.
    package mutating func readFailed() -> RecordScanResult? {
        guard case .seeking = state else { return skip(.truncated) }
        if position < smallReadsUntil {
            position = min(nextPage, header.segmentBytes)
        } else {
            smallReadsUntil = position + UInt64(Self.blockBytes)
        }
        return nil
    }

    /// The first page boundary after ``position``.
    private var nextPage: UInt64 {
        (position / Self.pageBytes + 1) * Self.pageBytes
    }

    /// Moves ``position`` to the first beginning of a record in `block`; if there is none, to the
    /// first byte not yet searched or, if `isLast`, to the end of the segment.
    private mutating func seek(_ block: Span<UInt8>, isLast: Bool) {
        var offset = 0
        while offset + DiskRecord.fixedBytes <= block.count {
            let left = Int(header.segmentBytes - position) - offset
            if let extent = DiskRecord.extent(
                block.extracting(offset..<block.count), space: left)
            {
                position += UInt64(offset)
                state = .candidate(extent)
                return
            }
            offset += DiskFormat.unitBytes
        }
        position = isLast ? header.segmentBytes : position + UInt64(offset)
    }

    /// Continues with the next chunk of a body, or returns the record once all chunks are checked.
    private mutating func advance(_ record: DiskRecord, checked: Int) -> RecordScanResult? {
        guard checked == record.chunkSums.count else {
            state = .body(record, checked: checked)
            return nil
        }
        let found = position
        position += UInt64(record.extent.recordBytes)
        recordsEnd = position
        state = .seeking
        return .record(record, at: found)
    }

    /// Rejects the record at ``position`` and resumes the search one unit after its beginning.
    private mutating func skip(_ damage: DiskFormatError) -> RecordScanResult {
        let found = position
        position += UInt64(DiskFormat.unitBytes)
        state = .seeking
        return .damaged(at: found, damage)
    }
}
