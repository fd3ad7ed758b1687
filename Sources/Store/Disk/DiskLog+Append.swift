import Ground
package import NIOCore
package import Tiers

extension DiskLog {
    /// The outcome of storing a response.
    package enum StoreOutcome: Hashable, Sendable {
        /// The record is written and indexed.
        case written
        /// The record is larger than a segment.
        case tooLarge
        /// The response was purged after its request began.
        case purged
        /// The record does not fit in its site's share.
        case shareExceeded
        /// The record is written, but not indexed because `commit` refused it.
        case superseded
    }

    /// Appends a response and replaces the entry's previous record.
    ///
    /// Call it only once the journal contains everything up to the record's invalidation version;
    /// otherwise a restart could not detect a lost invalidation.
    ///
    /// - Parameters:
    ///   - record: the record; its chunk checksums are computed here.
    ///   - body: the body, in buffers of any size.
    ///   - now: milliseconds since 1970.
    ///   - commit: runs its argument, which indexes the record, and returns true; or returns false
    ///     without running it if the response must no longer be found.
    /// - Returns: `.written` if the record is written and indexed; otherwise the reason why it is
    ///   not.
    /// - Throws: ``DiskFile/Failure`` if an operation on the log's files fails; the record is then
    ///   not indexed.
    package func store(
        _ record: DiskRecord, body: [ByteBuffer], now: Int64,
        commit: (() -> Void) -> Bool = {
            $0(); return true
        }
    ) throws(DiskFile.Failure) -> StoreOutcome {
        guard view.effect(on: record) != .purged,
            !marks.predatesForgottenMarks(record.invalidationVersion)
        else { return .purged }
        guard makeRoomInShare(for: record) else { return .shareExceeded }
        var record = record
        record.chunkSums = Array(repeating: 0, count: DiskRecord.chunkCount(record.bodyBytes))
        let digest = record.name.digest
        // An entry stays in its queue, so that the later of two records of it follows the other in
        // the order of segments. (A power failure may bring back a reclaimed segment; an older
        // response then counts as long as it is fresh, unless a mark covers it.)
        let queue =
            view.shards.find(digest).map { $0.flags.contains(.inMain) ? .main : .small }
            ?? admissionQueue(digest)
        let bytes = record.extent.recordBytes
        while true {
            let place = allocator.allocate(
                recordBytes: bytes, in: queue, version: record.invalidationVersion)
            switch place {
            case .tooLarge: return .tooLarge
            case .wait: preconditionFailure("a reclaim is over before the next record comes")
            case .open(let id, let sequence, let closing):
                try open(id, queue, sequence: sequence, closing: closing, now: now)
            case .reclaim(let id): try reclaim(id, now: now)
            case .write(let id, let offset):
                let location = try append(
                    &record, body, in: id, queue, at: offset)
                let entry = record.entry(at: location, in: queue)
                guard commit({ indexEntry(digest, entry) }) else {
                    entryForgotten(digest, entry)
                    return .superseded
                }
                counters.add(.admittedRecords)
                counters.add(.admittedBytes, bytes)
                return .written
            }
        }
    }

    /// Returns the queue for an entry that is not in the index.
    ///
    /// If a restart could find an earlier record of the entry, that is the earlier record's queue:
    /// in the other queue, the earlier record could count as the later one.
    private func admissionQueue(_ digest: EntryDigest) -> SegmentQueue {
        let queue = policy.queue(forNewEntry: digest.first)
        guard entriesInLaterSegments[Int(queue.rawValue)].contains(digest) else { return queue }
        return queue == .main ? .small : .main
    }

    /// Writes a record at the position that the allocator assigned; if that fails, the segment is
    /// closed.
    private func append(
        _ record: inout DiskRecord, _ body: [ByteBuffer], in id: SegmentID,
        _ queue: SegmentQueue, at offset: Int
    ) throws(DiskFile.Failure) -> DiskLocation {
        guard let segment = openSegments[Int(queue.rawValue)], segment.id == id else {
            preconditionFailure("segment \(id.index) is not open")
        }
        let salt = segment.header.salt
        record.chunkSums = Self.checksums(body, of: record.bodyBytes, salt, UInt64(offset))
        do {
            try write(record, body, salt, at: offset, to: segment.file)
        } catch {
            closeAfterWriteError(queue, recordBytes: record.extent.recordBytes)
            throw error
        }
        return appendToFooter(record, in: queue, at: offset)
    }

