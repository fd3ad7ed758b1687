import Ground
import NIOCore
import Tiers

/// The segments of a log for its writer: the space in them, their files, and their footers.
///
/// It performs what ``Tiers/SegmentAllocator`` decides. After a failed write the open segment is
/// closed, and the error is thrown.
struct SegmentWriter {
    /// The contents of a segment's file, beyond what the allocator and the index know.
    private struct FileState {
        /// The file, once it is open.
        var file: (any VolumeFile)?
        /// The least version of the records that a power failure may still bring back from the
        /// file: a reclaimed segment is on the disk until its next header is.
        var leastVersion: InvalidationVersion?
        /// Fingerprints of the names of all records that a restart might find in the file; `nil`
        /// matches any name.
        var fingerprints: FingerprintSet? = FingerprintSet()
        /// True if the footer is older than the index.
        var hasOutdatedFooter = false
        /// True if the segment is reclaimed and its file still has the old header.
        var hasStaleHeader = false
    }

    private let volume: any DiskVolume
    private let view: DiskView
    private let segmentBytes: UInt64
    private var random: SplitMix64
    /// The space in the segments.
    var allocator: SegmentAllocator
    /// The files, by the numbers of their segments.
    private var files: [FileState]
    private var openSegments: [SegmentQueue: OpenSegment] = [:]

    /// Maximum number of ``OpenSegment/entriesInLaterSegments``, about 2 MiB.
    private static let entriesInLaterSegmentsMax = 1 << 16

    /// Creates the segments that were found on the volume, and free ones up to the plan's number.
    init(
        _ volume: any DiskVolume, _ view: DiskView, plan: DiskPlan, random: SplitMix64,
        recovered: [RecoveredLog.File]
    ) {
        self.volume = volume
        self.view = view
        self.random = random
        segmentBytes = UInt64(plan.segmentBytes)
        allocator = SegmentAllocator(
            settings: .init(
                segments: plan.segments, segmentBytes: plan.segmentBytes,
                headerBytes: DiskFormat.headerBytes, footerBytes: SegmentFooter.trailerBytes,
                footerBytesPerRecord: SegmentFooter.bytesPerRecord),
            recovered: recovered.map { ($0.id, $0.segment) })
        files = Array(repeating: FileState(), count: plan.segments)
        for found in recovered {
            files[found.number].file = found.file
            files[found.number].fingerprints = found.names
            files[found.number].leastVersion = found.segment.leastVersion
        }
    }

    // MARK: Recovery

    /// Protects records in files that cannot be opened now: a later start may read them, so no mark
    /// that may cover them is dropped.
    ///
    /// Files beyond the plan are removed.
    mutating func retainMarksForUnreadableFiles() throws(DiskFile.Failure) {
        for number in try SegmentFiles.numbers(in: volume) {
            guard files.indices.contains(number) else {
                try volume.remove(SegmentFiles.name(number))
                continue
            }
            guard files[number].file == nil else { continue }
            files[number].leastVersion = .zero
            files[number].fingerprints = nil
        }
    }

    /// Makes the recovered segments readable, and writes missing footers.
    mutating func publish(_ recovered: [RecoveredLog.File]) throws(DiskFile.Failure) {
        for found in recovered {
            view.slots[found.number].beginGeneration(
                .init(file: found.file, salt: found.header.salt, sequence: found.header.sequence))
        }
        for found in recovered {
            guard let segment = found.unclosed else { continue }
            try writeFooter(
                of: found.id, found.header, segment.entries, recordsEnd: segment.recordsEnd,
                to: found.file)
        }
    }

    /// Returns the contents of a segment as its footer lists them, or as a scan finds them if the
    /// footer is unreadable; `nil` if the segment cannot be recovered or is not the current one.
    func recover(_ use: SegmentSlot.Generation) -> SegmentRecovery.RecoveredSegment? {
        guard case .recovered(let found) = SegmentFiles.recover(use.file, view.identity),
            found.header.sequence == use.sequence
        else { return nil }
        return found
    }

    /// The least version of any record in the log, or left on its disk; `.last` if there is none.
    var leastVersion: InvalidationVersion {
        min(allocator.leastVersion ?? .last, files.compactMap(\.leastVersion).min() ?? .last)
    }

    /// Returns those of the fingerprints `wanted`, in ascending order, of which the log or its disk
    /// may hold an entry.
    mutating func fingerprintsOnDisk(among wanted: [UInt32]) -> Set<UInt32> {
        guard files.allSatisfy({ $0.fingerprints != nil }) else { return Set(wanted) }
        var found: Set<UInt32> = []
        for index in files.indices { files[index].fingerprints?.intersect(wanted, into: &found) }
        return found
    }

    // MARK: Records

    /// Writes a record at the position that the allocator assigned.
    mutating func append(
        _ record: DiskRecord, _ body: [ByteBuffer], in queue: SegmentQueue, at offset: Int
    ) throws(DiskFile.Failure) -> DiskLocation {
        let segment = openSegment(of: queue)
        var record = record
        do {
            try record.write(
                body, to: segment.file, at: UInt64(offset), salt: segment.header.salt,
                view.counters)
        } catch {
            closeAfterWriteError(queue, recordBytes: record.extent.recordBytes)
            throw error
        }
        return list(record, in: segment, at: offset)
    }

