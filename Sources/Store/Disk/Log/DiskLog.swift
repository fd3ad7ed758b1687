package import Ground
package import Tiers

/// The writer of a node's log, and the only one that changes its files.
///
/// It decides, with ``Tiers/ReclaimPolicy``, what the log keeps, on one thread, and never blocks a
/// reader, except as ``SegmentSlot`` describes. When a system call fails, the data being written is
/// lost, the segment is closed, and the error is thrown; the log stays usable.
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

        /// Returns the second (since 1970) before which a last access is too old; `now` is in
        /// milliseconds since 1970.
        func leastAccess(now: Int64) -> UInt32 {
            UInt32(clamping: now / 1000 - ageLimit.seconds)
        }
    }

    /// The log as readers use it.
    package let view: DiskView
    let settings: Settings
    let counters: DiskCounters
    var segments: SegmentWriter
    var policy: ReclaimPolicy
    private var legacyMarkFiles: LegacyMarkFiles
    /// The limits on what sites may use of the log.
    var shareLimits = DiskShareLimits()
    /// The search for entries of a site over its limit.
    var shareScan = IndexScan()
    /// The search for idle entries.
    private var expiryScan = IndexScan()

    /// The invalidations of the node.
    package var marks: InvalidationIndex { view.marks }
    var segmentCounts: SegmentAllocator.Counts { segments.allocator.counts }

    /// Opens the log of a volume, or starts an empty one.
    ///
    /// - Parameters:
    ///   - volume: the directory of the log's files.
    ///   - settings: the settings of the log.
    ///   - identity: the node, with the epoch of this start.
    ///   - marks: receives the recovered invalidations, in addition to those from a time without a
    ///     log.
    ///   - counters: the counters.
    ///   - formerWall: the newest wall time known before this start, in milliseconds since 1970.
    ///   - now: the current wall time, in milliseconds since 1970.
    ///   - onEvent: receives events for the operator.
    /// - Returns: the opened log, with the entries and marks recovered from its files.
    /// - Throws: ``DiskFile/Failure`` if an operation on the log's files fails and the log cannot
    ///   be opened without it.
    package static func open(
        _ volume: any DiskVolume, _ settings: Settings, _ identity: NodeIdentity,
        marks: InvalidationIndex = InvalidationIndex(), counters: DiskCounters, formerWall: Int64,
        now: Int64, onEvent: (DiskEvent) -> Void
    ) throws(DiskFile.Failure) -> DiskLog {
        let recovered = try RecoveredLog(
            volume, settings, identity, formerWall: formerWall, now: now, onEvent: onEvent)
        let view = DiskView(
            identity: identity, segments: settings.plan.segments, shards: recovered.shards,
            marks: marks, figures: counters, validation: settings.validation)
        let log = try DiskLog(volume, settings, view, recovered)
        log.recoverMarks(volume, recovered, onEvent)
        try log.segments.publish(recovered.files)
        onEvent(
            .logOpened(
                path: volume.path, entries: view.shards.count, segments: recovered.files.count,
                scanned: recovered.files.count { $0.unclosed != nil }))
        return log
    }

    private init(
        _ volume: any DiskVolume, _ settings: Settings, _ view: DiskView, _ recovered: RecoveredLog
    ) throws(DiskFile.Failure) {
        let plan = settings.plan
        self.settings = settings
        self.view = view
        counters = view.counters
        segments = SegmentWriter(
            volume, view, plan: plan, random: settings.random, recovered: recovered.files)
        policy = ReclaimPolicy(
            capacityBytes: UInt64(plan.segments - 1) * UInt64(plan.segmentBytes),
            expectedEntries: 1024, ageLimit: settings.ageLimit)
        policy.entryCountGrew(to: view.shards.count)
        try segments.retainMarksForUnreadableFiles()
        legacyMarkFiles = try LegacyMarkFiles(truncatedIn: volume)
    }

    /// Recovers the invalidations; the journal contained everything up to the greatest version of
    /// anything found.
    ///
    /// If some invalidations may be missing, every entry from before this start is revalidated
    /// before it is served. The first journal file of this start records that.
    private func recoverMarks(
        _ volume: any DiskVolume, _ recovered: RecoveredLog, _ onEvent: (DiskEvent) -> Void
    ) {
        let least = leastVersion
        let (identity, reached) = (view.identity, recovered.lastVersion)
        var found = settings.markRecovery(volume, identity) { marks in
            let later = marks.filter { $0.version > least }
            let held = fingerprintsOnDisk(among: Set(later.compactMap(\.name)).sorted())
            return later.filter { $0.name.map(held.contains) ?? true }
        }
        let doubt: String? =
            if let reason = found.incompleteReason {
                reason
            } else if found.lastVersion < reached, reached.count > 0 {
                "the latest invalidations are missing"
            } else if legacyMarkFiles.exist {
                "invalidations were written by another version"
            } else if recovered.isClockBehind {
                "the clock is behind the newest stored time"
            } else { nil }
        if let doubt {
            found.incompleteReason = doubt
            if segments.allocator.leastVersion != nil { onEvent(.revalidationRequired(why: doubt)) }
            let version = InvalidationVersion(epoch: identity.bootEpoch, count: 0)
            found.table.apply(InvalidationMark(.everything, isSoft: true, version: version))
        }
        marks.open(epoch: identity.bootEpoch, found)
    }

    /// Removes the mark files of an earlier version once the journal contains the invalidations.
    package func removeLegacyMarkFiles() {
        guard legacyMarkFiles.exist, marks.journaledVersion.epoch == view.identity.bootEpoch else {
            return
        }
        legacyMarkFiles.remove()
    }

    /// Writes outdated footers and closes the open segments, at shutdown.
    package func close() throws(DiskFile.Failure) { try segments.close() }

    /// Tests the disk; throws if a write or sync fails, or if there is no space for the next
    /// segment.
    package func probe() throws(DiskFile.Failure) { try segments.probe() }

    /// Writes the access counts of closed segments to their footers, so that a restart knows them;
    /// erases the headers of reclaimed segments.
    package func checkpoint() throws(DiskFile.Failure) { try segments.checkpoint() }

    /// The least version of any record in the log, or left on its disk; `.last` if there is none.
    package var leastVersion: InvalidationVersion { segments.leastVersion }

    /// Returns those of the fingerprints `wanted`, in ascending order, of which the log or its disk
    /// may hold an entry.
    package func fingerprintsOnDisk(among wanted: [UInt32]) -> Set<UInt32> {
        segments.fingerprintsOnDisk(among: wanted)
    }

    // MARK: Entries

    /// Removes an entry from the index; a restart that finds its segment without a footer may find
    /// its record again.
    package func forget(_ name: EntryName) {
        guard let entry = view.shards.remove(name.digest) else { return }
        segments.entryForgotten(name.digest, entry)
    }

    /// Applies `count` accesses of an entry, the last one at `second` (since 1970).
    package func touch(_ digest: EntryDigest, count: UInt32, at second: UInt32) {
        guard let location = view.shards.touch(digest, count: count, at: second) else { return }
        counters.add(.touchesApplied)
        segments.footerOutdated(of: location)
    }

    /// Processes entries that readers removed from the index; returns an event for each damaged
    /// one.
    package func takeRemoved() -> [DiskEvent] {
        view.takeRemoved().compactMap { lost in
            let segment = Int(lost.entry.location.segment)
            // The segment may have been reclaimed meanwhile.
            if segments.allocator.segments[segment].sequence == lost.sequence {
                // The next start may be able to read it again, and it would be older than what is
                // stored until then.
                segments.entryForgotten(lost.digest, lost.entry)
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
        let least = settings.leastAccess(now: now)
        view.setLeastAccess(least)
        guard least > 0 else { return }
        var left = entriesMax
        for _ in 0..<view.shards.shardCount where left > 0 {
            let part = expiryScan.next(in: view.shards, atMost: left) { $0.lastAccess < least }
            for (digest, entry) in part.found {
                guard view.shards.remove(digest, ifAt: entry.location) else { continue }
                segments.entryForgotten(digest, entry)
                counters.add(.expiredEntries)
            }
            left -= part.looked
        }
    }
}

extension InvalidationMark {
    /// The fingerprint of the URL that the mark covers; `nil` if it covers anything else.
    fileprivate var name: UInt32? {
        if case .url(let name) = target { URLName.fingerprint(name[...]) } else { nil }
    }
}
