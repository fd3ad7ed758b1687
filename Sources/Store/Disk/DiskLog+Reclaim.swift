import Ground
import Tiers

extension DiskLog {
    /// Empties a segment: writes the records worth keeping again, and drops the rest.
    func reclaim(_ id: SegmentID, now: Int64) throws(DiskFile.Failure) {
        counters.add(.reclaims)
        let slot = view.slots[Int(id.index)]
        if let use = slot.current {
            let handledBytes = reinsert(from: id, use, now: now)
            if handledBytes < allocator.segments[Int(id.index)].liveBytes {
                removeUnreadableEntries(of: id, use)
            }
        }
        slot.endGeneration()
        hasOutdatedFooter[Int(id.index)] = false
        // From here on the file may be overwritten; what a restart would find in it is outdated.
        hasStaleHeader[Int(id.index)] = true
        // If that fails, the next checkpoint retries.
        try? eraseHeader(Int(id.index))
        allocator.segmentReclaimed(id)
    }

    /// Overwrites the header of a reclaimed segment with zeros.
    func eraseHeader(_ index: Int) throws(DiskFile.Failure) {
        if hasStaleHeader[index], let file = files[index] {
            let zeros = [UInt8](repeating: 0, count: DiskFormat.headerBytes)
            try write(zeros.span, to: file, at: 0)
        }
        hasStaleHeader[index] = false
    }

    /// Decides about every live record of a segment; returns the bytes of the live records it
    /// found.
    private func reinsert(from id: SegmentID, _ use: SegmentSlot.Generation, now: Int64) -> Int {
        let queue = allocator.segments[Int(id.index)].queue
        var handledBytes = 0
        for found in entries(of: id, use) {
            guard let entry = view.shards.find(found.digest),
                entry.location
                    == DiskLocation(segment: UInt16(id.index), offsetUnits: found.offsetUnits)
            else { continue }
            handledBytes += entry.bytes + SegmentFooter.bytesPerRecord
            let idle = Interval.seconds(now / 1000 - Int64(entry.lastAccess))
            switch policy.decision(count: entry.accessCount, idle: idle, in: queue) {
            case .reinsert(let count):
                if isPurged(entry, use)
                    || !reinsert(entry, found, use, count: count, now: now)
                {
                    drop(found.digest, entry, .evictedEntries)
                }
            case .drop: drop(found.digest, entry, .evictedEntries)
            case .expire: drop(found.digest, entry, .expiredEntries)
            }
        }
        return handledBytes
    }

    /// Removes entries whose records the segment did not list, because a part of it is unreadable:
    /// no entry may refer to a position that will be overwritten.
    private func removeUnreadableEntries(of id: SegmentID, _ use: SegmentSlot.Generation) {
        let rest = view.shards.entries(in: UInt16(id.index))
        for (digest, entry) in rest.dropFirst() {
            if view.shards.remove(digest, ifAt: entry.location) { counters.add(.lostRecords) }
        }
        guard let (digest, entry) = rest.first else { return }
        let why = "its segment cannot be read, nor can \(rest.count - 1) more be found in it"
        view.removeUnreadable(digest, entry, use, why: why)
    }

    /// Returns the records listed in the segment's footer, or found by a scan if the footer is
    /// unreadable.
    func entries(of id: SegmentID, _ use: SegmentSlot.Generation) -> [SegmentFooter.Entry] {
        guard case .recovered(let found) = SegmentFiles.recover(use.file, identity),
            found.header.sequence == use.sequence
        else { return [] }
        return found.entries
    }

    private func drop(_ digest: EntryDigest, _ entry: DiskEntry, _ why: DiskCounters.DiskCounter) {
        guard view.shards.remove(digest, ifAt: entry.location) else { return }
        counters.add(why)
        if why == .evictedEntries { policy.recordDrop(digest.first, bytes: entry.bytes) }
    }

    /// Writes a record again in the main queue; false if there is no space for it.
    ///
    /// A record that cannot be read is lost and needs no space.
    private func reinsert(
        _ entry: DiskEntry, _ found: SegmentFooter.Entry, _ use: SegmentSlot.Generation,
        count: UInt8,
        now: Int64
    ) -> Bool {
        while true {
            switch allocator.allocateForReinsertion(
                recordBytes: entry.bytes, version: found.invalidationVersion)
            {
            case .open(let id, let sequence, let closing):
                do {
                    try open(id, .main, sequence: sequence, closing: closing, now: now)
                } catch { return false }
            case .write(let id, let offset):
                let moved: DiskEntry
                do throws(CopyFailure) {
                    moved = try copy(entry, from: use, to: offset, count: count)
                } catch {
                    if error == .unreadable {
                        // The position stays empty; the next record follows it.
                        allocator.entryRemoved(id, recordBytes: entry.bytes)
                        view.removeUnreadable(found.digest, entry, use, why: "it does not check")
                        return true
                    }
                    closeAfterWriteError(.main, recordBytes: entry.bytes)
                    return false
                }
                precondition(moved.location.segment == UInt16(id.index), "another segment")
                guard view.shards.move(found.digest, from: entry.location, to: moved) else {
                    // A reader has removed it from the index meanwhile.
                    entryForgotten(found.digest, moved)
                    return true
                }
                counters.add(.reinsertedRecords)
                return true
            case .tooLarge: return false
            case .reclaim, .wait: preconditionFailure("a reclaim within a reclaim")
            }
        }
    }

