import Ground

/// The construction of one journal write: its effects and the resulting layout.
struct JournalWriter {
    private let node: NodeID
    private let epoch: UInt64
    private let fileBytesMax: Int
    private var layout: JournalLayout
    private var effects: [JournalEffect] = []
    /// The bytes to append to the active file.
    private var unwritten: [UInt8] = []
    /// The size of the active file's part that is already synced.
    private var synced = 0
    private var framing = JournalItemFraming(salt: 0)

    init(_ journal: Journal, _ plan: JournalLayout) {
        (node, epoch) = (journal.node, journal.epoch)
        fileBytesMax = journal.settings.fileBytesMax
        self.layout = plan
        framing = JournalItemFraming(salt: plan.salt)
        synced = plan.files.last?.end ?? 0
    }

    /// Returns the marks of invalidations after the first version up to the second, in pieces.
    typealias MarkProvider = (_ after: InvalidationVersion, _ upTo: InvalidationVersion) ->
        [[UInt8]]

    /// Writes `batch`, whose metadata comes first.
    ///
    /// Deletes the files that are due, begins a file unless one is open, and writes the metadata;
    /// then removes the files that this makes obsolete, and writes the other items.
    mutating func write(_ batch: [LogWrite], _ marks: MarkProvider, using dice: inout SplitMix64) {
        // Before anything is written: the items that invalidate these files are synced.
        let last = layout.files.last?.number ?? 0
        for number in layout.filesToDelete.keys.sorted(by: >) {
            effects.append(.delete(number))
            // A file of a failed write must be durably deleted before the file that it names as
            // previous.
            if number > last { effects.append(.syncDirectory) }
        }
        layout.filesToDelete.removeAll()
        if !layout.isOpen { beginFile(marks, using: &dice) }
        for write in batch.prefix(while: \.isMetadata) {
            put(JournalItem.items(of: write), marks, using: &dice)
        }
        removeFiles(marks, using: &dice)
        for write in batch.drop(while: \.isMetadata) {
            put(JournalItem.items(of: write), marks, using: &dice)
        }
    }

    /// Writes that the files which need not be kept are removed, after marks of what they
    /// invalidated; the next write deletes them.
    private mutating func removeFiles(_ marks: MarkProvider, using dice: inout SplitMix64) {
        let before = layout.state.releasedVersion
        let obsolete = takeObsoleteFiles()
        guard !obsolete.isEmpty else { return }
        let after = layout.state.releasedVersion
        for piece in after > before ? marks(before, after) : [] {
            put([.marks(piece, upTo: after)], marks, using: &dice)
        }
        put([.filesRemoved(obsolete)], marks, using: &dice)
    }

    /// Returns the resulting layout and the effects.
    consuming func finish() -> (JournalLayout, [JournalEffect]) {
        endAppend()
        return (layout, effects)
    }

    /// Appends items that must be in one file; begins the next file if the active one would grow
    /// too large.
    private mutating func put(
        _ items: [JournalItem], _ marks: MarkProvider, using dice: inout SplitMix64
    ) {
        let coded = items.map(\.encoded)
        let last = layout.files.count - 1
        let used = layout.files[last].bytesCount - layout.itemsStart
        let needed = coded.reduce(0) { $0 + JournalItemFraming.bytesCount($1.content) }
        if used > 0, used + needed > fileBytesMax {
            endAppend()
            beginFile(marks, using: &dice)
        }
        for (item, coded) in zip(items, coded) { append(item, coded) }
    }

    /// Appends an encoded item to the active file, and applies it to the layout's state.
    private mutating func append(
        _ item: JournalItem, _ coded: (kind: JournalItem.Kind, content: [UInt8])
    ) {
        let last = layout.files.count - 1
        let offset = layout.files[last].bytesCount
        framing.append(
            coded.kind, coded.content, synced: synced, to: &unwritten,
            start: offset - unwritten.count)
        layout.files[last].bytesCount += JournalItemFraming.bytesCount(coded.content)
        let place = JournalPosition(file: layout.files[last].number, offset: UInt64(offset))
        layout.state.apply(item, at: place, epoch: epoch)
        switch item {
        case .record(let record, let count):
            layout.files[last].include(record.id)
            layout.files[last].raiseLatestVersion(InvalidationVersion(epoch: epoch, count: count))
        case .floor(_, let count), .localPurge(_, let count):
            layout.files[last].raiseLatestVersion(InvalidationVersion(epoch: epoch, count: count))
        case .forgotten(let processes):
            for process in processes { layout.files[last].lastPositions.remove(process) }
        default: break
        }
    }

    /// Appends and syncs the pending bytes of the active file.
    private mutating func endAppend() {
        guard !unwritten.isEmpty, let last = layout.files.last else { return }
        effects += [.append(last.number, unwritten.takeAll()), .sync(last.number)]
        synced = last.bytesCount
        layout.files[layout.files.count - 1].end = synced
    }

    /// Begins the next file; its header is synced alone, so that a longer file always has a header.
    private mutating func beginFile(_ marks: MarkProvider, using dice: inout SplitMix64) {
        let number = layout.nextNumber
        let header = JournalHeader(
            node: node, number: number, epoch: epoch, salt: dice.next(),
            previous: layout.files.last?.endPosition)
        let size = JournalHeader.bytesCount
        effects += [.create(number), .append(number, header.bytes), .sync(number)]
        _ = takeObsoleteFiles()
        layout.state.removeTombstones(before: layout.files.first?.number ?? .max)
        let files = layout.files.map(\.endPosition)
        layout.files.append(JournalFile(number: number, end: size, bytesCount: size))
        layout.nextNumber += 1
        layout.isOpen = true
        layout.salt = header.salt
        framing = JournalItemFraming(salt: header.salt)
        synced = size
        let state = layout.state
        let pieces = state.releasedVersion > .zero ? marks(.zero, state.releasedVersion) : []
        for item in state.items(files: files, marks: pieces) { append(item, item.encoded) }
        layout.itemsStart = layout.files[layout.files.count - 1].bytesCount
    }

    /// Removes obsolete files from the layout and returns their numbers; the next write deletes
    /// them.
    private mutating func takeObsoleteFiles() -> [UInt64] {
        var obsolete: [UInt64] = []
        for (index, file) in layout.files.enumerated() {
            let isLast = layout.isOpen && index == layout.files.count - 1
            guard !isLast, file.livePositions(layout.state).isEmpty else { continue }
            obsolete.append(file.number)
            layout.filesToDelete[file.number] = file.bytesCount
            layout.state.release(file.latestVersion)
        }
        layout.files.removeAll { obsolete.contains($0.number) }
        return obsolete
    }
}
