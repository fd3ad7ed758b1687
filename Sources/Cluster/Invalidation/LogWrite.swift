import Ground

/// An item to write to this node's log on disk.
package enum LogWrite: Hashable, Sendable {
    /// A record with the count of invalidations applied with it.
    ///
    /// The boot epoch and this count are the invalidation version of its marks.
    case record(InvalidationRecord, count: UInt64)
    /// A position up to which everything counts as applied, because all was marked soft at `count`.
    case floor(StreamPosition, count: UInt64)
    /// An invalidation that is not sent to other nodes.
    case localPurge(Purge, count: UInt64)

    /// An update of what need not be kept, and of the state that replaces it.
    ///
    /// Written with the next of the other items, ahead of it.
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

/// An update of what the log has on disk already.
package enum LogMetadataUpdate: Hashable, Sendable {
    /// Records up to this position need not be kept; the position must be.
    case dropped(StreamPosition)
    /// Only this position of the stream must be kept, as that of a retired stream.
    case retired(StreamPosition)
    /// Nothing of this stream must be kept any longer.
    case forgotten(ProcessID)
    /// The consensus state, written ahead of other updates that may drop records included in it.
    case consensusState(VoterSetConsensus.PersistentState)
}

extension PurgeTarget {
    /// The size of the name in bytes.
    fileprivate var nameBytes: Int {
        switch self {
        case .url(let name), .tag(let name): name.count
        case .prefix(let host, let path): host.count + path.count
        case .everything: 0
        }
    }
}

/// The group commit of log writes: those that wait while one batch is being synced.
struct WriteQueue: Sendable {
    struct PendingWrite: Sendable {
        var write: LogWrite
        /// The node that sent it; `nil` for what this node has created.
        var source: NodeID?
    }

    private var pendingMetadata = PendingMetadata()
    private var pendingWrites: [PendingWrite] = []
    /// The items that are written and not known to be synced; empty if there are none.
    private var batch: [PendingWrite] = []
    /// The size of waiting and written items in bytes, without metadata.
    private(set) var bytesCount = 0
    /// The earliest start of the next batch, to collect more items or after a failure.
    private var earliestBatchAt: Instant?
    /// True after a batch did not fit on the disk: metadata is written first, which frees space.
    private var isFreeingSpace = false

    mutating func add(_ write: LogWrite, from source: NodeID?) {
        // Of consecutive writes that mark everything soft, only the last is needed.
        if case .localPurge(.everythingSoft, _) = write,
            case .localPurge(.everythingSoft, _)? = pendingWrites.last?.write
        {
            pendingWrites[pendingWrites.count - 1].write = write
            return
        }
        pendingWrites.append(PendingWrite(write: write, source: source))
        bytesCount += write.bytesCount
    }

    /// Adds a metadata update, which is written with the next batch and causes none.
    mutating func add(_ note: LogMetadataUpdate) { pendingMetadata.add(note) }

    /// When the next batch may start; `nil` while one is under way or nothing is to be written.
    var dueAt: Instant? {
        let isWaiting = isFreeingSpace ? !pendingMetadata.isEmpty : !pendingWrites.isEmpty
        return batch.isEmpty && isWaiting ? earliestBatchAt ?? .distantPast : nil
    }

    /// Returns the next batch if it may start at `now`.
    ///
    /// `interval` returns the minimum time until the batch after it, given its record count.
    mutating func nextBatch(at now: Instant, interval: (Int) -> Interval) -> [LogWrite]? {
        guard let dueAt, dueAt <= now else { return nil }
        earliestBatchAt = now + interval(pendingWrites.count)
        batch = pendingMetadata.takeAll().map { PendingWrite(write: .metadata($0)) }
        if !isFreeingSpace { batch += pendingWrites.takeAll() }
        return batch.map(\.write)
    }

    /// Completes and returns the batch, which is on disk.
    mutating func completeBatch() -> [PendingWrite] {
        bytesCount -= batch.reduce(0) { $0 + ($1.write.isMetadata ? 0 : $1.write.bytesCount) }
        isFreeingSpace = false
        return batch.takeAll()
    }

    /// Requeues the batch, which may be on disk or not.
    mutating func batchFailed(beginsAt: Instant) {
        requeueBatch()
        isFreeingSpace = false
        self.earliestBatchAt = beginsAt
    }

    /// Requeues the batch, which was not written for lack of space, and writes pending
    /// metadata first.
    ///
    /// - Returns: False if the rejected batch consisted of such metadata.
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

/// The pending metadata updates; of positions dropped and of consensus states only the last counts.
private struct PendingMetadata: Sendable {
    private var memory: VoterSetConsensus.PersistentState?
    private var dropped = PositionVector()
    /// The retired and forgotten streams, in order.
    private var ends: [LogMetadataUpdate] = []

    var isEmpty: Bool { memory == nil && dropped.isEmpty && ends.isEmpty }

    mutating func add(_ note: LogMetadataUpdate) {
        switch note {
        case .consensusState(let memory): self.memory = memory
        case .dropped(let position): dropped.merge(position)
        case .retired, .forgotten: ends.append(note)
        }
    }

    /// Removes and returns all updates, the consensus state first.
    ///
    /// Updates that follow may drop records which that state includes. A retired stream is revived
    /// only by a record, which is written behind the metadata; so what was dropped is from before
    /// the retirement.
    mutating func takeAll() -> [LogMetadataUpdate] {
        defer { self = PendingMetadata() }
        let positions = dropped.positions.map { LogMetadataUpdate.dropped($0) }
        return (memory.map { [.consensusState($0)] } ?? []) + positions + ends
    }
}