    /// Returns true if the record was purged after its request began.
    ///
    /// Checked before the record is assigned a position, which would stay empty.
    private func isPurged(_ entry: DiskEntry, _ use: SegmentSlot.Generation) -> Bool {
        guard let block = try? use.file.read(min(entry.bytes, 16 << 10), at: entry.offset),
            let extent = DiskRecord.extent(block.span, space: entry.bytes),
            extent.metaBytes <= block.count,
            let record = try? DiskRecord(
                meta: block.span.extracting(0..<extent.metaBytes), salt: use.salt,
                offset: entry.offset)
        else { return false }
        return view.effect(on: record) == .purged
    }

    private enum CopyFailure: Error {
        /// The source record cannot be read.
        case unreadable
        /// The destination cannot be written.
        case unwritable
    }

    /// Copies a record into the open segment of the main queue, checking every chunk.
    private func copy(
        _ entry: DiskEntry, from use: SegmentSlot.Generation, to offset: Int, count: UInt8
    ) throws(CopyFailure) -> DiskEntry {
        guard let segment = openSegments[Int(SegmentQueue.main.rawValue)] else { throw .unwritable }
        guard
            var block = try? use.file.read(min(entry.bytes, 80 << 10), at: entry.offset),
            let extent = DiskRecord.extent(block.span, space: entry.bytes)
        else { throw .unreadable }
        if extent.metaBytes > block.count {
            guard let whole = try? use.file.read(extent.metaBytes, at: entry.offset) else {
                throw .unreadable
            }
            block = whole
        }
        guard extent.metaBytes <= block.count,
            var record = try? DiskRecord(
                meta: block.span.extracting(0..<extent.metaBytes), salt: use.salt,
                offset: entry.offset)
        else { throw .unreadable }
        record.lastAccess = entry.lastAccess
        record.accessCount = UInt16(count)
        let meta = record.extent.metaBytes
        // A record of a newer version may be longer than what is written of it here.
        guard record.extent.recordBytes <= entry.bytes else { throw .unreadable }
        for number in record.chunkSums.indices {
            let start = extent.metaBytes + number * DiskFormat.chunkBytes
            let size = min(
                DiskFormat.chunkBytes, Int(record.bodyBytes) - number * DiskFormat.chunkBytes)
            let inBlock =
                start + size <= block.count ? Array(block[start..<start + size]) : nil
            let read = inBlock ?? (try? use.file.read(size, at: entry.offset + UInt64(start)))
            guard let chunk = read, chunk.count == size else { throw .unreadable }
            let seed = DiskFormat.chunkSeed(salt: use.salt, offset: entry.offset, number: number)
            guard XXH64.hash(chunk.span, seed: seed) == record.chunkSums[number] else {
                throw .unreadable
            }
            record.chunkSums[number] = XXH64.hash(
                chunk.span,
                seed: DiskFormat.chunkSeed(
                    salt: segment.header.salt, offset: UInt64(offset), number: number))
            let place = UInt64(offset + meta + number * DiskFormat.chunkBytes)
            guard (try? write(chunk.span, to: segment.file, at: place)) != nil else {
                throw .unwritable
            }
        }
        let end = meta + Int(record.bodyBytes)
        let padding = [UInt8](repeating: 0, count: record.extent.recordBytes - end)
        guard (try? write(padding.span, to: segment.file, at: UInt64(offset + end))) != nil else {
            throw .unwritable
        }
        let head = record.metaBytes(salt: segment.header.salt, offset: UInt64(offset))
        guard (try? write(head.span, to: segment.file, at: UInt64(offset))) != nil else {
            throw .unwritable
        }
        let location = appendToFooter(record, in: .main, at: offset)
        return DiskEntry(
            location: location, lengthUnits: entry.lengthUnits, lastAccess: entry.lastAccess,
            accessCount: count, flags: .inMain, share: entry.share)
    }
}
