package import Ground
package import Tiers

/// The writer of a node's log; only it changes what is on disk.
///
/// It performs what ``Tiers/SegmentAllocator`` and ``Tiers/ReclaimPolicy`` decide, on one thread,
/// and never blocks a reader, except as ``SegmentSlot`` describes. When a system call fails, the
/// data being written is lost, the segment is closed, and the error is thrown; the log stays
/// usable.
///
/// Not thread-safe.
package final class DiskLog {
    /// Settings of a ``DiskLog``.
    package struct Settings: Sendable {
        /// The number and size of segments.
        package var plan: DiskPlan
        /// Time after which an entry that was not requested expires.
        package var ageLimit: Interval
        /// The 128-bit secret key of the index's hash function.
        package var keys: (UInt64, UInt64)
        /// The generator of segment salts.
        package var random: SplitMix64
        /// An additional check of each record that is read for a request.
        package var validation: RecordValidation = { _ in nil }
        /// Reads the invalidations that the directory's journal contains.
        package var markRecovery: MarkRecovery = { _, _, _ in RecoveredMarks(table: MarkTable()) }

        /// Creates settings from their parts, without a record check and without a journal.
        package init(plan: DiskPlan, ageLimit: Interval, keys: (UInt64, UInt64), random: SplitMix64)
        {
            self.plan = plan
            self.ageLimit = ageLimit
            self.keys = keys
            self.random = random
        }
    }

    /// The log as readers use it.
    package let view: DiskView
    let volume: any DiskVolume
    let settings: Settings
    let counters: DiskCounters
    var random: SplitMix64
    var allocator: SegmentAllocator
    var policy: ReclaimPolicy
    /// The file of each segment, once it is open.
    var files: [(any VolumeFile)?]
    /// The open segments, indexed by ``Tiers/SegmentQueue``.
    var openSegments: [OpenSegment?] = [nil, nil]
    /// The least version of the records that a power failure may still bring back from each file: a
    /// reclaimed segment is on the disk until its next header is.
    var leastVersionsOnDisk: [InvalidationVersion?]
    /// Fingerprints of the names of all records that a restart might find in each file; `nil`
    /// matches any name.
    var fingerprints: [FingerprintSet?]
    /// True for segments whose footer is older than the index.
    var hasOutdatedFooter: [Bool]
    /// By ``Tiers/SegmentQueue``: forgotten entries with a record in a segment of the other queue
    /// that was opened after this queue's open segment.
    var entriesInLaterSegments: [Set<EntryDigest>] = [[], []]
    /// True for reclaimed segments whose files still have their old header.
    var hasStaleHeader: [Bool]
    /// True while emptied mark files of an earlier version exist: they signal missing marks until
    /// the journal does.
    var hasLegacyMarkFiles = false
    /// The limits on what sites may use of the log.
    var shareLimits = DiskShareLimits()
    /// The position of the search for entries of a site over its limit.
    var shareScanPosition: (shard: Int, below: Int?) = (0, nil)
    /// The position of the search for idle entries.
    var expiryScanPosition: (shard: Int, below: Int?) = (0, nil)

    /// The invalidations of the node.
    package var marks: InvalidationIndex { view.marks }
    var identity: NodeIdentity { view.identity }
    var segmentBytes: UInt64 { UInt64(settings.plan.segmentBytes) }

    /// Creates a log from `recovered` segments; see
    /// ``open(_:_:_:marks:figures:formerWall:now:onEvent:)``.
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
            shards: shards, marks: marks, figures: figures, validation: settings.validation)
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

    /// Writes outdated footers and closes the open segments, at shutdown.
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

    /// The least version of any record in the log, or left on its disk; `.last` if there is none.
    package var leastVersion: InvalidationVersion {
        min(allocator.leastVersion ?? .last, leastVersionsOnDisk.compactMap { $0 }.min() ?? .last)
    }

    /// Returns those of the fingerprints `wanted`, in ascending order, of which the log or its disk
    /// may hold an entry.
    package func fingerprintsOnDisk(among wanted: [UInt32]) -> Set<UInt32> {
        guard fingerprints.allSatisfy({ $0 != nil }) else { return Set(wanted) }
        var found: Set<UInt32> = []
        for index in fingerprints.indices { fingerprints[index]?.intersect(wanted, into: &found) }
        return found
    }

    /// Removes an entry from the index; a restart that finds its segment without a footer may find
    /// its record again.
    package func forget(_ name: EntryName) {
        guard let entry = view.shards.remove(name.digest) else { return }
        entryForgotten(name.digest, entry)
    }
}

extension DiskLog {
    /// Entries examined per step to find one to evict, and in total for one record.
    private static let sample = 512
    private static let examinedMax = 1 << 17

    /// Sets the limits of sites; nothing is evicted before a site's next record arrives.
    package func setShareLimits(_ shares: DiskShareLimits) {
        self.shareLimits = shares
    }

    /// Evicts entries of the record's site until the record fits in its share; false if it cannot.
    ///
    /// Each step evicts the least recently used of a sample. The disk space becomes free when the
    /// segments are reclaimed; what counts here are indexed entries.
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
            // A shard without entries also counts as a step.
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
    /// Applies `count` accesses of an entry, the last one at `second` (since 1970).
    package func touch(_ digest: EntryDigest, count: UInt32, at second: UInt32) {
        guard let location = view.shards.touch(digest, count: count, at: second) else { return }
        counters.add(.touchesApplied)
        hasOutdatedFooter[Int(location.segment)] = true
    }

    /// Writes the access counts of closed segments to their footers, so that a restart knows them;
    /// erases the headers of reclaimed segments.
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

    /// Processes entries that readers removed from the index; returns an event for each damaged
    /// one.
    package func takeRemoved() -> [DiskEvent] {
        view.takeRemoved().compactMap { lost in
            let segment = Int(lost.entry.location.segment)
            // The segment may have been reclaimed meanwhile.
            if allocator.segments[segment].sequence == lost.sequence {
                // The next start may be able to read it again, and it would be older than what is
                // stored until then.
                entryForgotten(lost.digest, lost.entry)
            }
            return lost.why.map {
                .recordLost(
                    file: SegmentFiles.name(segment), offset: Int(lost.entry.offset), why: $0)
            }
        }
    }

    /// Expires entries not requested within the age limit.
    ///
    /// Examines up to `entriesMax` entries per call and continues there the next time; `now` is in
    /// milliseconds since 1970.
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

    /// Returns the second (since 1970) before which a last access is too old; `now` is in
    /// milliseconds since 1970.
    func leastAccess(_ now: Int64) -> UInt32 {
        UInt32(clamping: now / 1000 - settings.ageLimit.seconds)
    }
}
