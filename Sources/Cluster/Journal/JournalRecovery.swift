package import Ground

/// The recovery of a journal from its files at a start; see "Recovery" in
/// <doc:Journal>.
///
/// The caller passes the numbers of all files, then the contents of each ``nextFile``, and between
/// them takes the results. So one file at a time is in memory.
package struct JournalRecovery: Sendable {
    private let node: NodeID
    /// The numbers of all files, ascending.
    private let numbers: [UInt64]
    /// The files that may be the active one, the greatest last.
    private var candidates: [UInt64]
    /// The headers of files that were begun and not finished.
    private var unfinished: [JournalHeader] = []
    /// The valid older files with their valid sizes, the first to be read last.
    private var olderFiles: [JournalPosition] = []
    private var layout = JournalLayout()
    private var records: [InvalidationRecord] = []
    private var purges: [(purge: Purge, version: InvalidationVersion)] = []
    /// The content hashes of the records found, by id.
    private var contentHashes: [RecordID: UInt64] = [:]
    private var damage: [JournalDamage] = []
    /// The pieces of marks in the active file, as passed to ``Journal/write(_:marks:using:)``;
    /// `nil` until it is read.
    package private(set) var marks: [[UInt8]]?
    private var isOldFormat = false
    private var lastEpoch: UInt64?

    private static let numberMax: UInt64 = 1 << 62

    /// The result of a recovery, without the records.
    package struct Summary: Sendable {
        /// The positions up to which nothing is held, as in ``PersistedLog/floors``.
        package var floors: [StreamPosition]
        /// The last positions of retired streams, as in ``PersistedLog/retired``.
        package var retired: [StreamPosition]
        /// The persisted consensus state; `nil` if none was ever written.
        package var persistentState: VoterSetConsensus.PersistentState?
        /// The boot epoch that wrote last; `nil` if there is no journal.
        package var epoch: UInt64?
        /// The greatest invalidation version ever written.
        package var latestVersion: InvalidationVersion
        /// True if the active file is of version 1.0, which has no marks.
        package var isOldFormat: Bool
        /// The damages found, each of which may mean that synced data is missing.
        package var damage: [JournalDamage]
        let layout: JournalLayout
    }

    /// Creates a recovery; `files` are the numbers of all existing files, in any order.
    package init(node: NodeID, files: [UInt64]) {
        self.node = node
        // A greater number was not made by counting.
        numbers = files.filter { $0 <= Self.numberMax }.sorted()
        candidates = numbers
    }

    /// The number of the file to pass to ``read(_:)`` next; `nil` when all are read.
    package var nextFile: UInt64? { candidates.last ?? olderFiles.last?.file }

    /// Reads the contents of ``nextFile``, which must be complete.
    package mutating func read(_ file: Span<UInt8>) {
        if let number = candidates.popLast() {
            readActiveFile(number, file)
        } else if let place = olderFiles.popLast() {
            readOlderFile(place, file)
        }
        skipMissing()
    }

    /// Records ``nextFile`` as damaged, because it cannot be read.
    package mutating func readFailed() {
        guard let number = candidates.popLast() ?? olderFiles.popLast()?.file else { return }
        damage.append(JournalDamage(file: number, reason: .missing))
        skipMissing()
    }

    /// Removes and returns the records found since the last call.
    package mutating func takeRecords() -> [InvalidationRecord] { records.takeAll() }

    /// Removes and returns the invalidations found since the last call, in any order.
    package mutating func takePurges() -> [(purge: Purge, version: InvalidationVersion)] {
        purges.takeAll()
    }

    /// Ends the recovery; ``nextFile`` must be `nil`.
    package consuming func finish() -> Summary {
        precondition(nextFile == nil, "ends before all was read")
        if layout.files.isEmpty {
            for header in unfinished { requirePrevious(of: header) }
        }
        let counting = Set(layout.files.map(\.number))
        for number in numbers where !counting.contains(number) { layout.filesToDelete[number] = 0 }
        layout.nextNumber = (numbers.last ?? 0) + 1
        layout.files.sort { $0.number < $1.number }
        return Summary(
            floors: layout.state.floorPositions, retired: layout.state.retiredPositions,
            persistentState: layout.state.persistentState, epoch: lastEpoch,
            latestVersion: layout.state.latestVersion,
            isOldFormat: isOldFormat, damage: damage, layout: layout)
    }

    /// Recovers a journal from the contents of all files, by number.
    package static func recover(
        _ files: [UInt64: [UInt8]], node: NodeID
    ) -> (kept: PersistedLog, found: Summary) {
        var recovery = JournalRecovery(node: node, files: files.keys.sorted())
        var kept = PersistedLog()
        while let number = recovery.nextFile {
            let file = files[number] ?? []
            recovery.read(file.span)
            kept.records += recovery.takeRecords()
        }
        let found = recovery.finish()
        (kept.floors, kept.retired) = (found.floors, found.retired)
        return (kept, found)
    }

    // MARK: The active file

    /// Reads a file that may be the active one.
    ///
    /// With a complete checkpoint it is, and the checkpoint names the older files to read;
    /// otherwise the next candidate is read.
    private mutating func readActiveFile(_ number: UInt64, _ file: Span<UInt8>) {
        guard let header = header(number, file, isRequired: file.count > JournalHeader.bytesCount)
        else { return }
        var reading = JournalFileScan(header, file)
        if reading.lostSyncedData(file) { recordDamage(reading, number) }
        guard reading.hasCheckpoint else { return unfinished.append(header) }
        candidates.removeAll()
        layout.state = reading.state
        marks = reading.marks
        isOldFormat = !header.hasMarks
        var newest = JournalFile(
            number: number, end: reading.end, bytesCount: Self.usedBytes(file, reading.end))
        collect(&reading, in: &newest)
        layout.files = [newest]
        olderFiles = reading.files.reversed()
        for later in unfinished { requirePrevious(of: later) }
    }

    /// Returns the file's header, or `nil` and records damage if the header is required.
    ///
    /// The header is synced before anything is written behind it.
    private mutating func header(
        _ number: UInt64, _ file: Span<UInt8>, isRequired: Bool
    ) -> JournalHeader? {
        do throws(JournalDamage.Reason) {
            let header = try JournalHeader(file, node: node, number: number)
            lastEpoch = max(lastEpoch ?? 0, header.epoch)
            return header
        } catch {
            if isRequired { damage.append(JournalDamage(file: number, reason: error)) }
            return nil
        }
    }

    /// Checks that the file before `header` is complete if it exists.
    ///
    /// A file is begun only when all before it is synced. The previous file may be absent, because
    /// files of failed writes are deleted in any order.
    private mutating func requirePrevious(of header: JournalHeader) {
        let newest = layout.files.first
        guard let previous = header.previous, exists(previous.file),
            !damage.contains(where: { $0.file == previous.file })
        else { return }
        let end = newest?.number == previous.file ? newest?.end ?? 0 : 0
        guard previous.file >= newest?.number ?? 0, previous.offset > UInt64(end) else { return }
        damage.append(
            JournalDamage(file: previous.file, reason: .unreadable(from: UInt64(end))))
    }

    /// Records that the file is damaged from the end of what could be read.
    private mutating func recordDamage(_ reading: JournalFileScan, _ number: UInt64) {
        damage.append(
            JournalDamage(file: number, reason: .unreadable(from: UInt64(reading.end))))
    }

    /// Takes the invalidations and the records that must be kept from a file that was read.
    ///
    /// A record that differs from an earlier copy is a damage.
    private mutating func collect(_ reading: inout JournalFileScan, in file: inout JournalFile) {
        file.latestVersion = reading.latestVersion
        // Including those of records that need not be kept: their marks may still be needed.
        purges += reading.takePurges()
        for (record, offset, _) in reading.takeRecords() {
            let place = JournalPosition(file: file.number, offset: UInt64(offset))
            guard !layout.state.isObsolete(record.id, at: place) else { continue }
            file.include(record.id)
            // A record may be in two files; its content must be the same in both.
            let known = contentHashes.updateValue(record.hash, forKey: record.id)
            if let known, known != record.hash {
                damage.append(
                    JournalDamage(file: file.number, reason: .conflictingRecords(record.id)))
            }
            records.append(record)
        }
    }

    // MARK: Older files

    /// Reads the part of an older file that the active file names as valid; less is a damage.
    private mutating func readOlderFile(_ place: JournalPosition, _ bytes: Span<UInt8>) {
        guard let header = header(place.file, bytes, isRequired: true) else { return }
        let count = min(bytes.count, Int(clamping: place.offset))
        var reading = JournalFileScan(header, bytes.extracting(0..<count))
        if UInt64(reading.end) < place.offset { recordDamage(reading, place.file) }
        var file = JournalFile(
            number: place.file, end: reading.end, bytesCount: Self.usedBytes(bytes, reading.end))
        collect(&reading, in: &file)
        layout.files.append(file)
    }

    /// Returns the size of a file without the zeros that were preallocated.
    private static func usedBytes(_ file: Span<UInt8>, _ end: Int) -> Int {
        var count = file.count
        while count > end, file[count - 1] == 0 { count -= 1 }
        return count
    }

    /// Records the next older files that do not exist as damages, once the active file is known.
    private mutating func skipMissing() {
        guard candidates.isEmpty else { return }
        while let place = olderFiles.last, !exists(place.file) {
            olderFiles.removeLast()
            damage.append(JournalDamage(file: place.file, reason: .missing))
        }
    }

    private func exists(_ number: UInt64) -> Bool { numbers.sortedIndex(of: number) != nil }
}