    /// Writes a record of the segment that is being reclaimed again, in the main queue, at the
    /// position that the allocator assigned.
    mutating func append(
        _ original: ReclaimedRecord, accessCount: UInt8, at offset: Int
    ) throws(ReclaimedRecord.CopyFailure) -> DiskLocation {
        let segment = openSegment(of: .main)
        do {
            let copy = try original.copy(to: segment, at: UInt64(offset), accessCount: accessCount)
            return list(copy, in: segment, at: offset)
        } catch {
            let bytes = original.entry.bytes
            switch error {
            case .unwritable: closeAfterWriteError(.main, recordBytes: bytes)
            // The position stays empty; the next record follows it.
            case .unreadable: allocator.entryRemoved(segment.id, recordBytes: bytes)
            }
            throw error
        }
    }

    private func openSegment(of queue: SegmentQueue) -> OpenSegment {
        guard let segment = openSegments[queue] else {
            preconditionFailure("\(queue) is not open")
        }
        return segment
    }

    /// Adds a written record to the open segment's footer entries and returns its location.
    private mutating func list(_ record: DiskRecord, in segment: OpenSegment, at offset: Int)
        -> DiskLocation
    {
        let entry = SegmentFooter.Entry(record, at: UInt64(offset))
        segment.entries.append(entry)
        segment.recordsEnd = UInt64(offset + record.extent.recordBytes)
        let index = Int(segment.id.index)
        let version = record.invalidationVersion
        files[index].leastVersion = files[index].leastVersion.map { min($0, version) } ?? version
        let names = record.fingerprints
        if names.count > SegmentFooter.fingerprintsMax { files[index].fingerprints = nil }
        for name in names { files[index].fingerprints?.insert(name) }
        return DiskLocation(segment: UInt16(index), offsetUnits: entry.offsetUnits)
    }

    /// Records that the footer of the segment with this record is older than the index.
    mutating func footerOutdated(of location: DiskLocation) {
        files[Int(location.segment)].hasOutdatedFooter = true
    }

    /// Records that an entry has no longer this record, which stays in the segment.
    mutating func recordRemoved(_ entry: DiskEntry) {
        allocator.entryRemoved(
            SegmentID(index: UInt32(entry.location.segment)), recordBytes: entry.bytes)
        // So that the segment's footer does not list it permanently.
        footerOutdated(of: entry.location)
    }

    /// Records that an entry was removed from the index while its record stays in the segment.
    ///
    /// A restart that finds the segment without a valid footer finds the record again, so a later
    /// record of the entry must follow it in the order of segments.
    mutating func entryForgotten(_ digest: EntryDigest, _ entry: DiskEntry) {
        recordRemoved(entry)
        let other: SegmentQueue = entry.flags.contains(.inMain) ? .small : .main
        guard let next = openSegments[other],
            next.header.sequence < allocator.segments[Int(entry.location.segment)].sequence
        else { return }
        next.entriesInLaterSegments.insert(digest)
        // The next record goes into a new segment, which follows all of them.
        if next.entriesInLaterSegments.count > Self.entriesInLaterSegmentsMax {
            closeIgnoringErrors(other)
        }
    }

    /// Returns true if a restart could find an earlier record of the entry that would follow one
    /// appended now to `queue`.
    func hasLaterRecord(of digest: EntryDigest, than queue: SegmentQueue) -> Bool {
        openSegments[queue]?.entriesInLaterSegments.contains(digest) ?? false
    }

    // MARK: Segments

    /// Prepares a segment for records: allocates its file in full and syncs a header.
    ///
    /// If there is a segment to close in the queue, its footer is written before.
    mutating func open(
        _ id: SegmentID, _ queue: SegmentQueue, sequence: UInt64, closing: SegmentID?, now: Int64
    ) throws(DiskFile.Failure) {
        do {
            if closing != nil, let segment = openSegments.removeValue(forKey: queue) {
                // If that fails, a scan finds its records.
                try writeFooter(of: segment)
            }
            let header = SegmentHeader(
                nodeID: view.identity.nodeID, segmentBytes: segmentBytes, sequence: sequence,
                salt: random.next(), openedAtVersion: view.marks.journaledVersion, openedWall: now,
                queue: queue.rawValue)
            let file = try file(of: Int(id.index))
            try file.replaceWithZeros(segmentBytes)
            try file.write(header.bytes.span, at: 0, view.counters)
            try file.sync()
            files[Int(id.index)] = FileState(file: file)
            view.slots[Int(id.index)].beginGeneration(
                .init(file: file, salt: header.salt, sequence: sequence))
            openSegments[queue] = OpenSegment(id: id, header: header, file: file)
        } catch {
            allocator.segmentClosed(id)
            throw error
        }
    }

