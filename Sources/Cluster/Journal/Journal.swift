package import Ground

/// The invalidation log on disk: the contents of its files, and the deletion of files; see
/// <doc:Journal>.
///
/// Files are only appended to; the last one is active. Each begins with a checkpoint of all state
/// other than records. So of earlier files only the records matter, and a file whose records need
/// not be kept is deleted. Before that, marks of what its records invalidated are written if they
/// may still cover older entries.
///
/// **Invariant.** Every later start finds all synced records, or finds damage. No start
/// reports damage for unsynced data, whatever subset of it is lost or torn.
package struct Journal: Sendable {
    /// The node that the journal belongs to.
    package let node: NodeID
    /// The boot epoch of this process.
    package let epoch: UInt64
    /// The limits.
    package let settings: Settings
    /// The files and state as of the last sync.
    private var layout: JournalLayout
    /// The layout after the write in progress; `nil` if there is none.
    private var nextLayout: JournalLayout?
    /// The number of bytes that the last refused write lacked.
    private var shortage = 0

    /// Creates the journal of a process.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - epoch: The boot epoch.
    ///   - settings: The limits.
    ///   - recovered: The result of reading the files; `nil` for an empty journal.
    ///   - released: The version up to which no file names the invalidations, so that the first
    ///     checkpoint must include their marks.
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

    /// Returns the effects that write a batch, or `nil` if there is no space.
    ///
    /// After the effects ``synced()`` or ``failed()`` must be called; one write is under way at a
    /// time. The first write after a start begins a file even if the batch is empty. After `nil`
    /// nothing has happened: the log must drop records up to ``surplusPositions``, write the
    /// resulting metadata, and try again.
    ///
    /// - Parameters:
    ///   - batch: The writes of the log, metadata first.
    ///   - marks: Returns, in pieces, the marks to keep of invalidations later than the first
    ///     version and up to the second, which no file names; called when files are removed or
    ///     begun.
    ///   - dice: The source of salts.
    /// - Returns: The effects, in order, or `nil`.
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

    /// Returns the bytes to leave free behind `batch` for operations that free space; 0 if it is
    /// itself such an operation, with metadata alone.
    ///
    /// These are a checkpoint and a file for metadata, and one more file for floors, without which
    /// some records cannot be dropped.
    private func reserve(ahead batch: [LogWrite]) -> Int {
        if batch.allSatisfy(\.isMetadata) { return 0 }
        return settings.fileBytesMax * (batch.contains(where: \.isFloor) ? 2 : 3)
    }

    /// Records that all effects of the last write were carried out.
    package mutating func synced() {
        guard let nextLayout else { preconditionFailure("synced what was not written") }
        layout = nextLayout
        self.nextLayout = nil
    }

    /// Records that an effect of the last write failed and none was carried out after it; the next
    /// write begins another file.
    package mutating func failed() {
        guard let nextLayout else { preconditionFailure("failed to write nothing") }
        layout.failed(nextLayout)
        self.nextLayout = nil
    }

    /// The greatest invalidation version that is synced.
    package var latestVersion: InvalidationVersion { layout.state.latestVersion }

    // MARK: Limits

    /// The size of all files in bytes, including those to be deleted.
    package var bytesCount: Int { layout.bytesCount }

    /// The positions up to which the log must drop records to free space; see
    /// ``InvalidationLog/dropForSpace(_:now:effects:)``.
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

/// The set of journal files and the state that they encode.
struct JournalLayout: Sendable {
    /// The valid files by number; the last one is active if ``isOpen``.
    var files: [JournalFile] = []
    /// True if the last file was begun by this process and no write has failed since.
    var isOpen = false
    /// The invalid files that may exist, with their maximum sizes in bytes.
    var filesToDelete: [UInt64: Int] = [:]
    /// The next file number; no file has had this number or a greater one.
    var nextNumber: UInt64 = 1
    /// The salt of the active file.
    var salt: UInt64 = 0
    /// The offset in the active file at which the items behind the checkpoint begin.
    var itemsStart = 0
    var state = JournalState()

    /// The maximum size in bytes of all files, valid or to be deleted.
    var bytesCount: Int {
        files.reduce(0) { $0 + $1.bytesCount } + filesToDelete.values.reduce(0, +)
    }

    /// Handles a failed write: nothing of it is valid, and the active file is not written to again.
    mutating func failed(_ next: JournalLayout) {
        isOpen = false
        nextNumber = next.nextNumber
        // What was to be deleted may still exist; it is deleted again.
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

/// The file operations that the journal requests, to be carried out strictly in order.
package enum JournalEffect: Hashable, Sendable {
    /// Creates an empty file of this number, replacing an existing one.
    case create(UInt64)
    /// Appends bytes to the file.
    case append(UInt64, [UInt8])
    /// Makes the file's contents and its name durable.
    case sync(UInt64)
    /// Deletes the file, which is no longer valid; failures are harmless.
    case delete(UInt64)
    /// Makes the deletions durable.
    case syncDirectory
}

extension Journal {
    /// The limits of a journal.
    package struct Settings: Hashable, Sendable {
        /// The approximate maximum size of the items in one file in bytes.
        package var fileBytesMax = 8 << 20
        /// The maximum size of all files in bytes.
        ///
        /// More than twice what the log may hold plus what may wait to be synced. A file is deleted
        /// only when none of its records is needed, and after a restart records are not dropped in
        /// the order in which they were written.
        package var bytesMax = 768 << 20

        /// Creates the default limits.
        package init() {}

        /// Creates limits, in bytes.
        package init(fileBytesMax: Int, bytesMax: Int) {
            self.fileBytesMax = fileBytesMax
            self.bytesMax = bytesMax
        }

        /// The free space in bytes below which the log must drop records.
        var reserveBytes: Int { max(bytesMax / 8, 4 * fileBytesMax) }
    }
}

/// The valid part of a journal file.
struct JournalFile: Hashable, Sendable {
    let number: UInt64
    /// The size of the synced valid part in bytes.
    var end: Int
    /// The maximum size of the file in bytes; what lies behind ``end`` is invalid.
    var bytesCount: Int
    /// The greatest record of each stream in the file, without records that were obsolete when
    /// read.
    var lastPositions = PositionVector()
    /// The greatest invalidation version in the file.
    var latestVersion = InvalidationVersion.zero

    var endPosition: JournalPosition { JournalPosition(file: number, offset: UInt64(end)) }

    /// Records that the file has this record.
    mutating func include(_ name: RecordID) { lastPositions.merge(name.position) }

    mutating func raiseLatestVersion(_ version: InvalidationVersion) {
        latestVersion = max(latestVersion, version)
    }

    /// Returns the positions of records that are still needed, by process; if empty the file may be
    /// deleted.
    func livePositions(_ state: JournalState) -> [StreamPosition] {
        let last = JournalPosition(file: number, offset: .max)
        return lastPositions.positions {
            !state.isObsolete(RecordID(stream: $0.process, number: $0.count), at: last)
        }
    }
}
