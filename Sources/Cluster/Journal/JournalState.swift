import Ground

/// What the journal says of streams and of the count, without the records: the same for whoever
/// writes an item and for whoever reads it.
struct JournalState: Sendable {
    /// Records up to here need not be kept, of streams that are not retired.
    private(set) var floors: [ProcessID: UInt64] = [:]
    private(set) var retired: [ProcessID: RetiredStream] = [:]
    /// What stands before these places of these streams does not count.
    private(set) var tombstones: [ProcessID: JournalPosition] = [:]
    private(set) var persistentState: VoterSetConsensus.PersistentState?
    private(set) var latestVersion = InvalidationVersion.zero
    /// What was invalidated up to here no file names, but for ``JournalItem/marks(_:upTo:)``.
    private(set) var releasedVersion = InvalidationVersion.zero
    /// Records of the count that belong to the memory that is being read.
    private var incompleteState: (memory: VoterSetConsensus.PersistentState, left: Int)?
    private var retirementCount: UInt64 = 0

    struct RetiredStream: Hashable, Sendable {
        /// The last number.
        var count: UInt64
        /// Tells which was retired first.
        var order: UInt64
    }

    /// Takes in an item that stands at `place`, written in this boot epoch.
    mutating func apply(_ item: JournalItem, at place: JournalPosition, epoch: UInt64) {
        switch item {
        case .record(let record, let count): recordWritten(record.id.stream, count, epoch)
        case .floor(let position, let count):
            recordWritten(position.process, count, epoch)
            raise(position)
        case .localPurge(_, let count): raiseLatestVersion(count, epoch)
        case .marks(_, let version): release(version)
        case .dropped(let positions):
            for position in positions {
                revive(position.process)
                raise(position)
            }
        case .retired(let positions): for position in positions { retire(position) }
        case .forgotten(let processes):
            for process in processes {
                floors[process] = nil
                retired[process] = nil
                tombstones[process] = place
            }
        case .consensusState(let memory, let recordsCount):
            incompleteState = (memory, recordsCount)
            completeState()
        case .consensusRecord(let record):
            incompleteState?.memory.records.append(record)
            incompleteState?.left -= 1
            completeState()
        case .checkpoint(let checkpoint):
            self = JournalState()
            latestVersion = checkpoint.latestVersion
            for void in checkpoint.tombstones { tombstones[void.process] = void.before }
        case .filesRemoved, .checkpointEnd: break
        }
    }

    private mutating func completeState() {
        guard let incompleteState, incompleteState.left <= 0 else { return }
        persistentState = incompleteState.memory
        self.incompleteState = nil
    }

    private mutating func recordWritten(_ process: ProcessID, _ count: UInt64, _ epoch: UInt64) {
        raiseLatestVersion(count, epoch)
        revive(process)
    }

    private mutating func raiseLatestVersion(_ count: UInt64, _ epoch: UInt64) {
        latestVersion = max(latestVersion, InvalidationVersion(epoch: epoch, count: count))
    }

    /// What was invalidated up to `stamp` no file names from now on.
    mutating func release(_ version: InvalidationVersion) {
        releasedVersion = max(releasedVersion, version)
        latestVersion = max(latestVersion, version)
    }

    /// A stream that was retired and goes on begins behind its last number.
    private mutating func revive(_ process: ProcessID) {
        guard let last = retired.removeValue(forKey: process) else { return }
        raise(StreamPosition(process: process, count: last.count))
    }

    private mutating func raise(_ position: StreamPosition) {
        floors[position.process] = max(floors[position.process] ?? 0, position.count)
    }

    private mutating func retire(_ position: StreamPosition) {
        floors[position.process] = nil
        let before = retired[position.process]
        retirementCount += 1
        retired[position.process] = RetiredStream(
            count: max(position.count, before?.count ?? 0), order: before?.order ?? retirementCount)
    }

    /// True if a record need not be kept that stands at `place`, or before it in its file.
    func isObsolete(_ name: RecordID, at place: JournalPosition) -> Bool {
        if let before = tombstones[name.stream], place < before { return true }
        return name.number <= floors[name.stream] ?? 0
            || name.number <= retired[name.stream]?.count ?? 0
    }

    /// Places before `file` are of no interest any more.
    mutating func removeTombstones(before file: UInt64) {
        tombstones = tombstones.filter { $0.value.file >= file }
    }

    // MARK: What a checkpoint says

    /// By process.
    var floorPositions: [StreamPosition] {
        floors.map { StreamPosition(process: $0.key, count: $0.value) }
            .sorted { $0.process < $1.process }
    }

    /// In the order of retirement.
    var retiredPositions: [StreamPosition] {
        retired.sorted { $0.value.order < $1.value.order }
            .map { StreamPosition(process: $0.key, count: $0.value.count) }
    }

    /// All of this as the items that stand at the beginning of a file, with `marks` for what was
    /// invalidated up to ``released``.
    func items(files: [JournalPosition], marks: [[UInt8]]) -> [JournalItem] {
        let voids = tombstones.map {
            JournalCheckpoint.Tombstone(process: $0.key, before: $0.value)
        }
        .sorted { $0.process < $1.process }
        var items: [JournalItem] = [
            .checkpoint(
                JournalCheckpoint(files: files, tombstones: voids, latestVersion: latestVersion))
        ]
        if !floors.isEmpty { items.append(.dropped(floorPositions)) }
        if !retired.isEmpty { items.append(.retired(retiredPositions)) }
        if let persistentState { items += Self.items(of: persistentState) }
        items += marks.map { .marks($0, upTo: releasedVersion) }
        return items + [.checkpointEnd]
    }

    static func items(of memory: VoterSetConsensus.PersistentState) -> [JournalItem] {
        var head = memory
        head.records = []
        return [.consensusState(head, recordsCount: memory.records.count)]
            + memory.records.map { .consensusRecord($0) }
    }
}
