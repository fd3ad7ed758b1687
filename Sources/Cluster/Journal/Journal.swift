package import Ground

/// The invalidation log on disk: what is written to which file, and which files may go; see
/// <doc:Journal>.
///
/// Files are appended to and never changed. The last one goes on; each begins with a checkpoint of
/// all that holds beside records, so that of those before it nothing counts but records, and one
/// whose records need not be kept any more is deleted. What those records had invalidated, and
/// something older may still be held of, is said anew before they go.
///
/// **Law.** What was synced is found by every later start, or that start finds damage. Whatever
/// subset of what was not synced is lost or torn, no start finds damage for it.
package struct Journal: Sendable {
    package let node: NodeID
    package let epoch: UInt64
    package let settings: Settings
    /// As of what is synced.
    private var layout: JournalLayout
    /// What ``plan`` becomes when what is being written is synced; nil if nothing is.
    private var nextLayout: JournalLayout?
    /// So many bytes would have had to be free.
    private var shortage = 0

    /// A node's journal after a start in this boot epoch, with what the start has found.
    ///
    /// What was invalidated up to `released` is in no file: the first checkpoint is to say it.
    package init(
        node: NodeID, epoch: UInt64, settings: Settings = Settings(),
        recovered: JournalRecovery.Summary? = nil, released: InvalidationVersion = .zero
    ) {
        precondition(
            (4_096...1 << 30).contains(settings.fileBytesMax)
                && settings.bytesMax >= 8 * settings.fileBytesMax, "settings: \(settings)")
        self.node = node
        self.epoch = epoch
        self.settings = settings
        layout = recovered?.layout ?? JournalLayout()
        layout.state.release(released)
    }

    /// What is to be done to write these.
    ///
    /// Ends with ``synced()`` or ``failed()``; one is under way at a time. The first after a start
    /// begins a file even if nothing is to be written. `marks` gives, in pieces, what has to be
    /// kept of what was invalidated later than the first stamp and up to the second: nothing else
    /// says it once the files are gone that named it.
    ///
    /// Nil if there is no room, and nothing has happened: then let the log give up ``surplus``,
    /// write the notes of that, and try again.
    package mutating func write(
        _ batch: [LogWrite],
        marks: (_ after: InvalidationVersion, _ upTo: InvalidationVersion) -> [[UInt8]],
        using dice: inout SplitMix64
    ) -> [JournalEffect]? {
        precondition(nextLayout == nil, "writes while it writes")
        var writer = JournalWriter(self, layout)
        writer.write(batch, marks, using: &dice)
        let (after, effects) = writer.finish()
        let reserve = reserve(ahead: batch)
        guard after.bytesCount + reserve <= settings.bytesMax else {
            shortage = after.bytesCount - layout.bytesCount + reserve
            return nil
        }
        shortage = 0
        nextLayout = after
        return effects
    }

    /// What is left for what makes room, in bytes: a checkpoint and a file behind it for notes, and
    /// a file more for floors, without which some records cannot be dropped.
    private func reserve(ahead batch: [LogWrite]) -> Int {
        if batch.allSatisfy(\.isMetadata) { return 0 }
        return settings.fileBytesMax * (batch.contains(where: \.isFloor) ? 2 : 3)
    }

    /// All that was to be done last is done.
    package mutating func synced() {
        guard let nextLayout else { preconditionFailure("synced what was not written") }
        layout = nextLayout
        self.nextLayout = nil
    }

    /// Something of it could not be done, and nothing was done after it.
    package mutating func failed() {
        guard let nextLayout else { preconditionFailure("failed to write nothing") }
        layout.failed(nextLayout)
        self.nextLayout = nil
    }

    /// The greatest that anything bears which is synced.
    package var latestVersion: InvalidationVersion { layout.state.latestVersion }

    // MARK: Limits

    /// Bytes of all files, those that are to be deleted included.
    package var bytesCount: Int { layout.bytesCount }

    /// Up to here the log must not hold records any longer, for there is no room: see
    /// ``InvalidationLog/giveUp(_:now:effects:)``.
    package var surplusPositions: [StreamPosition] {
        var left = layout.bytesCount + max(settings.reserveBytes, shortage) - settings.bytesMax
        guard left > 0 else { return [] }
        var known = PositionVector()
        for file in layout.files.dropLast(layout.isOpen ? 1 : 0) where left > 0 {
            known.merge(file.livePositions(layout.state))
            left -= file.bytesCount
        }
        return known.positions
    }
}

