import Ground

/// The state of streams and consensus that the journal encodes, other than records.
///
/// Items are applied in the same way when they are written and when they are read, so a restart
/// finds the state that the writer had.
struct JournalState: Sendable {
    /// The positions up to which records need not be kept, of streams that are not retired.
    private var floors = PositionVector()
    /// The retired streams.
    private(set) var retired: [ProcessID: RetiredStream] = [:]
    /// The positions before which the items of a stream are invalid.
    private(set) var tombstones: [ProcessID: JournalPosition] = [:]
    private(set) var persistentState: VoterSetConsensus.PersistentState?
    private(set) var latestVersion = InvalidationVersion.zero
    /// The version up to which only ``JournalItem/marks(_:upTo:)`` name the invalidations.
    private(set) var releasedVersion = InvalidationVersion.zero
    /// The consensus state that is being read, with the number of its records still to come.
    private var incompleteState: (state: VoterSetConsensus.PersistentState, recordsLeft: Int)?
    private var retirementCount: UInt64 = 0

    struct RetiredStream: Hashable, Sendable {
        /// The last number of the stream.
        var count: UInt64
        /// The order of retirement.
        var order: UInt64
    }

    /// Applies an item at `place` that was written in boot epoch `epoch`.
    mutating func apply(_ item: JournalItem, at place: JournalPosition, epoch: UInt64) {
        switch item {
        case .record(let record, let count): recordWritten(record.id.stream, count, epoch)
        case .floor(let position, let count):
            recordWritten(position.process, count, epoch)
            floors.merge(position)
        case .localPurge(_, let count): raiseLatestVersion(count, epoch)
        case .marks(_, let version): release(version)
        case .dropped(let positions):
            for position in positions {
                revive(position.process)
                floors.merge(position)
            }
        case .retired(let positions): for position in positions { retire(position) }
        case .forgotten(let processes):
            for process in processes {
                floors.remove(process)
                retired[process] = nil
                tombstones[process] = place
            }
        case .consensusState(let state, let recordsCount):
            incompleteState = (state, recordsCount)
            completeState()
        case .consensusRecord(let record):
            incompleteState?.state.records.append(record)
            incompleteState?.recordsLeft -= 1
            completeState()
        case .checkpoint(let checkpoint):
            self = JournalState()
            latestVersion = checkpoint.latestVersion
            for tombstone in checkpoint.tombstones {
                tombstones[tombstone.process] = tombstone.before
            }
        case .filesRemoved, .checkpointEnd: break
        }
    }

    /// Adopts the consensus state that is being read, once all of its records have been applied.
    private mutating func completeState() {
        guard let incompleteState, incompleteState.recordsLeft <= 0 else { return }
        persistentState = incompleteState.state
        self.incompleteState = nil
    }

    /// Raises the latest version for a record or floor of a stream, and revives the stream if it
    /// was retired.
    private mutating func recordWritten(_ process: ProcessID, _ count: UInt64, _ epoch: UInt64) {
        raiseLatestVersion(count, epoch)
        revive(process)
    }

    private mutating func raiseLatestVersion(_ count: UInt64, _ epoch: UInt64) {
        latestVersion = max(latestVersion, InvalidationVersion(epoch: epoch, count: count))
    }

    /// Records that files no longer name the invalidations up to `version`.
    mutating func release(_ version: InvalidationVersion) {
        releasedVersion = max(releasedVersion, version)
        latestVersion = max(latestVersion, version)
    }

    /// Revives a retired stream, which continues behind its last number.
    private mutating func revive(_ process: ProcessID) {
        guard let last = retired.removeValue(forKey: process) else { return }
        floors.merge(StreamPosition(process: process, count: last.count))
    }

    /// Marks a stream as retired; one that is retired already keeps its order and the greater
    /// number.
    private mutating func retire(_ position: StreamPosition) {
        floors.remove(position.process)
        let before = retired[position.process]
        retirementCount += 1
        retired[position.process] = RetiredStream(
            count: max(position.count, before?.count ?? 0), order: before?.order ?? retirementCount)
    }

    /// Returns true if a record at `place`, or before it in its file, need not be kept.
    func isObsolete(_ name: RecordID, at place: JournalPosition) -> Bool {
        if let before = tombstones[name.stream], place < before { return true }
        return floors.covers(name.position) || name.number <= retired[name.stream]?.count ?? 0
    }

    /// Drops the tombstones at positions before `file`, which no longer have an effect.
    mutating func removeTombstones(before file: UInt64) {
        tombstones = tombstones.filter { $0.value.file >= file }
    }

    // MARK: Checkpoints

    /// The floors, by process.
    var floorPositions: [StreamPosition] { floors.positions }

    /// The last positions of the retired streams, in order of retirement.
    var retiredPositions: [StreamPosition] {
        retired.sorted { $0.value.order < $1.value.order }
            .map { StreamPosition(process: $0.key, count: $0.value.count) }
    }

    /// Returns the checkpoint items for the beginning of a file.
    ///
    /// - Parameters:
    ///   - files: The valid files before it.
    ///   - marks: The marks of invalidations up to ``releasedVersion``, in pieces.
    /// - Returns: The items in the order in which they are written.
    func items(files: [JournalPosition], marks: [[UInt8]]) -> [JournalItem] {
        let tombstones = tombstones.map {
            JournalCheckpoint.Tombstone(process: $0.key, before: $0.value)
        }
        .sorted { $0.process < $1.process }
        var items: [JournalItem] = [
            .checkpoint(
                JournalCheckpoint(
                    files: files, tombstones: tombstones, latestVersion: latestVersion))
        ]
        if !floors.isEmpty { items.append(.dropped(floorPositions)) }
        if !retired.isEmpty { items.append(.retired(retiredPositions)) }
        if let persistentState { items += Self.items(of: persistentState) }
        items += marks.map { .marks($0, upTo: releasedVersion) }
        return items + [.checkpointEnd]
    }

    /// Returns the items that encode `state`: its head, then each of its records.
    static func items(of state: VoterSetConsensus.PersistentState) -> [JournalItem] {
        var head = state
        head.records = []
        return [.consensusState(head, recordsCount: state.records.count)]
            + state.records.map { .consensusRecord($0) }
    }
}
