import Cluster
import Ground
import Serving
import Tiers

/// The state that outlives a process.
struct SimulatedStorage: Sendable {
    /// The boot epoch of the last start.
    var epoch: UInt64 = 0
    var records: [InvalidationRecord] = []
    var floors: [StreamPosition] = []
    var retired: [StreamPosition] = []
    var persistentState: VoterSetConsensus.PersistentState?
    var marks: [InvalidationMark] = []
    /// The version below which every entry must be revalidated, whatever staleness is permitted.
    var validateBefore = InvalidationVersion.zero
    /// The stored entries, including superseded ones that are not yet reclaimed.
    var entries: [SimulatedEntry] = []
    /// The number of entries written so far.
    var sequence: UInt64 = 0
    /// The purges whose marks are stored.
    var purges: Set<Int> = []
    /// All records that were ever stored.
    var synced: Set<RecordID> = []

    /// The storage of a directory whose node gives up its identity.
    ///
    /// All kept entries need one revalidation, and the promises belong to another member.
    var withoutPromises: SimulatedStorage {
        var storage = SimulatedStorage()
        (storage.epoch, storage.entries, storage.sequence) = (epoch, entries, sequence)
        let version = InvalidationVersion(epoch: epoch, count: .max)
        storage.marks = [InvalidationMark(.everything, isSoft: true, version: version)]
        storage.validateBefore = version
        return storage
    }

    /// Stores a record; returns the records that can be listed to others from now on, as no gap
    /// precedes them.
    mutating func add(_ record: InvalidationRecord) -> [RecordID] {
        records.append(record)
        synced.insert(record.id)
        let stream = record.id.stream
        let kept = PositionVector(floors + retired).count(of: stream)
        var name = RecordID(stream: stream, number: min(kept, record.id.number) + 1)
        while name.number < record.id.number, synced.contains(name) { name.number += 1 }
        guard name.number >= record.id.number else { return [] }
        return names(behind: StreamPosition(process: stream, count: name.number - 1))
    }

    /// Returns the stored records after the position, up to the first gap.
    func names(behind position: StreamPosition) -> [RecordID] {
        var named: [RecordID] = []
        var name = RecordID(stream: position.process, number: position.count + 1)
        while synced.contains(name) {
            named.append(name)
            name.number += 1
        }
        return named
    }

    /// Stores the marks of a purge.
    mutating func add(_ purge: Purge, at version: InvalidationVersion) {
        marks += purge.marks(at: version)
        if purge == .everythingSoft { validateBefore = max(validateBefore, version) }
    }

    /// Applies a metadata update: records are dropped, and their marks remain unless `dropsMarks`,
    /// a deliberate fault.
    mutating func apply(_ note: LogMetadataUpdate, dropsMarks: Bool) {
        switch note {
        case .consensusState(let state): persistentState = state
        case .dropped(let position):
            drop(position, withMarks: dropsMarks)
            floors.append(position)
        case .retired(let position):
            let all = StreamPosition(process: position.process, count: .max)
            drop(all, withMarks: dropsMarks)
            floors.removeAll { $0.process == position.process }
            retired.append(position)
        case .forgotten(let process):
            retired.removeAll { $0.process == process }
        }
    }

    /// Drops the records up to the position, and their marks if wanted.
    private mutating func drop(_ position: StreamPosition, withMarks: Bool) {
        let gone = records.filter {
            $0.id.stream == position.process && $0.id.number <= position.count
        }
        let names = Set(gone.map(\.id))
        records.removeAll { names.contains($0.id) }
        guard withMarks else { return }
        for targets in gone.compactMap(\.invalidation.purge?.targets) {
            marks.removeAll { targets.contains($0.target) }
        }
    }
}

/// A stored response whose body is a version number.
struct SimulatedEntry: Hashable, Sendable {
    var key: Int
    var contentVersion: Int
    var invalidationVersion: InvalidationVersion
    /// The end of freshness, on the node's clock.
    var freshUntil: Instant
    /// The time of the last validation, on the node's clock.
    var validatedAt: Instant
    /// The place of its write in the order of writes to disk; 0 before that.
    var sequence: UInt64 = 0
    /// The simulated time of its write to disk.
    var writtenAt = Instant.zero
}
