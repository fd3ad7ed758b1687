package import Ground
package import Tiers

/// The writer of a node's log: the one place that changes what is on disk.
///
/// It does what ``Tiers/SegmentAllocator`` and ``Tiers/ReclaimPolicy`` decide, in one thread, and
/// never keeps a reader waiting. When a call of the system fails, what was being written is lost,
/// the segment takes no more, and the error is thrown; the log stays usable.
///
/// Not thread-safe.
package final class DiskLog {
    /// What the log is told at its start.
    package struct Settings: Sendable {
        package var plan: DiskPlan
        /// What was not asked for within it is given up.
        package var ageLimit: Interval
        /// 128 bits that no client knows.
        package var keys: (UInt64, UInt64)
        /// For salts.
        package var random: SplitMix64
        /// What is held against each record that is read for a request.
        package var validation: RecordValidation = { _ in nil }
        /// What the directory's journal has of what was invalidated.
        package var markRecovery: MarkRecovery = { _, _, _ in RecoveredMarks(table: MarkTable()) }

        package init(plan: DiskPlan, ageLimit: Interval, keys: (UInt64, UInt64), random: SplitMix64)
        {
            self.plan = plan
            self.ageLimit = ageLimit
            self.keys = keys
            self.random = random
        }
    }

    package let view: DiskView
    let volume: any DiskVolume
    let settings: Settings
    let counters: DiskCounters
    var random: SplitMix64
    var allocator: SegmentAllocator
    var policy: ReclaimPolicy
    /// The file of each segment, once it is open.
    var files: [(any VolumeFile)?]
    /// By ``Tiers/SegmentQueue``.
    var openSegments: [OpenSegment?] = [nil, nil]
    /// The least stamp of what a power failure may still bring back from each file: a segment that
    /// was given up is on the disk until its next header is.
    var leastVersionsOnDisk: [InvalidationVersion?]
    /// The names of all records that a start might find in each file; nil for any.
    var fingerprints: [FingerprintSet?]
    /// Segments whose footers are behind the index.
    var hasOutdatedFooter: [Bool]
    /// By ``Tiers/SegmentQueue``, entries that were forgotten while a record of theirs lies in a
    /// segment which was opened after the queue's open one.
    var entriesInLaterSegments: [Set<EntryDigest>] = [[], []]
    /// Segments that were given up, and whose files still begin with what they were.
    var hasStaleHeader: [Bool]
    /// Files of an earlier version are there, emptied: they say that marks are missing until the
    /// journal says so.
    var hasLegacyMarkFiles = false
    /// What sites may take of the log.
    var shareLimits = DiskShareLimits()
    /// Where the search for entries of a site that has to give some up goes on.
    var shareScanPosition: (shard: Int, below: Int?) = (0, nil)
    /// Where the search for idle entries goes on.
    var expiryScanPosition: (shard: Int, below: Int?) = (0, nil)

    /// What was invalidated.
    package var marks: InvalidationIndex { view.marks }
    var identity: NodeIdentity { view.identity }
    var segmentBytes: UInt64 { UInt64(settings.plan.segmentBytes) }

    /// Takes over what `recovered` has found; ``open(_:_:_:figures:formerWall:now:note:)`` makes
    /// one.
    init(
        _ volume: any DiskVolume, _ settings: Settings, _ identity: NodeIdentity,
        figures: DiskCounters, marks: InvalidationIndex, shards: ShardedDiskIndex,
        recovered: [(id: SegmentID, segment: Segment, names: FingerprintSet?, file: any VolumeFile)]
    ) {
        let plan = settings.plan
        self.volume = volume
        self.settings = settings
        self.counters = figures
        random = settings.random
        view = DiskView(
            identity: identity, segments: plan.segments,
            shards: shards, marks: marks, figures: figures, fault: settings.validation)
        allocator = SegmentAllocator(
            settings: .init(
                segments: plan.segments, segmentBytes: plan.segmentBytes,
                headerBytes: DiskFormat.headerBytes, footerBytes: SegmentFooter.trailerBytes,
                footerBytesPerRecord: SegmentFooter.bytesPerRecord),
            recovered: recovered.map { ($0.id, $0.segment) })
        policy = ReclaimPolicy(
            capacityBytes: UInt64(plan.segments - 1) * UInt64(plan.segmentBytes),
            expectedEntries: 1024, ageLimit: settings.ageLimit)
        files = Array(repeating: nil, count: plan.segments)
        leastVersionsOnDisk = Array(repeating: nil, count: plan.segments)
        fingerprints = Array(repeating: FingerprintSet(), count: plan.segments)
        hasOutdatedFooter = Array(repeating: false, count: plan.segments)
        hasStaleHeader = Array(repeating: false, count: plan.segments)
        for (id, segment, names, file) in recovered {
            files[Int(id.index)] = file
            self.fingerprints[Int(id.index)] = names
            leastVersionsOnDisk[Int(id.index)] = segment.leastVersion
        }
    }

    /// Writes the footers that are behind, and closes the open segments; at shutdown.
    package func close() throws(DiskFile.Failure) {
        try checkpoint()
        for queue in SegmentQueue.allCases {
            guard let segment = openSegments[Int(queue.rawValue)] else { continue }
            openSegments[Int(queue.rawValue)] = nil
            allocator.segmentClosed(segment.id)
            try writeFooter(of: segment)
        }
    }

    func write(
        _ bytes: Span<UInt8>, to file: any VolumeFile, at offset: UInt64
    ) throws(DiskFile.Failure) {
        counters.add(.writtenBytes, bytes.count)
        try file.write(bytes, at: offset)
    }

    /// What nothing in the log, or left behind on its disk, is stamped before.
    package var leastVersion: InvalidationVersion {
        min(allocator.leastVersion ?? .last, leastVersionsOnDisk.compactMap { $0 }.min() ?? .last)
    }

    /// Those of the names, which ascend, of which an entry may be in the log, or left behind on its
    /// disk.
    package func fingerprintsOnDisk(among wanted: [UInt32]) -> Set<UInt32> {
        guard fingerprints.allSatisfy({ $0 != nil }) else { return Set(wanted) }
        var found: Set<UInt32> = []
        for index in fingerprints.indices { fingerprints[index]?.intersect(wanted, into: &found) }
        return found
    }

    /// Takes an entry out of the index; its record may be found again by a start that finds the
    /// segment not closed.
    package func forget(_ name: EntryName) {
        guard let entry = view.shards.remove(name.digest) else { return }
        entryForgotten(name.digest, entry)
    }
}

