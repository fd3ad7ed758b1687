import Ground

/// Finds the records of a segment that has no footer which checks: it was not closed, or its end is
/// damaged.
///
/// The shell reads what ``wanted`` names, hands it to ``read(_:)``, and does so until ``wanted`` is
/// nil. Every byte of a record is checked, so that one which was torn while it was written takes
/// the place of no older one. A damaged record costs itself: the scan goes on one unit behind its
/// beginning.
package struct SegmentScan: Sendable {
    /// What a part that was read has shown.
    package enum RecordScanResult: Hashable, Sendable {
        /// A record that checks, at this offset.
        case record(DiskRecord, at: UInt64)
        /// Something that began as a record at this offset does not check.
        case damaged(at: UInt64, DiskFormatError)
    }

    /// A part of the segment.
    package struct ReadRange: Hashable, Sendable {
        package var offset: UInt64
        package var bytes: Int
    }

    private enum State: Sendable {
        /// Looks for the beginning of a record.
        case seeking
        /// A fixed part promises this much.
        case candidate(DiskRecordExtent)
        /// What comes before the body checks; so many chunks of the body do.
        case body(DiskRecord, checked: Int)
    }

    private let header: SegmentHeader
    private var state = State.seeking
    /// Where the next record may begin, or the one that is looked at begins.
    private var position: UInt64
    /// Where the last record that checks ends.
    package private(set) var recordsEnd: UInt64

    /// Up to here reads are small, because a large one has failed.
    private var smallReadsUntil: UInt64 = 0

    /// How much is read at once while no record is in sight; where that has failed, to the end of a
    /// page.
    private static let blockBytes = 64 << 10
    private static let pageBytes: UInt64 = 4096

    /// Begins behind the header.
    package init(_ header: SegmentHeader) {
        self.header = header
        position = UInt64(DiskFormat.headerBytes)
        recordsEnd = position
    }

    /// What is to be read next; nil at the segment's end.
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

    /// Takes the bytes of ``wanted``, fewer only where the file ends; nil if they show nothing yet.
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

    /// What was wanted cannot be read.
    ///
    /// Of what lies in the same block everything that can be read is still found.
    package mutating func readFailed() -> RecordScanResult? {
        guard case .seeking = state else { return skip(.truncated) }
        if position < smallReadsUntil {
            position = min(nextPage, header.segmentBytes)
        } else {
            smallReadsUntil = position + UInt64(Self.blockBytes)
        }
        return nil
    }

    private var nextPage: UInt64 {
        (position / Self.pageBytes + 1) * Self.pageBytes
    }

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

    private mutating func skip(_ damage: DiskFormatError) -> RecordScanResult {
        let found = position
        position += UInt64(DiskFormat.unitBytes)
        state = .seeking
        return .damaged(at: found, damage)
    }
}
