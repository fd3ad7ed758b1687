import Ground
package import Tiers

extension DiskLog {
    /// What a start found in one segment file.
    private struct Recovered {
        var number: Int
        var file: any VolumeFile
        var segment: SegmentRecovery.Segment
    }

    /// Takes over the log of a volume, or begins one.
    ///
    /// - Parameters:
    ///   - formerWall: the newest wall time known before this start; `now` the present one; both in
    ///     milliseconds since 1970.
    ///   - note: is told what an operator should know.
    package static func open(
        _ volume: any DiskVolume, _ settings: Settings, _ identity: NodeIdentity,
        figures: DiskFigures, formerWall: Int64, now: Int64, note: (DiskNote) -> Void
    ) throws(DiskFile.Failure) -> DiskLog {
        var found = try segments(of: volume, identity, note)
        found.sort { $0.segment.header.sequence > $1.segment.header.sequence }
        try discard(&found, beyond: settings.plan.segments, of: volume)
        let reached = found.map(\.segment.reached).max() ?? .zero
        let files = [marks(0, of: volume), marks(1, of: volume)]
        let recovery = MarksLog.recover(
            files.map(\.self), nodeID: identity.nodeID, fileBytes: DiskPlan.marksFileBytes,
            reached: reached)
        let newest = found.map(\.segment.newestWall).reduce(formerWall, max)
        let rules = LogRecovery(
            marks: recovery.log.marks,
            leastAccess: UInt32(clamping: now / 1000 - settings.ageLimit.seconds),
            newestAccess: UInt32(clamping: min(newest, now) / 1000))
        let log = takeOver(
            found.reversed(), volume, settings, identity, figures, recovery.log, rules)
        try log.finishOpening(found, note)
        if recovery.isDamaged {
            note(.revalidatesAll(why: "the record of what was deleted is damaged"))
            try log.revalidateAll()
        } else if now + 1000 < newest {
            note(.revalidatesAll(why: "the clock is behind the newest stored time"))
            try log.revalidateAll()
        }
        note(
            .opened(
                path: volume.path, entries: log.view.shards.count, segments: found.count,
                scanned: found.count { $0.segment.needsFooter }))
        return log
    }

    private static func segments(
        of volume: any DiskVolume, _ identity: NodeIdentity, _ note: (DiskNote) -> Void
    ) throws(DiskFile.Failure) -> [Recovered] {
        var kept: [Recovered] = []
        for found in try SegmentFiles.recover(in: volume, identity) {
            let name = SegmentFiles.name(found.number)
            switch found.outcome {
            case .recovered(let segment):
                // What lies further behind are remains of what the file was used for before.
                let damaged = segment.damaged.filter { $0 <= segment.recordsEnd }
                if !damaged.isEmpty { note(.damaged(file: name, offsets: damaged)) }
                kept.append(Recovered(number: found.number, file: found.file, segment: segment))
            case .discarded(let damage):
                // A segment that was given up, and not used again, begins with zeros.
                if damage != .foreign || !found.file.isBlank {
                    note(.discarded(file: name, why: "\(damage)"))
                }
                try volume.remove(name)
            }
        }
        return kept
    }

    /// Removes the oldest segments that the limit has no room for, and numbers the others anew
    /// where their numbers are too great.
    private static func discard(
        _ found: inout [Recovered], beyond segments: Int, of volume: any DiskVolume
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

    private static func marks(_ number: Int, of volume: any DiskVolume) -> [UInt8]? {
        guard let file = try? volume.open("marks-\(number)", creates: false),
            let size = try? file.size(), size <= 1 << 30
        else { return nil }
        return try? file.read(Int(size), at: 0)
    }

    /// Indexes what is to be kept, oldest first.
    private static func takeOver(
        _ found: [Recovered], _ volume: any DiskVolume, _ settings: Settings,
        _ identity: NodeIdentity, _ figures: DiskFigures, _ marks: MarksLog, _ rules: LogRecovery
    ) -> DiskLog {
        let shards = DiskShards(key0: settings.keys.0, key1: settings.keys.1)
        var live = [Int](repeating: 0, count: settings.plan.segments)
        for recovered in found {
            for kept in rules.keep(recovered.segment, at: UInt16(recovered.number)) {
                live[recovered.number] += kept.entry.bytes + SegmentFooter.Entry.bytesCount
                guard let old = shards.insert(kept.digest, kept.entry) else { continue }
                live[Int(old.location.segment)] -= old.bytes + SegmentFooter.Entry.bytesCount
            }
        }
        return DiskLog(
            volume, settings, identity, figures: figures, marks: marks, shards: shards,
            recovered: found.map { recovered in
                let segment = recovered.segment
                // No file, whatever is in it, makes a start fail.
                let used = min(
                    settings.plan.room,
                    Int(segment.recordsEnd) - DiskFormat.headerBytes
                        + segment.entries.count * SegmentFooter.Entry.bytesCount)
                return (
                    SegmentID(index: UInt32(recovered.number)),
                    Segment(
                        closedIn: SegmentQueue(rawValue: segment.header.queue) ?? .small,
                        sequence: segment.header.sequence, usedBytes: used,
                        recordCount: segment.entries.count,
                        liveBytes: min(used, live[recovered.number]),
                        leastStamp: segment.entries.map(\.stamp).min()),
                    recovered.file
                )
            })
    }

    /// Lets readers in, and writes what is missing.
    private func finishOpening(
        _ found: [Recovered], _ note: (DiskNote) -> Void
    ) throws(DiskFile.Failure) {
        takeOverMarks()
        view.setBroadMarks(marks.marks.filter(\.isBroad))
        rule.entriesGrew(to: view.shards.count)
        for recovered in found {
            let header = recovered.segment.header
            view.slots[recovered.number].begin(
                .init(file: recovered.file, salt: header.salt, sequence: header.sequence))
        }
        for recovered in found where recovered.segment.needsFooter {
            try writeFooter(
                of: SegmentID(index: UInt32(recovered.number)), recovered.segment.header,
                recovered.segment.entries, recordsEnd: recovered.segment.recordsEnd,
                to: recovered.file)
        }
    }
}

extension DiskPlan {
    /// Bytes of a segment for records and their footer entries.
    fileprivate var room: Int {
        segmentBytes - DiskFormat.headerBytes - SegmentFooter.trailerBytes
    }
}

extension SegmentRecovery.Segment {
    /// The greatest stamp that it bears.
    fileprivate var reached: DiskStamp {
        entries.map(\.stamp).reduce(header.openedAt, max)
    }

    /// The newest wall time that it knows, in milliseconds since 1970.
    fileprivate var newestWall: Int64 {
        entries.map { Int64($0.lastAccess) * 1000 }.reduce(header.openedWall, max)
    }
}

extension VolumeFile {
    /// True if it begins with zeros.
    fileprivate var isBlank: Bool {
        let start = (try? read(DiskFormat.headerBytes, at: 0)) ?? []
        return start.allSatisfy { $0 == 0 }
    }
}
