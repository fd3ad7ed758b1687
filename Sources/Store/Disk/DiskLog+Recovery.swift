import Ground
package import Tiers

extension DiskLog {
    /// The state of one segment file during recovery.
    private struct RecoveredSegmentFile {
        var number: Int
        let file: any VolumeFile
        let header: SegmentHeader
        /// The recovered segment, if its footer does not list all its records; `nil` otherwise.
        var unclosed: SegmentRecovery.RecoveredSegment?
        var segment: Segment
        /// Fingerprints of the names of all its records; `nil` if unknown, which matches any name.
        var names: FingerprintSet?

        init(number: Int, file: any VolumeFile, header: SegmentHeader) {
            self.number = number
            self.file = file
            self.header = header
            segment = Segment(
                closedIn: .small, sequence: header.sequence, usedBytes: 0, recordCount: 0,
                liveBytes: 0, leastVersion: nil)
        }
    }

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
        var found = try segments(of: volume, identity, onEvent)
        try discard(&found, beyond: settings.plan.segments, of: volume)
        var merge = IndexRebuild(
            settings,
            recovery: LogRecovery(
                leastAccess: UInt32(clamping: now / 1000 - settings.ageLimit.seconds)),
            newestWall: formerWall, now: now)
        for index in found.indices.reversed() {
            merge.add(&found[index], identity, onEvent)
        }
        let log = DiskLog(
            volume, settings, identity, figures: counters, marks: marks, shards: merge.shards,
            recovered: found.map { recovered in
                var segment = recovered.segment
                segment.setLiveBytes(merge.liveBytes[recovered.number])
                let id = SegmentID(index: UInt32(recovered.number))
                return (id, segment, recovered.names, recovered.file)
            })
        try log.retainMarksForUnreadableFiles(of: found)
        let isClockBehind = now + 1000 < merge.newestWall
        try log.recoverMarks(reached: merge.lastVersion, isClockBehind: isClockBehind, onEvent)
        try log.finishOpening(found)
        onEvent(
            .logOpened(
                path: volume.path, entries: log.view.shards.count, segments: found.count,
                scanned: found.count { $0.unclosed != nil }))
        return log
    }

    /// Recovers the invalidations; `reached` is the greatest version of anything found here, and
    /// the journal contained everything up to it.
    ///
    /// If some invalidations may be missing, every entry from before this start is revalidated
    /// before it is served. The first journal file of this start records that.
    private func recoverMarks(
        reached: InvalidationVersion, isClockBehind: Bool, _ note: (DiskEvent) -> Void
    ) throws(DiskFile.Failure) {
        hasLegacyMarkFiles = try truncateLegacyMarkFiles()
        let least = leastVersion
        var found = settings.markRecovery(volume, identity) { marks in
            let later = marks.filter { $0.version > least }
            let held = fingerprintsOnDisk(among: Set(later.compactMap(\.name)).sorted())
            return later.filter { $0.name.map(held.contains) ?? true }
        }
        if found.incompleteReason == nil, found.lastVersion < reached, reached.count > 0 {
            found.incompleteReason = "what was invalidated last is missing"
        }
        if hasLegacyMarkFiles {
            found.incompleteReason = found.incompleteReason ?? "another version has kept what was"
        }
        if isClockBehind {
            found.incompleteReason =
                found.incompleteReason ?? "the clock is behind the newest stored time"
        }
        if let doubt = found.incompleteReason {
            if allocator.leastVersion != nil { note(.revalidationRequired(why: doubt)) }
            let version = InvalidationVersion(epoch: identity.bootEpoch, count: 0)
            found.table.apply(InvalidationMark(.everything, isSoft: true, version: version))
        }
        marks.open(epoch: identity.bootEpoch, found)
    }

    private static let legacyMarkFiles = ["marks-0", "marks-1"]

    /// Truncates the mark files of an earlier version; returns true if there are any.
    private func truncateLegacyMarkFiles() throws(DiskFile.Failure) -> Bool {
        let names = try volume.names().filter(Self.legacyMarkFiles.contains)
        for name in names { try? volume.open(name, creates: false).truncate(to: 0) }
        return !names.isEmpty
    }

    /// Removes the mark files of an earlier version once the journal contains the invalidations.
    package func removeLegacyMarkFiles() throws(DiskFile.Failure) {
        guard hasLegacyMarkFiles, marks.journaledVersion.epoch == identity.bootEpoch else { return }
        for name in Self.legacyMarkFiles { try? volume.remove(name) }
        hasLegacyMarkFiles = false
    }

    /// Returns the segments of this node, newest first; removes files that are not valid segments.
    private static func segments(
        of volume: any DiskVolume, _ identity: NodeIdentity, _ note: (DiskEvent) -> Void
    ) throws(DiskFile.Failure) -> [RecoveredSegmentFile] {
        var kept: [RecoveredSegmentFile] = []
        for (number, file) in try SegmentFiles.files(in: volume) {
            let read = try? file.read(DiskFormat.headerBytes, at: 0)
            let bytes = read ?? []
            do throws(DiskFormatError) {
                let header = try SegmentHeader(
                    bytes.span, nodeID: identity.nodeID, segmentBytes: identity.segmentBytes)
                kept.append(RecoveredSegmentFile(number: number, file: file, header: header))
            } catch {
                // A reclaimed segment that was not reused begins with zeros; one that was never
                // used may be empty.
                if read == nil || bytes.contains(where: { $0 != 0 }) {
                    note(.fileDiscarded(file: SegmentFiles.name(number), why: "\(error)"))
                }
                try volume.remove(SegmentFiles.name(number))
            }
        }
        return kept.sorted { $0.header.sequence > $1.header.sequence }
    }

    /// Removes the oldest segments beyond the limit, and renumbers the others where their numbers
    /// exceed it.
    private static func discard(
        _ found: inout [RecoveredSegmentFile], beyond segments: Int, of volume: any DiskVolume
    ) throws(DiskFile.Failure) {
        while found.count > segments, let oldest = found.popLast() {
            try volume.remove(SegmentFiles.name(oldest.number))
        }
        var taken = Set(found.map(\.number))
        for index in found.indices where found[index].number >= segments {
            guard let free = (0..<segments).first(where: { !taken.contains($0) }) else { break }
            try volume.rename(
                SegmentFiles.name(found[index].number), to: SegmentFiles.name(free))
            taken.insert(free)
            found[index].number = free
        }
    }

    /// Rebuilds the index from one segment after the other, oldest first.
    private struct IndexRebuild {
        let shards: ShardedDiskIndex
        /// Bytes of the live records, with their footer entries, by segment.
        private(set) var liveBytes: [Int]
        /// The greatest invalidation version found.
        private(set) var lastVersion = InvalidationVersion.zero
        /// The newest wall time found, in milliseconds since 1970.
        private(set) var newestWall: Int64
        private let recordBytesMax: Int
        private let recovery: LogRecovery
        private let now: Int64

        init(_ settings: Settings, recovery: LogRecovery, newestWall: Int64, now: Int64) {
            shards = ShardedDiskIndex(key0: settings.keys.0, key1: settings.keys.1)
            liveBytes = Array(repeating: 0, count: settings.plan.segments)
            recordBytesMax =
                settings.plan.segmentBytes - DiskFormat.headerBytes - SegmentFooter.trailerBytes
            self.recovery = recovery
            self.newestWall = newestWall
            self.now = now
        }

        mutating func add(
            _ recovered: inout RecoveredSegmentFile, _ identity: NodeIdentity,
            _ note: (DiskEvent) -> Void
        ) {
            guard case .recovered(let found) = SegmentFiles.recover(recovered.file, identity)
            else {
                // A later start may be able to read its records.
                recovered.segment.leastVersion = .zero
                return
            }
            // Data after the records is left over from the file's previous use.
            let damaged = found.damaged.filter { $0 <= found.recordsEnd }
            if !damaged.isEmpty {
                note(.recordsCorrupt(file: SegmentFiles.name(recovered.number), offsets: damaged))
            }
            lastVersion = found.entries.map(\.invalidationVersion).reduce(
                max(lastVersion, found.header.openedAtVersion), max)
            newestWall = max(newestWall, found.header.openedWall)
            for entry in found.entries {
                newestWall = max(newestWall, Int64(entry.lastAccess) * 1000)
            }
            let newest = UInt32(clamping: min(newestWall, now) / 1000)
            recovery.recover(found, at: UInt16(recovered.number), newestAccess: newest) {
                liveBytes[recovered.number] += $1.bytes + SegmentFooter.bytesPerRecord
                guard let old = shards.insert($0, $1) else { return }
                liveBytes[Int(old.location.segment)] -= old.bytes + SegmentFooter.bytesPerRecord
            }
            if found.needsFooter { recovered.unclosed = found }
            recovered.names = found.fingerprints
            // No file content makes a start fail.
            let used = min(
                recordBytesMax,
                Int(found.recordsEnd) - DiskFormat.headerBytes
                    + found.entries.count * SegmentFooter.bytesPerRecord)
            recovered.segment = Segment(
                closedIn: SegmentQueue(rawValue: found.header.queue) ?? .small,
                sequence: found.header.sequence, usedBytes: used,
                recordCount: found.entries.count, liveBytes: 0,
                leastVersion: found.leastVersion)
        }
    }

    /// Protects records in files that cannot be opened now: a later start may read them, so no mark
    /// that may cover them is dropped.
    private func retainMarksForUnreadableFiles(of found: [RecoveredSegmentFile]) throws(DiskFile
        .Failure)
    {
        for number in try SegmentFiles.numbers(in: volume)
        where !found.contains(where: { $0.number == number }) {
            if number < leastVersionsOnDisk.count {
                leastVersionsOnDisk[number] = .zero
                fingerprints[number] = nil
            } else {
                try volume.remove(SegmentFiles.name(number))
            }
        }
    }

    /// Makes the segments readable, and writes missing footers.
    private func finishOpening(_ found: [RecoveredSegmentFile]) throws(DiskFile.Failure) {
        policy.entryCountGrew(to: view.shards.count)
        for recovered in found {
            let header = recovered.header
            view.slots[recovered.number].beginGeneration(
                .init(file: recovered.file, salt: header.salt, sequence: header.sequence))
        }
        for recovered in found {
            guard let segment = recovered.unclosed else { continue }
            try writeFooter(
                of: SegmentID(index: UInt32(recovered.number)), recovered.header,
                segment.entries, recordsEnd: segment.recordsEnd, to: recovered.file)
        }
    }
}

extension InvalidationMark {
    /// The fingerprint of the URL that the mark covers; `nil` if it covers anything else.
    fileprivate var name: UInt32? {
        if case .url(let name) = target { URLName.fingerprint(name[...]) } else { nil }
    }
}
