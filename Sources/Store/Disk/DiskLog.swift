package import Ground
package import Tiers

/// The writer of a node's log: the one place that changes what is on disk.
///
/// It does what ``Tiers/SegmentLedger`` and ``Tiers/ReclaimRule`` decide, in one thread, and never
/// keeps a reader waiting. When a call of the system fails, what was being written is lost, the
/// segment takes no more, and the error is thrown; the log stays usable.
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
        package var dice: Dice
        /// What is held against each record that is read for a request.
        package var fault: RecordFault = { _ in nil }
        /// What the directory's journal has of what was invalidated.
        package var marks: MarksReader = { _, _, _ in RecoveredMarks(table: MarkTable()) }

        package init(plan: DiskPlan, ageLimit: Interval, keys: (UInt64, UInt64), dice: Dice) {
            self.plan = plan
            self.ageLimit = ageLimit
            self.keys = keys
            self.dice = dice
        }
    }

    package let view: DiskView
    let volume: any DiskVolume
    let settings: Settings
    let figures: DiskFigures
    var dice: Dice
    var ledger: SegmentLedger
    var rule: ReclaimRule
    /// The file of each segment, once it is open.
    var files: [(any VolumeFile)?]
    /// By ``Tiers/SegmentQueue``.
    var open: [OpenSegment?] = [nil, nil]
    /// The least stamp of what a power failure may still bring back from each file: a segment that
    /// was given up is on the disk until its next header is.
    var leastOnDisk: [Stamp?]
    /// The names of all records that a start might find in each file; nil for any.
    var names: [NameSet?]
    /// Segments whose footers are behind the index.
    var touched: [Bool]
    /// By ``Tiers/SegmentQueue``, entries that were forgotten while a record of theirs lies in a
    /// segment which was opened after the queue's open one.
    var ahead: [Set<EntryDigest>] = [[], []]
    /// Segments that were given up, and whose files still begin with what they were.
    var standing: [Bool]
    /// Files of an earlier version are there, emptied: they say that marks are missing until the
    /// journal says so.
    var hasFormerMarks = false
    /// What sites may take of the log.
    var shares = DiskShares()
    /// Where the search for entries of a site that has to give some up goes on.
    var shareWalk: (shard: Int, below: Int?) = (0, nil)
    /// Where the search for idle entries goes on.
    var sweep: (shard: Int, below: Int?) = (0, nil)

    /// What was invalidated.
    package var marks: MarkBook { view.marks }
    var identity: NodeIdentity { view.identity }
    var segmentBytes: UInt64 { UInt64(settings.plan.segmentBytes) }

    /// Takes over what `recovered` has found; ``open(_:_:_:figures:formerWall:now:note:)`` makes
    /// one.
    init(
        _ volume: any DiskVolume, _ settings: Settings, _ identity: NodeIdentity,
        figures: DiskFigures, book: MarkBook, shards: DiskShards,
        recovered: [(id: SegmentID, segment: Segment, names: NameSet?, file: any VolumeFile)]
    ) {
        let plan = settings.plan
        self.volume = volume
        self.settings = settings
        self.figures = figures
        dice = settings.dice
        view = DiskView(
            identity: identity, segments: plan.segments,
            shards: shards, marks: book, figures: figures, fault: settings.fault)
        ledger = SegmentLedger(
            settings: .init(
                segments: plan.segments, segmentBytes: plan.segmentBytes,
                headerBytes: DiskFormat.headerBytes, footerBytes: SegmentFooter.trailerBytes,
                footerBytesPerRecord: SegmentFooter.bytesPerRecord),
            recovered: recovered.map { ($0.id, $0.segment) })
        rule = ReclaimRule(
            capacityBytes: UInt64(plan.segments - 1) * UInt64(plan.segmentBytes),
            expectedEntries: 1024, ageLimit: settings.ageLimit)
        files = Array(repeating: nil, count: plan.segments)
        leastOnDisk = Array(repeating: nil, count: plan.segments)
        names = Array(repeating: NameSet(), count: plan.segments)
        touched = Array(repeating: false, count: plan.segments)
        standing = Array(repeating: false, count: plan.segments)
        for (id, segment, names, file) in recovered {
            files[Int(id.index)] = file
            self.names[Int(id.index)] = names
            leastOnDisk[Int(id.index)] = segment.leastStamp
        }
    }

    /// Writes the footers that are behind, and closes the open segments; at shutdown.
    package func close() throws(DiskFile.Failure) {
        try checkpoint()
        for queue in SegmentQueue.allCases {
            guard let segment = open[Int(queue.rawValue)] else { continue }
            open[Int(queue.rawValue)] = nil
            ledger.closed(segment.id)
            try writeFooter(of: segment)
        }
    }

    func write(
        _ bytes: Span<UInt8>, to file: any VolumeFile, at offset: UInt64
    ) throws(DiskFile.Failure) {
        figures.add(.writtenBytes, bytes.count)
        try file.write(bytes, at: offset)
    }

    /// What nothing in the log, or left behind on its disk, is stamped before.
    package var leastStamp: Stamp {
        min(ledger.leastStamp ?? .last, leastOnDisk.compactMap { $0 }.min() ?? .last)
    }

    /// Those of the names, which ascend, of which an entry may be in the log, or left behind on its
    /// disk.
    package func held(of wanted: [UInt32]) -> Set<UInt32> {
        guard names.allSatisfy({ $0 != nil }) else { return Set(wanted) }
        var found: Set<UInt32> = []
        for index in names.indices { names[index]?.find(wanted, into: &found) }
        return found
    }

    /// Takes an entry out of the index; its record may be found again by a start that finds the
    /// segment not closed.
    package func forget(_ name: EntryName) {
        guard let entry = view.shards.remove(name.digest) else { return }
        forgotten(name.digest, entry)
    }
}
