import Ground

/// What is written to this node's log on disk.
package enum LogWrite: Hashable, Sendable {
    /// `count` is what the count of invalidations applied was with it: with the boot epoch, the
    /// stamp of its marks.
    case record(InvalidationRecord, count: UInt64)
    /// Everything up to here counts as applied, for everything was marked soft at `count`.
    case floor(StreamPosition, count: UInt64)
    /// What this node alone has invalidated: no other is told of it.
    case localPurge(Purge, count: UInt64)

    /// What need not be kept any more, and what has to be in its place; written with the next of
    /// the above, ahead of it.
    case metadata(LogMetadataUpdate)

    var bytesCount: Int {
        switch self {
        case .record(let record, _): record.bytesCount
        case .floor, .metadata: 34
        case .localPurge(let purge, _): purge.targets.reduce(34) { $0 + $1.nameBytes }
        }
    }

    var isMetadata: Bool {
        if case .metadata = self { true } else { false }
    }

    var isFloor: Bool {
        if case .floor = self { true } else { false }
    }
}

/// What the log says of what is on its disk already.
package enum LogMetadataUpdate: Hashable, Sendable {
    /// Records up to here need not be kept; the position must be.
    case dropped(StreamPosition)
    /// Nothing of this stream need be kept but this position, as a retired one.
    case retired(StreamPosition)
    /// Not even the position of this stream need be kept any longer.
    case forgotten(ProcessID)
    /// What is remembered of the count; on disk before anything is gone that a later one names.
    case consensusState(VoterSetConsensus.PersistentState)
}

extension PurgeTarget {
    /// Bytes of its name.
    fileprivate var nameBytes: Int {
        switch self {
        case .url(let name), .tag(let name): name.count
        case .prefix(let host, let path): host.count + path.count
        case .everything: 0
        }
    }
}

/// Group commit: what waits to be written while one batch is being synced.
struct WriteQueue: Sendable {
    struct PendingWrite: Sendable {
        var write: LogWrite
        /// Who gave it; nil for what this node has made.
        var source: NodeID?
    }

    private var pendingMetadata = PendingMetadata()
    private var pendingWrites: [PendingWrite] = []
    /// Written, and not known to be synced; empty if nothing is.
    private var batch: [PendingWrite] = []
    /// Bytes in both, notes apart.
    private(set) var bytesCount = 0
    /// No batch is begun before this: for what comes meanwhile to go with it, or after a failure.
    private var earliestBatchAt: Instant?
    /// There was no room: first the notes go, which make some.
    private var isFreeingSpace = false

    mutating func add(_ write: LogWrite, from source: NodeID?) {
        // Of what makes everything soft the last says all.
        if case .localPurge(.everythingSoft, _) = write,
            case .localPurge(.everythingSoft, _)? = pendingWrites.last?.write
        {
            pendingWrites[pendingWrites.count - 1].write = write
            return
        }
        pendingWrites.append(PendingWrite(write: write, source: source))
        bytesCount += write.bytesCount
    }

    /// It is written with the next batch; nothing is written for it alone.
    mutating func add(_ note: LogMetadataUpdate) { pendingMetadata.add(note) }

    /// When the next batch may be begun; nil while one is under way, or nothing is to be written.
    var dueAt: Instant? {
        let isWaiting = isFreeingSpace ? !pendingMetadata.isEmpty : !pendingWrites.isEmpty
        return batch.isEmpty && isWaiting ? earliestBatchAt ?? .distantPast : nil
    }

    /// The next batch, if it may be begun at `now`; the one after it not within the `interval` that
    /// is for so many records.
    mutating func nextBatch(at now: Instant, interval: (Int) -> Interval) -> [LogWrite]? {
        guard let dueAt, dueAt <= now else { return nil }
        earliestBatchAt = now + interval(pendingWrites.count)
        batch = pendingMetadata.takeAll().map { PendingWrite(write: .metadata($0)) }
        if !isFreeingSpace { batch += pendingWrites.takeAll() }
        return batch.map(\.write)
    }

    /// The batch, which is on disk.
    mutating func completeBatch() -> [PendingWrite] {
        bytesCount -= batch.reduce(0) { $0 + ($1.write.isMetadata ? 0 : $1.write.bytesCount) }
        isFreeingSpace = false
        return batch.takeAll()
    }

    /// The batch may be on disk or not: it is written again.
    mutating func batchFailed(beginsAt: Instant) {
        requeueBatch()
        isFreeingSpace = false
        self.earliestBatchAt = beginsAt
    }

    /// There was no room for the batch, and nothing was written: notes of what is given up come
    /// next, as far as there are any.
    ///
    /// False if there was no room for such notes.
    mutating func rejectBatch() -> Bool {
        guard !isFreeingSpace else { return false }
        requeueBatch()
        isFreeingSpace = !pendingMetadata.isEmpty
        earliestBatchAt = nil
        return true
    }

    private mutating func requeueBatch() {
        var later = PendingMetadata()
        swap(&later, &pendingMetadata)
        for case .metadata(let note) in batch.map(\.write) { pendingMetadata.add(note) }
        for note in later.takeAll() { pendingMetadata.add(note) }
        pendingWrites = batch.takeAll().filter { !$0.write.isMetadata } + pendingWrites
    }
}

/// Notes that wait; of what was dropped, and of what is remembered, the last counts.
private struct PendingMetadata: Sendable {
    private var memory: VoterSetConsensus.PersistentState?
    private var dropped = PositionVector()
    /// Retired and forgotten streams, in this order.
    private var ends: [LogMetadataUpdate] = []

    var isEmpty: Bool { memory == nil && dropped.isEmpty && ends.isEmpty }

    mutating func add(_ note: LogMetadataUpdate) {
        switch note {
        case .consensusState(let memory): self.memory = memory
        case .dropped(let position): dropped.merge(position)
        case .retired, .forgotten: ends.append(note)
        }
    }

    /// What is remembered of the count comes first: of its records those may be gone that follow.
    ///
    /// A stream goes on after it was retired only with a record, which is written behind the notes;
    /// so what was dropped is of before.
    mutating func takeAll() -> [LogMetadataUpdate] {
        defer { self = PendingMetadata() }
        let positions = dropped.positions.map { LogMetadataUpdate.dropped($0) }
        return (memory.map { [.consensusState($0)] } ?? []) + positions + ends
    }
}
