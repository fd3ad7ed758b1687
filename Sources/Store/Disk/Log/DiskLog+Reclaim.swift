import Ground
import Tiers

extension DiskLog {
    /// Empties a segment: writes the records worth keeping again, and drops the rest.
    func reclaim(_ id: SegmentID, now: Int64) {
        counters.add(.reclaims)
        if let use = view.slots[Int(id.index)].current {
            let handledBytes = reinsert(from: id, use, now: now)
            if handledBytes < segments.allocator.segments[Int(id.index)].liveBytes {
                removeUnreadableEntries(of: id, use)
            }
        }
        segments.segmentReclaimed(id)
    }

    /// Decides about every live record of a segment; returns the bytes of the live records it
    /// found.
    private func reinsert(from id: SegmentID, _ use: SegmentSlot.Generation, now: Int64) -> Int {
        let queue = segments.allocator.segments[Int(id.index)].queue
        var handledBytes = 0
        for found in segments.recover(use)?.entries ?? [] {
            guard let entry = view.shards.find(found.digest),
                entry.location
                    == DiskLocation(segment: UInt16(id.index), offsetUnits: found.offsetUnits)
            else { continue }
            handledBytes += entry.bytes + SegmentFooter.bytesPerRecord
            let idle = Interval.seconds(now / 1000 - Int64(entry.lastAccess))
            switch policy.decision(count: entry.accessCount, idle: idle, in: queue) {
            case .reinsert(let count):
                if !reinsert(entry, found, use, count: count, now: now) {
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
        let why = "its segment cannot be read; \(rest.count - 1) more records in it are lost"
        view.removeUnreadable(digest, entry, use, why: why)
    }

    /// Removes an entry from the index and counts it; an evicted one is remembered for its next
    /// admission.
    private func drop(_ digest: EntryDigest, _ entry: DiskEntry, _ why: DiskCounters.DiskCounter) {
        guard view.shards.remove(digest, ifAt: entry.location) else { return }
        counters.add(why)
        if why == .evictedEntries { policy.recordDrop(digest.first, bytes: entry.bytes) }
    }

    /// Writes a record again in the main queue; false if there is no space for it, or if it was
    /// purged after its request began.
    ///
    /// A record that cannot be read is lost and needs no space.
    private func reinsert(
        _ entry: DiskEntry, _ found: SegmentFooter.Entry, _ use: SegmentSlot.Generation,
        count: UInt8, now: Int64
    ) -> Bool {
        guard let original = ReclaimedRecord(entry, use, in: view) else {
            view.removeUnreadable(found.digest, entry, use, why: "its checksum does not match")
            return true
        }
        // Before the record is assigned a position, which would stay empty.
        guard view.effect(on: original.record) != .purged else { return false }
        while true {
            switch segments.allocator.allocateForReinsertion(
                recordBytes: entry.bytes, version: found.invalidationVersion)
            {
            case .open(let id, let sequence, let closing):
                do {
                    try segments.open(id, .main, sequence: sequence, closing: closing, now: now)
                } catch { return false }
            case .write(_, let offset): return move(original, found.digest, count, to: offset)
            case .tooLarge: return false
            case .reclaim, .wait: preconditionFailure("a reclaim within a reclaim")
            }
        }
    }

    /// Copies a record to the position that the allocator assigned; false if that cannot be
    /// written.
    private func move(
        _ original: ReclaimedRecord, _ digest: EntryDigest, _ count: UInt8, to offset: Int
    ) -> Bool {
        let old = original.entry
        let location: DiskLocation
        do {
            location = try segments.append(original, accessCount: count, at: offset)
        } catch {
            guard error == .unreadable else { return false }
            view.removeUnreadable(digest, old, original.use, why: "its checksum does not match")
            return true
        }
        let moved = DiskEntry(
            location: location, lengthUnits: old.lengthUnits, lastAccess: old.lastAccess,
            accessCount: count, flags: .inMain, share: old.share)
        guard view.shards.move(digest, from: old.location, to: moved) else {
            // A reader has removed it from the index meanwhile.
            segments.entryForgotten(digest, moved)
            return true
        }
        counters.add(.reinsertedRecords)
        return true
    }
}