    /// Returns a checksum for each chunk of the body, which comes in pieces of any size.
    private static func checksums(
        _ body: [ByteBuffer], of bytes: UInt64, _ salt: UInt64, _ offset: UInt64
    ) -> [UInt64] {
        var sums: [UInt64] = []
        sums.reserveCapacity(DiskRecord.chunkCount(bytes))
        let start = { (number: Int) in
            XXH64(seed: DiskFormat.chunkSeed(salt: salt, offset: offset, number: number))
        }
        var sum = start(0)
        var inChunk = 0
        for piece in body {
            let span = piece.readableBytesUInt8Span
            var position = 0
            while position < span.count {
                let count = min(span.count - position, DiskFormat.chunkBytes - inChunk)
                sum.update(span.extracting(position..<position + count))
                position += count
                inChunk += count
                guard inChunk == DiskFormat.chunkBytes else { continue }
                sums.append(sum.finish())
                sum = start(sums.count)
                inChunk = 0
            }
        }
        if inChunk > 0 { sums.append(sum.finish()) }
        return sums
    }

    /// Writes a record: head and small pieces in one write, large pieces separately.
    private func write(
        _ record: DiskRecord, _ body: [ByteBuffer], _ salt: UInt64, at offset: Int,
        to file: any VolumeFile
    ) throws(DiskFile.Failure) {
        var bytes = record.metaBytes(salt: salt, offset: UInt64(offset))
        var position = UInt64(offset)
        for piece in body {
            let span = piece.readableBytesUInt8Span
            guard bytes.count + span.count > DiskFormat.chunkBytes else {
                bytes += span.copy(0..<span.count)
                continue
            }
            try write(bytes.span, to: file, at: position)
            position += UInt64(bytes.count)
            bytes.removeAll(keepingCapacity: true)
            try write(span, to: file, at: position)
            position += UInt64(span.count)
        }
        let left = offset + record.extent.recordBytes - Int(position) - bytes.count
        bytes.append(contentsOf: repeatElement(0, count: left))
        if !bytes.isEmpty { try write(bytes.span, to: file, at: position) }
    }

    /// Adds a written record to the open segment's footer entries and returns its location.
    func appendToFooter(_ record: DiskRecord, in queue: SegmentQueue, at offset: Int)
        -> DiskLocation
    {
        let entry = SegmentFooter.Entry(record, at: UInt64(offset))
        guard let segment = openSegments[Int(queue.rawValue)] else {
            preconditionFailure("\(queue) is not open")
        }
        let id = segment.id
        segment.entries.append(entry)
        segment.recordsEnd = UInt64(offset + record.extent.recordBytes)
        let least = leastVersionsOnDisk[Int(id.index)]
        leastVersionsOnDisk[Int(id.index)] = min(
            least ?? record.invalidationVersion, record.invalidationVersion)
        let names = record.fingerprints
        if names.count > SegmentFooter.fingerprintsMax { self.fingerprints[Int(id.index)] = nil }
        for name in names { self.fingerprints[Int(id.index)]?.insert(name) }
        return DiskLocation(segment: UInt16(id.index), offsetUnits: entry.offsetUnits)
    }

    private func indexEntry(_ digest: EntryDigest, _ entry: DiskEntry) {
        if let old = view.shards.insert(digest, entry) {
            recordRemoved(old)
            // The footer of its segment still lists it, so it would be found again once the later
            // record is forgotten.
            hasOutdatedFooter[Int(old.location.segment)] = true
        }
        policy.entryCountGrew(to: view.shards.count)
    }

    /// Subtracts an entry's record from the live bytes of its segment.
    func recordRemoved(_ entry: DiskEntry) {
        allocator.entryRemoved(
            SegmentID(index: UInt32(entry.location.segment)), recordBytes: entry.bytes)
    }

    /// Records that an entry was removed from the index while its record stays in the segment.
    ///
    /// A restart that finds the segment without a valid footer finds the record again, so a later
    /// record of the entry must follow it in the order of segments.
    func entryForgotten(_ digest: EntryDigest, _ entry: DiskEntry) {
        recordRemoved(entry)
        let segment = Int(entry.location.segment)
        // So that the segment's footer does not list it permanently.
        hasOutdatedFooter[segment] = true
        let other: SegmentQueue = entry.flags.contains(.inMain) ? .small : .main
        guard let next = openSegments[Int(other.rawValue)],
            next.header.sequence < allocator.segments[segment].sequence
        else { return }
        entriesInLaterSegments[Int(other.rawValue)].insert(digest)
        // The next record goes into a new segment, which follows all of them.
        if entriesInLaterSegments[Int(other.rawValue)].count > Self.entriesInLaterSegmentsMax {
            closeOpenSegment(other)
        }
    }

    /// Maximum number of such entries, about 2 MiB.
    private static let entriesInLaterSegmentsMax = 1 << 16

    // MARK: Segments