/// The result of reading one file from its beginning.
struct JournalFileScan {
    private(set) var state = JournalState()
    /// The valid files before this one.
    private(set) var files: [JournalPosition] = []
    /// True if the file has a complete checkpoint.
    private(set) var hasCheckpoint = false
    /// The offset of the first invalid item, or the file's end.
    private(set) var end = JournalHeader.bytesCount
    /// The pieces of marks in the file; see ``JournalRecovery/marks``.
    private(set) var marks: [[UInt8]] = []
    /// The greatest invalidation version of the items behind the checkpoint.
    private(set) var latestVersion = InvalidationVersion.zero
    private var records: [(record: InvalidationRecord, offset: Int, count: UInt64)] = []
    /// The invalidations without a record.
    private var recordlessPurges: [(purge: Purge, version: InvalidationVersion)] = []
    private let epoch: UInt64
    /// True if a valid item has malformed content; such an item was synced.
    private var isMalformed = false
    private let framing: JournalItemFraming

    /// Reads the items of `file` up to the first one that is invalid or malformed.
    init(_ header: JournalHeader, _ file: Span<UInt8>) {
        framing = JournalItemFraming(salt: header.salt)
        epoch = header.epoch
        while let item = framing.frame(file, at: end) {
            if let kind = item.kind {
                guard
                    let item = try? JournalItem.read(kind, file.extracting(item.content))
                else {
                    isMalformed = true
                    break
                }
                apply(item, header)
            }
            end = item.end
        }
    }

