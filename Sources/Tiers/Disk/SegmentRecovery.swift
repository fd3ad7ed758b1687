package import Ground

/// The recovery of a segment file when a node starts: by its footer if valid, otherwise by a scan.
///
/// The shell reads ``nextRead`` and reports ``bytesRead(_:)`` until it is `nil`; then ``outcome``
/// has the result. Damage of one segment does not affect others.
package struct SegmentRecovery: Sendable {
    /// The recovered contents of a segment.
    package struct RecoveredSegment: Hashable, Sendable {
        /// The header of the segment.
        package var header: SegmentHeader
        /// The records in the order in which they were written.
        package var entries: [SegmentFooter.Entry]
        /// The offset at which the records end; bytes after it are not used.
        package var recordsEnd: UInt64
        /// True if the entries come from a scan, so that a new footer must be written: the segment
        /// was not closed, or its footer is damaged.
        package var needsFooter: Bool
        /// The offsets of damaged records.
        package var damaged: [UInt64]
        /// The least invalidation version of records that the footer omits or that a later start
        /// may read; `nil` if there are none, ``Ground/InvalidationVersion/zero`` if it is unknown.
        package var leastOmittedVersion: InvalidationVersion?
        /// The fingerprints of all names of its records and of those that a later start may read;
        /// `nil` if unknown.
        package var fingerprints: FingerprintSet?

        /// The least invalidation version of all records in the segment; `nil` if there are none.
        package var leastVersion: InvalidationVersion? {
            (entries.map(\.invalidationVersion) + [leastOmittedVersion].compactMap(\.self)).min()
        }
    }

    /// The result of the recovery of a segment.
    package enum Outcome: Hashable, Sendable {
        /// The segment has usable contents.
        case recovered(RecoveredSegment)
        /// The segment has no usable contents; the file is free.
        case discarded(DiskFormatError)
    }

    private enum State: Sendable {
        /// Expects the header of the file.
        case header
        /// Expects the trailer, which holds the length of the footer.
        case trailer(SegmentHeader)
        /// Expects the whole footer.
        case footer(SegmentHeader, bytes: Int)
        /// Expects what the scan requires.
        case scan(SegmentHeader, SegmentScan)
        case finished
    }

    private let nodeID: NodeID
    private let segmentBytes: UInt64
    private var state = State.header
    private var entries: [SegmentFooter.Entry] = []
    private var damaged: [UInt64] = []
    private var fingerprints = FingerprintSet()
    /// True if a record has more names than the footer has space for.
    private var hasTooManyFingerprints = false
    /// True if part of the file could not be read, which may succeed at a later start.
    private var hasUnreadableRanges = false
    /// The result; `nil` until ``nextRead`` is `nil`.
    package private(set) var outcome: Outcome?

    /// Creates a recovery for a file of the node with this id and segment size.
    package init(nodeID: NodeID, segmentBytes: UInt64) {
        self.nodeID = nodeID
        self.segmentBytes = segmentBytes
    }

    /// The range to read next; `nil` once there is an ``outcome``.
    package var nextRead: SegmentScan.ReadRange? {
        switch state {
        case .header: SegmentScan.ReadRange(offset: 0, bytes: DiskFormat.headerBytes)
        case .trailer: end(SegmentFooter.trailerBytes)
        case .footer(_, let bytes): end(bytes)
        case .scan(_, let scan): scan.nextRead
        case .finished: nil
        }
    }

    /// Returns the range of the last `bytes` of the file.
    private func end(_ bytes: Int) -> SegmentScan.ReadRange {
        SegmentScan.ReadRange(offset: segmentBytes - UInt64(bytes), bytes: bytes)
    }

    /// Processes the bytes of ``nextRead``, which may be fewer only at the end of the file.
    package mutating func bytesRead(_ bytes: Span<UInt8>) {
        switch state {
        case .header: readHeader(bytes)
        case .trailer(let header):
            do {
                let size = try SegmentFooter.bytesCount(
                    trailer: bytes, segmentBytes: segmentBytes)
                state = .footer(header, bytes: size)
            } catch {
                beginScan(header)
            }
        case .footer(let header, _): readFooter(bytes, header)
        case .scan(let header, var scan):
            recordResult(scan.bytesRead(bytes))
            continueScan(header, scan)
        case .finished: preconditionFailure("no read was requested")
        }
    }

    /// Records that ``nextRead`` could not be read.
    ///
    /// A segment whose header cannot be read is discarded; one whose footer cannot be read is
    /// scanned; a scan omits what it cannot read.
    package mutating func readFailed() {
        switch state {
        case .header: finish(.discarded(.truncated))
        case .trailer(let header), .footer(let header, _): beginScan(header)
        case .scan(let header, var scan):
            hasUnreadableRanges = true
            recordResult(scan.readFailed())
            continueScan(header, scan)
        case .finished: preconditionFailure("no read was requested")
        }
    }

    /// Continues with the trailer; discards a segment without a valid header of this node.
    private mutating func readHeader(_ bytes: Span<UInt8>) {
        do {
            let header = try SegmentHeader(bytes, nodeID: nodeID, segmentBytes: segmentBytes)
            state = .trailer(header)
        } catch {
            finish(.discarded(error))
        }
    }

    /// Finishes with the records that the footer lists; begins a scan if the footer is invalid or
    /// lists a record outside the records' part of the file.
    private mutating func readFooter(_ bytes: Span<UInt8>, _ header: SegmentHeader) {
        guard let footer = try? SegmentFooter(bytes, header: header),
            footer.entries.allSatisfy({ isInBounds($0, within: footer.recordsEnd) })
        else { return beginScan(header) }
        finish(
            .recovered(
                RecoveredSegment(
                    header: header, entries: footer.entries, recordsEnd: footer.recordsEnd,
                    needsFooter: false, damaged: [],
                    leastOmittedVersion: footer.leastOmittedVersion,
                    fingerprints: footer.fingerprints.map(FingerprintSet.init))))
    }

    private func isInBounds(_ entry: SegmentFooter.Entry, within end: UInt64) -> Bool {
        let start = UInt64(entry.offsetUnits) * UInt64(DiskFormat.unitBytes)
        let last = start + UInt64(entry.units) * UInt64(DiskFormat.unitBytes)
        return start >= UInt64(DiskFormat.headerBytes) && last <= end && end <= segmentBytes
    }

    private mutating func beginScan(_ header: SegmentHeader) {
        continueScan(header, SegmentScan(header))
    }

    /// Adds what a scan has found to the result; `nil` adds nothing.
    private mutating func recordResult(_ finding: SegmentScan.RecordScanResult?) {
        switch finding {
        case .record(let record, let offset):
            entries.append(SegmentFooter.Entry(record, at: offset))
            if record.fingerprints.count > SegmentFooter.fingerprintsMax {
                hasTooManyFingerprints = true
            }
            for name in record.fingerprints { fingerprints.insert(name) }
        case .damaged(let offset, _): damaged.append(offset)
        case nil: break
        }
    }

    /// Stores the state of the scan, or finishes the recovery if the scan is at its end.
    private mutating func continueScan(_ header: SegmentHeader, _ scan: SegmentScan) {
        state = .scan(header, scan)
        guard scan.nextRead == nil else { return }
        // After the records lie remains of the file's previous use, or a torn record.
        let isWhole = !hasUnreadableRanges && !damaged.contains { $0 < scan.recordsEnd }
        finish(
            .recovered(
                RecoveredSegment(
                    header: header, entries: entries, recordsEnd: scan.recordsEnd,
                    needsFooter: true, damaged: damaged, leastOmittedVersion: isWhole ? nil : .zero,
                    fingerprints: isWhole && !hasTooManyFingerprints ? fingerprints : nil)))
    }

    private mutating func finish(_ outcome: Outcome) {
        self.outcome = outcome
        state = .finished
    }
}