    /// Prepares a segment for records: allocates its file in full and syncs a header.
    func open(
        _ id: SegmentID, _ queue: SegmentQueue, sequence: UInt64, closing: SegmentID?, now: Int64
    ) throws(DiskFile.Failure) {
        if closing != nil, let segment = openSegments[Int(queue.rawValue)] {
            openSegments[Int(queue.rawValue)] = nil
            do { try writeFooter(of: segment) } catch {
                // A scan finds its records.
                allocator.segmentClosed(id)
                throw error
            }
        }
        let header = SegmentHeader(
            nodeID: identity.nodeID, segmentBytes: segmentBytes, sequence: sequence,
            salt: random.next(), openedAtVersion: marks.journaledVersion, openedWall: now,
            queue: queue.rawValue)
        do {
            let file = try file(of: id)
            try file.replaceWithZeros(segmentBytes)
            try write(header.bytes.span, to: file, at: 0)
            try file.sync()
            leastVersionsOnDisk[Int(id.index)] = nil
            fingerprints[Int(id.index)] = FingerprintSet()
            hasStaleHeader[Int(id.index)] = false
            view.slots[Int(id.index)].beginGeneration(
                .init(file: file, salt: header.salt, sequence: sequence))
            openSegments[Int(queue.rawValue)] = OpenSegment(id: id, header: header, file: file)
            entriesInLaterSegments[Int(queue.rawValue)] = []
        } catch {
            allocator.segmentClosed(id)
            throw error
        }
    }

    /// Tests the disk; throws if a write or sync fails, or if there is no space for the next
    /// segment.
    package func probe() throws(DiskFile.Failure) {
        try volume.probe()
        guard let missing = files.firstIndex(where: { $0 == nil }) else { return }
        _ = try file(of: SegmentID(index: UInt32(missing)))
    }

    private func file(of id: SegmentID) throws(DiskFile.Failure) -> any VolumeFile {
        if let known = files[Int(id.index)] { return known }
        let file = try volume.open(SegmentFiles.name(Int(id.index)), creates: true)
        if try file.size() > segmentBytes { try file.truncate(to: segmentBytes) }
        try file.allocate(segmentBytes)
        try volume.sync()
        files[Int(id.index)] = file
        return file
    }

    /// Writes the footer of an open segment, without records that are no longer their entry's.
    func writeFooter(of segment: OpenSegment) throws(DiskFile.Failure) {
        try writeFooter(
            of: segment.id, segment.header, segment.entries, recordsEnd: segment.recordsEnd,
            to: segment.file)
    }

    func writeFooter(
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
        var footer = SegmentFooter(
            entries: current, recordsEnd: recordsEnd, sequence: header.sequence,
            leastOmittedVersion: leastVersionsOnDisk[Int(id.index)],
            fingerprints: fingerprints[Int(id.index)]?.fingerprints)
        // A segment written by an earlier version may be too full for them.
        if footer.start(segmentBytes: segmentBytes) < recordsEnd { footer.fingerprints = nil }
        let bytes = footer.bytes(salt: header.salt, segmentBytes: segmentBytes)
        hasOutdatedFooter[Int(id.index)] = false
        try write(bytes.span, to: file, at: segmentBytes - UInt64(bytes.count))
    }

    /// Closes the open segment after a failed write; its position is lost.
    func closeAfterWriteError(_ queue: SegmentQueue, recordBytes: Int) {
        guard let segment = openSegments[Int(queue.rawValue)] else { return }
        allocator.entryRemoved(segment.id, recordBytes: recordBytes)
        closeOpenSegment(queue)
    }

    /// Closes the open segment of a queue.
    private func closeOpenSegment(_ queue: SegmentQueue) {
        guard let segment = openSegments[Int(queue.rawValue)] else { return }
        allocator.segmentClosed(segment.id)
        openSegments[Int(queue.rawValue)] = nil
        entriesInLaterSegments[Int(queue.rawValue)] = []
        // Without a footer, a scan finds its records; the failure may be due to a full disk only.
        try? writeFooter(of: segment)
    }
}

extension DiskRecord {
    /// Returns the index entry of a record at this location.
    fileprivate func entry(at location: DiskLocation, in queue: SegmentQueue) -> DiskEntry {
        DiskEntry(
            location: location, lengthUnits: units, lastAccess: lastAccess,
            accessCount: UInt8(min(accessCount, UInt16(UInt8.max))),
            flags: queue == .main ? .inMain : [], share: DiskShareID.number(ofKey: key.span))
    }

    /// The size of the record in units of ``Tiers/DiskFormat/unitBytes``.
    var units: UInt32 { UInt32(extent.recordBytes / DiskFormat.unitBytes) }
}
