package import Ground
import Tiers

extension DiskLog {
    /// Takes over that entries were used, as often and as late as it says.
    package func touch(_ digest: EntryDigest, count: UInt32, at second: UInt32) {
        guard let location = view.shards.touch(digest, count: count, at: second) else { return }
        counters.add(.touchesApplied)
        hasOutdatedFooter[Int(location.segment)] = true
    }

    /// Writes the accesses of closed segments behind their records, so that a restart knows them.
    package func checkpoint() throws(DiskFile.Failure) {
        for (index, segment) in allocator.segments.enumerated() where segment.state == .free {
            try eraseHeader(index)
        }
        for (index, segment) in allocator.segments.enumerated()
        where hasOutdatedFooter[index] && segment.state == .closed {
            let id = SegmentID(index: UInt32(index))
            guard let use = view.slots[index].current,
                case .recovered(let found) = SegmentFiles.recover(use.file, identity),
                found.header.sequence == use.sequence
            else { continue }
            try writeFooter(
                of: id, found.header, found.entries, recordsEnd: found.recordsEnd, to: use.file)
        }
    }

    /// Forgets what readers have taken out of the index; gives a note for each that was damaged.
    package func takeRemoved() -> [DiskEvent] {
        view.takeRemoved().compactMap { lost in
            let segment = Int(lost.entry.location.segment)
            // The segment may have been reclaimed since.
            if allocator.segments[segment].sequence == lost.sequence {
                // It may be readable again at the next start, and older than what is stored until
                // then.
                entryForgotten(lost.digest, lost.entry)
            }
            return lost.why.map {
                .recordLost(
                    file: SegmentFiles.name(segment), offset: Int(lost.entry.offset), why: $0)
            }
        }
    }

    /// Gives up what was not asked for within the age limit; looks at up to `entriesMax` entries
    /// and goes on from there the next time.
    package func expireIdleEntries(atMost entriesMax: Int, now: Int64) {
        let least = leastAccess(now)
        view.setLeastAccess(least)
        guard least > 0 else { return }
        var left = entriesMax
        for _ in 0..<view.shards.shardCount where left > 0 {
            let part = view.shards.entries(
                inShard: expiryScanPosition.shard, below: expiryScanPosition.below, atMost: left
            ) { $0.lastAccess < least }
            for (digest, entry) in part.found {
                guard view.shards.remove(digest, ifAt: entry.location) else { continue }
                entryForgotten(digest, entry)
                counters.add(.expiredEntries)
            }
            left -= part.looked
            expiryScanPosition =
                part.next.map { (expiryScanPosition.shard, $0) }
                ?? ((expiryScanPosition.shard + 1) % view.shards.shardCount, nil)
        }
    }

    /// What was last asked for before this second is too old.
    func leastAccess(_ now: Int64) -> UInt32 {
        UInt32(clamping: now / 1000 - settings.ageLimit.seconds)
    }
}
