package import Ground

/// Finds out what a segment file holds when a node starts: by its footer if that checks, by a scan
/// if not.
///
/// The shell reads what ``wanted`` names and hands it over until that is nil; then ``outcome`` says
/// what there is. One segment's damage never reaches another.
package struct SegmentRecovery: Sendable {
    /// What a segment was found to hold.
    package struct RecoveredSegment: Hashable, Sendable {
        package var header: SegmentHeader
        /// The records in the order in which they were written.
        package var entries: [SegmentFooter.Entry]
        /// Where the records end; what lies behind is not used.
        package var recordsEnd: UInt64
        /// True if the entries come from a scan: the segment was not closed, or its footer is
        /// damaged, so that a new one is to be written.
        package var needsFooter: Bool
        /// What began as a record and does not check, with its offset.
        package var damaged: [UInt64]
        /// The least stamp of records that the footer leaves out, or a later start may read.
        package var leastOmittedVersion: InvalidationVersion?
        /// The fingerprints of all names of its records, and of those that a later start may read;
        /// nil if that is not known.
        package var fingerprints: FingerprintSet?

        /// The least stamp of all records in the segment; nil if there are none.
        package var leastVersion: InvalidationVersion? {
            (entries.map(\.invalidationVersion) + [leastOmittedVersion].compactMap(\.self)).min()
        }
    }

    /// What has become of a segment.
    package enum Outcome: Hashable, Sendable {
        case recovered(RecoveredSegment)
        /// Nothing in it can be used; the file is free.
        case discarded(DiskFormatError)
    }

    private enum State: Sendable {
        case header
        case trailer(SegmentHeader)
        case footer(SegmentHeader, bytes: Int)
        case scan(SegmentHeader, SegmentScan)
        case finished
    }

    private let nodeID: NodeID
    private let segmentBytes: UInt64
    private var state = State.header
    private var entries: [SegmentFooter.Entry] = []
    private var damaged: [UInt64] = []
    private var fingerprints = FingerprintSet()
    /// A record has more names than a footer has room for.
    private var hasTooManyFingerprints = false
    /// Some of the file could not be read, which a later start perhaps can.
    private var hasUnreadableRanges = false
    /// Nil until ``wanted`` is.
    package private(set) var outcome: Outcome?

    /// A file of a node with this id, whose segments have this size.
    package init(nodeID: NodeID, segmentBytes: UInt64) {
        self.nodeID = nodeID
        self.segmentBytes = segmentBytes
    }

    /// What is to be read next; nil when there is an ``outcome``.
    package var nextRead: SegmentScan.ReadRange? {
        switch state {
        case .header: SegmentScan.ReadRange(offset: 0, bytes: DiskFormat.headerBytes)
        case .trailer: end(SegmentFooter.trailerBytes)
        case .footer(_, let bytes): end(bytes)
        case .scan(_, let scan): scan.nextRead
        case .finished: nil
        }
    }

    private func end(_ bytes: Int) -> SegmentScan.ReadRange {
        SegmentScan.ReadRange(offset: segmentBytes - UInt64(bytes), bytes: bytes)
    }

    /// Takes the bytes of ``wanted``, fewer only where the file ends.
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
        case .finished: preconditionFailure("nothing was wanted")
        }
    }

    /// What was wanted cannot be read.
    package mutating func readFailed() {
        switch state {
        case .header: finish(.discarded(.truncated))
        case .trailer(let header), .footer(let header, _): beginScan(header)
        case .scan(let header, var scan):
            hasUnreadableRanges = true
            recordResult(scan.readFailed())
            continueScan(header, scan)
        case .finished: preconditionFailure("nothing was wanted")
        }
    }

    private mutating func readHeader(_ bytes: Span<UInt8>) {
        do {
            let header = try SegmentHeader(bytes, nodeID: nodeID, segmentBytes: segmentBytes)
            state = .trailer(header)
        } catch {
            finish(.discarded(error))
        }
    }

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

    private mutating func continueScan(_ header: SegmentHeader, _ scan: SegmentScan) {
        state = .scan(header, scan)
        guard scan.nextRead == nil else { return }
        // Behind the records lies what the file was used for before, or one that was torn.
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
    /// What the footer says of a record at `offset`.
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
    /// The fingerprints of its names.
    package var fingerprints: [UInt32] { URLName.fingerprints(ofKey: key, tags: tags) }
}

/// Puts together what a start has found in the segments of a log: which record of an entry counts,
/// and what the ledger takes over.
///
/// Segments are taken in the order of their sequence, records in the order in which they were
/// written, and the later one of an entry counts. What was not asked for within the age limit is
/// not taken over; what marks have killed is found when it is read.
package struct LogRecovery: Sendable {
    private let leastAccess: UInt32

    /// What was last asked for before the second `leastAccess` is not taken over.
    package init(leastAccess: UInt32) {
        self.leastAccess = leastAccess
    }

    /// Gives `body` what of a segment at `index` is taken over, in order; each in the place of what
    /// was given for the same digest before.
    ///
    /// `newestAccess` is the second at which the log was last written to, as far as is known: what
    /// was not checkpointed is given the benefit of the doubt.
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
