package import Ground

/// Finds out what a segment file holds when a node starts: by its footer if that checks, by a scan
/// if not.
///
/// The shell reads what ``wanted`` names and hands it over until that is nil; then ``outcome`` says
/// what there is. One segment's damage never reaches another.
package struct SegmentRecovery: Sendable {
    /// What a segment was found to hold.
    package struct Segment: Hashable, Sendable {
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
        package var leastLeftOut: Stamp?
        /// The fingerprints of all names of its records, and of those that a later start may read;
        /// nil if that is not known.
        package var names: NameSet?

        /// The least stamp of all records in the segment; nil if there are none.
        package var leastStamp: Stamp? {
            (entries.map(\.stamp) + [leastLeftOut].compactMap(\.self)).min()
        }
    }

    /// What has become of a segment.
    package enum Outcome: Hashable, Sendable {
        case recovered(Segment)
        /// Nothing in it can be used; the file is free.
        case discarded(DiskDamage)
    }

    private enum State: Sendable {
        case header
        case trailer(SegmentHeader)
        case footer(SegmentHeader, bytes: Int)
        case scan(SegmentHeader, SegmentScan)
        case over
    }

    private let nodeID: NodeID
    private let segmentBytes: UInt64
    private var state = State.header
    private var entries: [SegmentFooter.Entry] = []
    private var damaged: [UInt64] = []
    private var names = NameSet()
    /// A record has more names than a footer has room for.
    private var hasManyNames = false
    /// Some of the file could not be read, which a later start perhaps can.
    private var isUnread = false
    /// Nil until ``wanted`` is.
    package private(set) var outcome: Outcome?

    /// A file of a node with this id, whose segments have this size.
    package init(nodeID: NodeID, segmentBytes: UInt64) {
        self.nodeID = nodeID
        self.segmentBytes = segmentBytes
    }

    /// What is to be read next; nil when there is an ``outcome``.
    package var wanted: SegmentScan.Part? {
        switch state {
        case .header: SegmentScan.Part(offset: 0, bytes: DiskFormat.headerBytes)
        case .trailer: end(SegmentFooter.trailerBytes)
        case .footer(_, let bytes): end(bytes)
        case .scan(_, let scan): scan.wanted
        case .over: nil
        }
    }

    private func end(_ bytes: Int) -> SegmentScan.Part {
        SegmentScan.Part(offset: segmentBytes - UInt64(bytes), bytes: bytes)
    }

    /// Takes the bytes of ``wanted``, fewer only where the file ends.
    package mutating func read(_ bytes: Span<UInt8>) {
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
            note(scan.read(bytes))
            goOn(header, scan)
        case .over: preconditionFailure("nothing was wanted")
        }
    }

    /// What was wanted cannot be read.
    package mutating func unreadable() {
        switch state {
        case .header: finish(.discarded(.truncated))
        case .trailer(let header), .footer(let header, _): beginScan(header)
        case .scan(let header, var scan):
            isUnread = true
            note(scan.unreadable())
            goOn(header, scan)
        case .over: preconditionFailure("nothing was wanted")
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
            footer.entries.allSatisfy({ lies($0, within: footer.recordsEnd) })
        else { return beginScan(header) }
        finish(
            .recovered(
                Segment(
                    header: header, entries: footer.entries, recordsEnd: footer.recordsEnd,
                    needsFooter: false, damaged: [], leastLeftOut: footer.leastLeftOut,
                    names: footer.names.map(NameSet.init))))
    }

    private func lies(_ entry: SegmentFooter.Entry, within end: UInt64) -> Bool {
        let start = UInt64(entry.offsetUnits) * UInt64(DiskFormat.unitBytes)
        let last = start + UInt64(entry.units) * UInt64(DiskFormat.unitBytes)
        return start >= UInt64(DiskFormat.headerBytes) && last <= end && end <= segmentBytes
    }

    private mutating func beginScan(_ header: SegmentHeader) {
        goOn(header, SegmentScan(header))
    }

    private mutating func note(_ finding: SegmentScan.Finding?) {
        switch finding {
        case .record(let record, let offset):
            entries.append(SegmentFooter.Entry(record, at: offset))
            if record.names.count > SegmentFooter.namesMax { hasManyNames = true }
            for name in record.names { names.insert(name) }
        case .damaged(let offset, _): damaged.append(offset)
        case nil: break
        }
    }

    private mutating func goOn(_ header: SegmentHeader, _ scan: SegmentScan) {
        state = .scan(header, scan)
        guard scan.wanted == nil else { return }
        // Behind the records lies what the file was used for before, or one that was torn.
        let isWhole = !isUnread && !damaged.contains { $0 < scan.recordsEnd }
        finish(
            .recovered(
                Segment(
                    header: header, entries: entries, recordsEnd: scan.recordsEnd,
                    needsFooter: true, damaged: damaged, leastLeftOut: isWhole ? nil : .zero,
                    names: isWhole && !hasManyNames ? names : nil)))
    }

    private mutating func finish(_ outcome: Outcome) {
        self.outcome = outcome
        state = .over
    }
}

extension SegmentFooter.Entry {
    /// What the footer says of a record at `offset`.
    package init(_ record: DiskRecord, at offset: UInt64) {
        self.init(
            digest: record.name.digest,
            offsetUnits: UInt32(offset / UInt64(DiskFormat.unitBytes)),
            units: UInt32(record.extent.recordBytes / DiskFormat.unitBytes),
            stamp: record.stamp, lastAccess: record.lastAccess, accessCount: record.accessCount,
            share: DiskShare.number(ofKey: record.key.span))
    }
}

extension DiskRecord {
    /// The fingerprints of its names.
    package var names: [UInt32] { URLName.fingerprints(ofKey: key, tags: tags) }
}