    /// Applies an item to the state, and collects its record, invalidation or file names.
    private mutating func apply(_ item: JournalItem, _ header: JournalHeader) {
        let place = JournalPosition(file: header.number, offset: UInt64(end))
        state.apply(item, at: place, epoch: header.epoch)
        switch item {
        case .record(let record, let count):
            records.append((record, end, count))
            latestVersion = max(latestVersion, InvalidationVersion(epoch: epoch, count: count))
        case .floor(_, let count): apply(.everythingSoft, count)
        case .localPurge(let purge, let count): apply(purge, count)
        case .marks(let piece, _): marks.append(piece)
        case .filesRemoved(let numbers): files.removeAll { numbers.contains($0.file) }
        case .checkpoint(let checkpoint):
            files = checkpoint.files.filter { $0.file < header.number }
        case .checkpointEnd: hasCheckpoint = true
        default: break
        }
    }

    /// Returns true if something that was synced cannot be read.
    func lostSyncedData(_ file: Span<UInt8>) -> Bool {
        isMalformed || framing.wasSynced(file, at: end)
    }

    /// Adds an invalidation that has no record.
    private mutating func apply(_ purge: Purge, _ count: UInt64) {
        recordlessPurges.append((purge, InvalidationVersion(epoch: epoch, count: count)))
        latestVersion = max(latestVersion, InvalidationVersion(epoch: epoch, count: count))
    }

    /// Removes and returns all records, each with its offset and the count of invalidations applied
    /// with it.
    mutating func takeRecords() -> [(record: InvalidationRecord, offset: Int, count: UInt64)] {
        records.takeAll()
    }

    /// Removes and returns all invalidations; must be called before ``takeRecords()``.
    mutating func takePurges() -> [(purge: Purge, version: InvalidationVersion)] {
        recordlessPurges.takeAll()
            + records.compactMap { record, _, count in
                record.invalidation.purge.map {
                    ($0, InvalidationVersion(epoch: epoch, count: count))
                }
            }
    }
}