extension DiskLog {
    /// Entries that are looked at to find one that is given up, and in all for one record.
    private static let sample = 512
    private static let examinedMax = 1 << 17

    /// What sites may take from now on; nothing leaves before the next record of theirs comes.
    package func setShareLimits(_ shares: DiskShareLimits) {
        self.shareLimits = shares
    }

    /// Gives up entries of the record's site until that may take the record too; false if it may
    /// not.
    ///
    /// Each time the one goes that was asked for longest ago, of some that are looked at. Their
    /// place on the disk is free when their segments are reclaimed; what counts is what can be
    /// found.
    func makeRoomInShare(for record: DiskRecord) -> Bool {
        let number = DiskShareID.number(ofKey: record.key.span)
        guard let (group, percent) = shareLimits.limit(of: number) else { return true }
        let capacity = (settings.plan.segments - 1) * settings.plan.segmentBytes
        let limit = Int(Double(capacity) * Double(percent) / 100)
        let bytes = record.extent.recordBytes
        guard bytes <= limit else { return false }
        let replaced = view.shards.find(record.name.digest)
        let freed = replaced.map { shareLimits.contains($0.share, in: group) ? $0.bytes : 0 } ?? 0
        var looks = 0
        while view.shards.bytes(of: group, in: shareLimits) - freed + bytes > limit {
            guard looks < Self.examinedMax else { return false }
            let part = view.shards.entries(
                inShard: shareScanPosition.shard, below: shareScanPosition.below,
                atMost: Self.sample
            ) { shareLimits.contains($0.share, in: group) }
            // A shard without entries is a look, too.
            looks += max(part.looked, Self.sample)
            shareScanPosition =
                part.next.map { (shareScanPosition.shard, $0) }
                ?? ((shareScanPosition.shard + 1) % view.shards.shardCount, nil)
            let idlest = part.found.filter { $0.0 != record.name.digest }
                .min { $0.1.lastAccess < $1.1.lastAccess }
            guard let (digest, entry) = idlest,
                view.shards.remove(digest, ifAt: entry.location)
            else { continue }
            entryForgotten(digest, entry)
            policy.recordDrop(digest.first, bytes: entry.bytes)
            counters.add(.evictedEntries)
        }
        return true
    }
}

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