    /// Tests the disk; throws if a write or sync fails, or if there is no space for the next
    /// segment.
    mutating func probe() throws(DiskFile.Failure) {
        try volume.probe()
        guard let missing = files.firstIndex(where: { $0.file == nil }) else { return }
        _ = try file(of: missing)
    }

    /// Returns the file of a segment, which is created with all its blocks if it is missing.
    private mutating func file(of number: Int) throws(DiskFile.Failure) -> any VolumeFile {
        if let known = files[number].file { return known }
        let file = try volume.open(SegmentFiles.name(number), creates: true)
        if try file.size() > segmentBytes { try file.truncate(to: segmentBytes) }
        try file.allocate(segmentBytes)
        try volume.sync()
        files[number].file = file
        return file
    }

    /// Frees a segment whose records are all written again or dropped.
    mutating func segmentReclaimed(_ id: SegmentID) {
        let index = Int(id.index)
        view.slots[index].endGeneration()
        files[index].hasOutdatedFooter = false
        // From here on the file may be overwritten; what a restart would find in it is outdated.
        files[index].hasStaleHeader = true
        // If that fails, the next checkpoint retries.
        try? eraseHeader(index)
        allocator.segmentReclaimed(id)
    }

    /// Overwrites the header of a reclaimed segment with zeros.
    private mutating func eraseHeader(_ index: Int) throws(DiskFile.Failure) {
        if files[index].hasStaleHeader, let file = files[index].file {
            let zeros = [UInt8](repeating: 0, count: DiskFormat.headerBytes)
            try file.write(zeros.span, at: 0, view.counters)
        }
        files[index].hasStaleHeader = false
    }

    /// Writes the access counts of closed segments to their footers, so that a restart knows them;
    /// erases the headers of reclaimed segments.
    mutating func checkpoint() throws(DiskFile.Failure) {
        for (index, segment) in allocator.segments.enumerated() where segment.state == .free {
            try eraseHeader(index)
        }
        for (index, segment) in allocator.segments.enumerated()
        where files[index].hasOutdatedFooter && segment.state == .closed {
            guard let use = view.slots[index].current, let found = recover(use) else { continue }
            try writeFooter(
                of: SegmentID(index: UInt32(index)), found.header, found.entries,
                recordsEnd: found.recordsEnd, to: use.file)
        }
    }

    /// Writes outdated footers and closes the open segments, at shutdown.
    mutating func close() throws(DiskFile.Failure) {
        try checkpoint()
        for queue in SegmentQueue.allCases { try close(queue) }
    }

    /// Closes the open segment after a failed write; its position is lost.
    private mutating func closeAfterWriteError(_ queue: SegmentQueue, recordBytes: Int) {
        allocator.entryRemoved(openSegment(of: queue).id, recordBytes: recordBytes)
        closeIgnoringErrors(queue)
    }

    /// Closes the open segment of a queue; without a footer, a scan finds its records.
    private mutating func closeIgnoringErrors(_ queue: SegmentQueue) {
        // The failure may be due to a full disk only.
        try? close(queue)
    }

    /// Closes the open segment of a queue, if there is one, and writes its footer.
    private mutating func close(_ queue: SegmentQueue) throws(DiskFile.Failure) {
        guard let segment = openSegments.removeValue(forKey: queue) else { return }
        allocator.segmentClosed(segment.id)
        try writeFooter(of: segment)
    }

    // MARK: Footers

    private mutating func writeFooter(of segment: OpenSegment) throws(DiskFile.Failure) {
        try writeFooter(
            of: segment.id, segment.header, segment.entries, recordsEnd: segment.recordsEnd,
            to: segment.file)
    }

    /// Writes the footer of a segment, without records that are no longer their entry's.
    private mutating func writeFooter(
        of id: SegmentID, _ header: SegmentHeader, _ entries: [SegmentFooter.Entry],
        recordsEnd: UInt64, to file: any VolumeFile
    ) throws(DiskFile.Failure) {
        let current = entries.compactMap { entry -> SegmentFooter.Entry? in
            guard let known = view.shards.find(entry.digest),
                known.location.segment == UInt16(id.index),
                known.location.offsetUnits == entry.offsetUnits
            else { return nil }
            var entry = entry
            entry.lastAccess = known.lastAccess
            entry.accessCount = UInt16(known.accessCount)
            return entry
        }
        let index = Int(id.index)
        var footer = SegmentFooter(
            entries: current, recordsEnd: recordsEnd, sequence: header.sequence,
            leastOmittedVersion: files[index].leastVersion,
            fingerprints: files[index].fingerprints?.fingerprints)
        // A segment written by an earlier version may be too full for them.
        if footer.start(segmentBytes: segmentBytes) < recordsEnd { footer.fingerprints = nil }
        let bytes = footer.bytes(salt: header.salt, segmentBytes: segmentBytes)
        files[index].hasOutdatedFooter = false
        try file.write(bytes.span, at: segmentBytes - UInt64(bytes.count), view.counters)
    }
}