/// Which files there are.
struct JournalLayout: Sendable {
    /// Those that count, by number; the last one goes on if ``isOpen``.
    var files: [JournalFile] = []
    /// The last file was begun since the start, and nothing failed since.
    var isOpen = false
    /// Files that do not count and may be there, and how many bytes they may have.
    var filesToDelete: [UInt64: Int] = [:]
    /// No file has had this number, or a greater one.
    var nextNumber: UInt64 = 1
    /// Of the open file.
    var salt: UInt64 = 0
    /// Where the items of the open file begin that follow its checkpoint.
    var itemsStart = 0
    var state = JournalState()

    var bytesCount: Int {
        files.reduce(0) { $0 + $1.bytesCount } + filesToDelete.values.reduce(0, +)
    }

    /// What of `next` was done is not known: nothing of it counts, and the file is left alone.
    mutating func failed(_ next: JournalLayout) {
        isOpen = false
        nextNumber = next.nextNumber
        // What was to be deleted is still there, or not; it is deleted once more.
        let known = Set(files.map(\.number))
        for file in next.files where !known.contains(file.number) {
            filesToDelete[file.number] = file.bytesCount
        }
        for index in files.indices {
            guard let later = next.files.first(where: { $0.number == files[index].number })
            else { continue }
            files[index].bytesCount = max(files[index].bytesCount, later.bytesCount)
        }
    }
}

/// What the journal wants done with its files, in this order, each before the next.
package enum JournalEffect: Hashable, Sendable {
    /// An empty file of this number; one that is there is not the journal's any more.
    case create(UInt64)
    case append(UInt64, [UInt8])
    /// What was appended to the file, and its name, survive a power failure from here on.
    case sync(UInt64)
    /// The file counts no more. That it is not there, cannot be deleted, or comes back, does no
    /// harm.
    case delete(UInt64)
    /// Files that were deleted do not come back after a power failure from here on.
    case syncDirectory
}

extension Journal {
    /// The limits of a journal.
    package struct Settings: Hashable, Sendable {
        /// About how many bytes of items are written to one file.
        package var fileBytesMax = 8 << 20
        /// The most bytes of all files.
        ///
        /// Above twice what the log may hold, and what may wait to be synced: a file is deleted
        /// when nothing in it counts, and after a start records are not dropped in the order in
        /// which they were written.
        package var bytesMax = 768 << 20

        package init() {}

        package init(fileBytesMax: Int, bytesMax: Int) {
            self.fileBytesMax = fileBytesMax
            self.bytesMax = bytesMax
        }

        /// When so few bytes are left the log is to give up records.
        var reserveBytes: Int { max(bytesMax / 8, 4 * fileBytesMax) }
    }
}

/// A file of the journal, as far as it counts.
struct JournalFile: Hashable, Sendable {
    let number: UInt64
    /// Bytes that are synced and count.
    var end: Int
    /// The most bytes that the file may have: what lies behind ``end`` does not count.
    var bytesCount: Int
    /// The greatest record of each stream in it, without those that did not count when they were
    /// read.
    var lastPositions = PositionVector()
    /// The greatest that anything in it bears.
    var latestVersion = InvalidationVersion.zero

    var endPosition: JournalPosition { JournalPosition(file: number, offset: UInt64(end)) }

    mutating func include(_ name: RecordID) { lastPositions.merge(name.position) }

    mutating func raiseLatestVersion(_ version: InvalidationVersion) {
        latestVersion = max(latestVersion, version)
    }

    /// What of it counts, by process; empty if it may be deleted.
    func livePositions(_ state: JournalState) -> [StreamPosition] {
        let last = JournalPosition(file: number, offset: .max)
        return lastPositions.positions {
            !state.isObsolete(RecordID(stream: $0.process, number: $0.count), at: last)
        }
    }
}