extension SegmentFooter.Entry {
    /// Creates the footer entry of a record at `offset`.
    package init(_ record: DiskRecord, at offset: UInt64) {
        self.init(
            digest: record.name.digest,
            offsetUnits: UInt32(offset / UInt64(DiskFormat.unitBytes)),
            units: UInt32(record.extent.recordBytes / DiskFormat.unitBytes),
            invalidationVersion: record.invalidationVersion, lastAccess: record.lastAccess,
            accessCount: record.accessCount,
            share: DiskShareID.number(ofKey: record.key.span))
    }
}

extension DiskRecord {
    /// The fingerprints of the record's names.
    package var fingerprints: [UInt32] { URLName.fingerprints(ofKey: key, tags: tags) }
}

/// The selection of the entries that a start takes over from recovered segments.
///
/// Segments must be passed in the order of their sequence numbers; records are visited in the order
/// in which they were written, and the later one of an entry counts. Entries without access within
/// the age limit are not taken over. Records that marks cover are detected when they are read.
package struct LogRecovery: Sendable {
    private let leastAccess: UInt32

    /// Creates a selection that omits entries last accessed before the second `leastAccess`.
    package init(leastAccess: UInt32) {
        self.leastAccess = leastAccess
    }

    /// Calls `body` for each entry of a segment that is taken over, in order; the caller replaces
    /// an earlier entry with the same digest.
    ///
    /// - Parameters:
    ///   - segment: the recovered segment.
    ///   - index: the number of the segment.
    ///   - newestAccess: the second of the last known write to the log. Entries found by a scan
    ///     count as accessed no earlier than then, because their last accesses may be lost.
    ///   - body: receives the digest and the entry.
    package func recover(
        _ segment: SegmentRecovery.RecoveredSegment, at index: UInt16, newestAccess: UInt32,
        _ body: (EntryDigest, DiskEntry) -> Void
    ) {
        let flags: DiskEntry.Flags =
            segment.header.queue == SegmentQueue.main.rawValue ? .inMain : []
        for found in segment.entries {
            let access =
                segment.needsFooter ? max(found.lastAccess, newestAccess) : found.lastAccess
            guard access >= leastAccess else { continue }
            body(
                found.digest,
                DiskEntry(
                    location: DiskLocation(segment: index, offsetUnits: found.offsetUnits),
                    lengthUnits: found.units, lastAccess: access,
                    accessCount: UInt8(min(found.accessCount, UInt16(UInt8.max))), flags: flags,
                    share: found.share))
        }
    }
}
