package import Ground

/// What a start makes of the files of a journal, one after the other; see "What a start makes of
/// it" in <doc:Journal>.
///
/// The shell gives the numbers of all files that there are, then each that is ``wanted``, and
/// between takes what was found, so that one file at a time is in memory.
package struct JournalRecovery: Sendable {
    private let node: NodeID
    /// Ascending.
    private let numbers: [UInt64]
    /// Those that may be the one that went on, the greatest last.
    private var candidates: [UInt64]
    /// Headers of files that were begun and not finished.
    private var unfinished: [JournalHeader] = []
    /// Those before the one that went on, as far as they count; the greatest first.
    private var olderFiles: [JournalPosition] = []
    private var layout = JournalLayout()
    private var records: [InvalidationRecord] = []
    private var purges: [(purge: Purge, version: InvalidationVersion)] = []
    /// Hashes of what was found under each name.
    private var contentHashes: [RecordID: UInt64] = [:]
    private var damage: [JournalDamage] = []
    /// Of what was invalidated up to its checkpoint what may still cover something, as it was given
    /// to ``Journal/write(_:marks:using:)``; nil until the file that went on is read.
    package private(set) var marks: [[UInt8]]?
    private var isOldFormat = false
    private var lastEpoch: UInt64?

    private static let numberMax: UInt64 = 1 << 62

    /// What was found, without the records.
    package struct Summary: Sendable {
        /// As in ``PersistedLog/floors``.
        package var floors: [StreamPosition]
        /// As in ``PersistedLog/retired``.
        package var retired: [StreamPosition]
        /// Nil if none was ever written.
        package var persistentState: VoterSetConsensus.PersistentState?
        /// The boot epoch that wrote last; nil if there is no journal.
        package var epoch: UInt64?
        /// The greatest that anything bears that was ever written.
        package var latestVersion: InvalidationVersion
        /// Files that went before it do not say it.
        package var isOldFormat: Bool
        /// Something that was synced may be missing; by file.
        package var damage: [JournalDamage]
        let layout: JournalLayout
    }

    /// `files` are the numbers of all files that there are, in any order.
    package init(node: NodeID, files: [UInt64]) {
        self.node = node
        // What has a greater number was never made by counting.
        numbers = files.filter { $0 <= Self.numberMax }.sorted()
        candidates = numbers
    }

    /// The file to be given to ``read(_:)``; nil when all was read.
    package var nextFile: UInt64? { candidates.last ?? olderFiles.last?.file }

    /// Takes in the whole of the file that is ``wanted``.
    package mutating func read(_ file: Span<UInt8>) {
        if let number = candidates.popLast() {
            readActiveFile(number, file)
        } else if let place = olderFiles.popLast() {
            readOlderFile(place, file)
        }
        skipMissing()
    }

    /// The file that is ``wanted`` cannot be read.
    package mutating func readFailed() {
        guard let number = candidates.popLast() ?? olderFiles.popLast()?.file else { return }
        damage.append(JournalDamage(file: number, reason: .missing))
        skipMissing()
    }

    /// Takes the records that were found since they were taken last.
    package mutating func takeRecords() -> [InvalidationRecord] { records.takeAll() }

    /// Takes what was invalidated since it was taken last, in any order.
    package mutating func takePurges() -> [(purge: Purge, version: InvalidationVersion)] {
        purges.takeAll()
    }

    /// What was found, when nothing is wanted any more.
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

    /// All of that at once.
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

    // MARK: The file that went on

    private mutating func readActiveFile(_ number: UInt64, _ file: Span<UInt8>) {
        guard let header = header(number, file, isRequired: file.count > JournalHeader.bytesCount)
        else { return }
        var reading = JournalFileScan(header, file)
        guard reading.hasCheckpoint else {
            if reading.lostSyncedData(file) { recordDamage(reading, number) }
            unfinished.append(header)
            return
        }
        if reading.lostSyncedData(file) { recordDamage(reading, number) }
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

    /// Nil if there is none, which is damage if it was synced before there was more of the file.
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

    /// A file is begun when all before it is synced: what its header names, if it is there, is
    /// there whole.
    ///
    /// It may be gone, for what failed is deleted in any order.
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

    private mutating func recordDamage(_ reading: JournalFileScan, _ number: UInt64) {
        damage.append(
            JournalDamage(file: number, reason: .unreadable(from: UInt64(reading.end))))
    }

    private mutating func collect(_ reading: inout JournalFileScan, in file: inout JournalFile) {
        file.latestVersion = reading.latestVersion
        // Also of records that need not be kept.
        purges += reading.takePurges()
        for (record, offset, _) in reading.takeRecords() {
            let place = JournalPosition(file: file.number, offset: UInt64(offset))
            guard !layout.state.isObsolete(record.id, at: place) else { continue }
            file.include(record.id)
            // One may stand in two files, and is the same in both.
            let known = contentHashes.updateValue(record.hash, forKey: record.id)
            if let known, known != record.hash {
                damage.append(
                    JournalDamage(file: file.number, reason: .conflictingRecords(record.id)))
            }
            records.append(record)
        }
    }

    // MARK: The files before it

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

    /// How much of a file there is without the zeros that were written ahead.
    private static func usedBytes(_ file: Span<UInt8>, _ end: Int) -> Int {
        var count = file.count
        while count > end, file[count - 1] == 0 { count -= 1 }
        return count
    }

    private mutating func skipMissing() {
        guard candidates.isEmpty else { return }
        while let place = olderFiles.last, !exists(place.file) {
            olderFiles.removeLast()
            damage.append(JournalDamage(file: place.file, reason: .missing))
        }
    }

    private func exists(_ number: UInt64) -> Bool { numbers.sortedIndex(of: number) != nil }
}

/// One file as it reads from its beginning.
struct JournalFileScan {
    private(set) var state = JournalState()
    /// The files before this one that count.
    private(set) var files: [JournalPosition] = []
    /// It says all that holds at its beginning.
    private(set) var hasCheckpoint = false
    /// Where the first item begins that does not check, or the file's end.
    private(set) var end = JournalHeader.bytesCount
    /// See ``JournalRecovery/FoundEntry/marks``.
    private(set) var marks: [[UInt8]] = []
    /// The greatest that an item behind the checkpoint bears.
    private(set) var latestVersion = InvalidationVersion.zero
    private var records: [(record: InvalidationRecord, offset: Int, count: UInt64)] = []
    /// What was invalidated without a record.
    private var recordlessPurges: [(purge: Purge, version: InvalidationVersion)] = []
    private let epoch: UInt64
    /// What does not check was synced: it makes no sense although it is what was written.
    private var isMalformed = false
    private let framing: JournalItemFraming

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

    /// True if something that was synced cannot be read.
    func lostSyncedData(_ file: Span<UInt8>) -> Bool {
        isMalformed || framing.wasSynced(file, at: end)
    }

    private mutating func apply(_ purge: Purge, _ count: UInt64) {
        recordlessPurges.append((purge, InvalidationVersion(epoch: epoch, count: count)))
        latestVersion = max(latestVersion, InvalidationVersion(epoch: epoch, count: count))
    }

    mutating func takeRecords() -> [(record: InvalidationRecord, offset: Int, count: UInt64)] {
        records.takeAll()
    }

    /// What was invalidated, with the records; to be taken before them.
    mutating func takePurges() -> [(purge: Purge, version: InvalidationVersion)] {
        recordlessPurges.takeAll()
            + records.compactMap { record, _, count in
                record.invalidation.purge.map {
                    ($0, InvalidationVersion(epoch: epoch, count: count))
                }
            }
    }
}
