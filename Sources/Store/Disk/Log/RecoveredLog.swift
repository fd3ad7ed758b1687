import Ground
import Tiers

/// The contents of a log's files, as a start finds them.
struct RecoveredLog {
    /// The file of one segment.
    struct File {
        /// The number of the segment.
        fileprivate(set) var number: Int
        let file: any VolumeFile
        let header: SegmentHeader
        /// The recovered segment, if its footer does not list all its records; `nil` otherwise.
        fileprivate(set) var unclosed: SegmentRecovery.RecoveredSegment?
        fileprivate(set) var segment: Segment
        /// Fingerprints of the names of all its records; `nil` if unknown, which matches any name.
        fileprivate(set) var names: FingerprintSet?

        fileprivate init(number: Int, file: any VolumeFile, header: SegmentHeader) {
            self.number = number
            self.file = file
            self.header = header
            segment = Segment(
                closedIn: .small, sequence: header.sequence, usedBytes: 0, recordCount: 0,
                liveBytes: 0, leastVersion: nil)
        }

        /// The id of the segment.
        var id: SegmentID { SegmentID(index: UInt32(number)) }
    }

    /// The files of this node's segments, newest first.
    private(set) var files: [File]
    /// The index of all their entries.
    let shards: ShardedDiskIndex
    /// The greatest invalidation version found.
    private(set) var lastVersion = InvalidationVersion.zero
    /// The newest wall time found, in milliseconds since 1970.
    private(set) var newestWall: Int64
    private let settings: DiskLog.Settings
    private let now: Int64

    /// Recovers the files of a volume; removes those that are not valid segments, and the oldest
    /// ones beyond the plan.
    init(
        _ volume: any DiskVolume, _ settings: DiskLog.Settings, _ identity: NodeIdentity,
        formerWall: Int64, now: Int64, onEvent: (DiskEvent) -> Void
    ) throws(DiskFile.Failure) {
        self.settings = settings
        self.now = now
        newestWall = formerWall
        shards = ShardedDiskIndex(key0: settings.keys.0, key1: settings.keys.1)
        files = try Self.files(of: volume, identity, onEvent)
        try discardFiles(beyond: settings.plan.segments, of: volume)
        rebuildIndex(identity, onEvent)
    }

    /// True if the clock is behind the newest time that is stored.
    var isClockBehind: Bool { now + 1000 < newestWall }

    /// Returns the segments of this node, newest first; removes files that are not valid segments.
    private static func files(
        of volume: any DiskVolume, _ identity: NodeIdentity, _ onEvent: (DiskEvent) -> Void
    ) throws(DiskFile.Failure) -> [File] {
        var kept: [File] = []
        for (number, file) in try SegmentFiles.files(in: volume) {
            let read = try? file.read(DiskFormat.headerBytes, at: 0)
            let bytes = read ?? []
            do throws(DiskFormatError) {
                let header = try SegmentHeader(
                    bytes.span, nodeID: identity.nodeID, segmentBytes: identity.segmentBytes)
                kept.append(File(number: number, file: file, header: header))
            } catch {
                // A reclaimed segment that was not reused begins with zeros; one that was never
                // used may be empty.
                if read == nil || bytes.contains(where: { $0 != 0 }) {
                    onEvent(.fileDiscarded(file: SegmentFiles.name(number), why: "\(error)"))
                }
                try volume.remove(SegmentFiles.name(number))
            }
        }
        return kept.sorted { $0.header.sequence > $1.header.sequence }
    }

    /// Removes the oldest segments beyond the limit, and renumbers the others where their numbers
    /// exceed it.
    private mutating func discardFiles(
        beyond segments: Int, of volume: any DiskVolume
    ) throws(DiskFile.Failure) {
        while files.count > segments, let oldest = files.popLast() {
            try volume.remove(SegmentFiles.name(oldest.number))
        }
        var taken = Set(files.map(\.number))
        for index in files.indices where files[index].number >= segments {
            guard let free = (0..<segments).first(where: { !taken.contains($0) }) else { break }
            try volume.rename(
                SegmentFiles.name(files[index].number), to: SegmentFiles.name(free))
            taken.insert(free)
            files[index].number = free
        }
    }

    /// Rebuilds the index from one segment after the other, oldest first.
    private mutating func rebuildIndex(_ identity: NodeIdentity, _ onEvent: (DiskEvent) -> Void) {
        // Bytes of the live records, with their footer entries, by segment.
        var liveBytes = Array(repeating: 0, count: settings.plan.segments)
        for index in files.indices.reversed() {
            guard case .recovered(let found) = SegmentFiles.recover(files[index].file, identity)
            else {
                // A later start may be able to read its records.
                files[index].segment.leastVersion = .zero
                continue
            }
            // Data after the records is left over from the file's previous use.
            let damaged = found.damaged.filter { $0 <= found.recordsEnd }
            if !damaged.isEmpty {
                let name = SegmentFiles.name(files[index].number)
                onEvent(.recordsCorrupt(file: name, offsets: damaged))
            }
            add(found, from: index, &liveBytes)
        }
        for index in files.indices {
            files[index].segment.setLiveBytes(liveBytes[files[index].number])
        }
    }

    /// Adds the records of a recovered segment to the index, in place of older ones of the same
    /// entries.
    private mutating func add(
        _ found: SegmentRecovery.RecoveredSegment, from index: Int, _ liveBytes: inout [Int]
    ) {
        lastVersion = found.entries.map(\.invalidationVersion).reduce(
            max(lastVersion, found.header.openedAtVersion), max)
        newestWall = max(newestWall, found.header.openedWall)
        for entry in found.entries {
            newestWall = max(newestWall, Int64(entry.lastAccess) * 1000)
        }
        let number = files[index].number
        let recovery = LogRecovery(leastAccess: settings.leastAccess(now: now))
        let newest = UInt32(clamping: min(newestWall, now) / 1000)
        recovery.recover(found, at: UInt16(number), newestAccess: newest) {
            liveBytes[number] += $1.bytes + SegmentFooter.bytesPerRecord
            guard let old = shards.insert($0, $1) else { return }
            liveBytes[Int(old.location.segment)] -= old.bytes + SegmentFooter.bytesPerRecord
        }
        if found.needsFooter { files[index].unclosed = found }
        files[index].names = found.fingerprints
        // No file content makes a start fail.
        let used = min(
            settings.plan.segmentBytes - DiskFormat.headerBytes - SegmentFooter.trailerBytes,
            Int(found.recordsEnd) - DiskFormat.headerBytes
                + found.entries.count * SegmentFooter.bytesPerRecord)
        files[index].segment = Segment(
            closedIn: SegmentQueue(rawValue: found.header.queue) ?? .small,
            sequence: found.header.sequence, usedBytes: used, recordCount: found.entries.count,
            liveBytes: 0, leastVersion: found.leastVersion)
    }
}

/// The mark files of an earlier version, whose invalidations can no longer be read.
struct LegacyMarkFiles {
    private let volume: any DiskVolume
    /// True while emptied files exist: they signal missing marks until the journal does.
    private(set) var exist: Bool

    private static let names = ["marks-0", "marks-1"]

    /// Truncates the files, if there are any.
    init(truncatedIn volume: any DiskVolume) throws(DiskFile.Failure) {
        self.volume = volume
        let names = try volume.names().filter(Self.names.contains)
        for name in names { try? volume.open(name, creates: false).truncate(to: 0) }
        exist = !names.isEmpty
    }

    /// Removes the files.
    mutating func remove() {
        for name in Self.names { try? volume.remove(name) }
        exist = false
    }
}
