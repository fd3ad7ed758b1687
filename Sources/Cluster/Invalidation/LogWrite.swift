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

    /// The approximate size on disk in bytes, by which waiting writes are limited.
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

/// The invalidations applied here: counted in order, remembered for queries, and queued for the
/// disk.
struct AppliedInvalidations: Sendable {
    private(set) var history = AppliedHistory()
    var writes = WriteQueue()
    /// The streams in which something was applied that the fence does not know yet.
    var changedStreams: Set<ProcessID> = []

    /// Applies a record; `source` is the node that sent it, `nil` for what this node has issued.
    mutating func apply(
        _ record: InvalidationRecord, from source: NodeID?, _ effects: inout [InvalidationEffect]
    ) {
        let count = history.append(record.id)
        effects.append(.apply(record, count: count))
        changedStreams.insert(record.id.stream)
        writes.add(.record(record, count: count), from: source)
    }

    /// Marks everything soft once for records that are no longer available; no effect without
    /// floors.
    mutating func applyFloors(
        _ floors: [StreamPosition], from source: NodeID?, _ effects: inout [InvalidationEffect]
    ) {
        guard !floors.isEmpty else { return }
        let count = history.append(nil)
        effects.append(.applyFloors(floors, count: count))
        changedStreams.formUnion(floors.map(\.process))
        for floor in floors { writes.add(.floor(floor, count: count), from: source) }
    }

    /// Applies an invalidation that is not sent to other nodes.
    ///
    /// Everything is marked soft instead if `unsyncedBytesMax` bytes wait to be synced, or if the
    /// purge is too long to be written.
    mutating func applyLocally(
        _ purge: Purge, unsyncedBytesMax: Int, _ effects: inout [InvalidationEffect]
    ) {
        // A name that is too long cannot be written.
        guard writes.bytesCount < unsyncedBytesMax,
            (try? Invalidation(id: [0], .purge(purge)).content()) != nil
        else { return markAllSoft(&effects) }
        let count = history.append(nil)
        effects.append(.applyLocally(purge, count: count))
        writes.add(.localPurge(purge, count: count), from: nil)
    }

    /// Marks everything soft once, on this node only.
    mutating func markAllSoft(_ effects: inout [InvalidationEffect]) {
        let count = history.append(nil)
        effects.append(.applyFloors([], count: count))
        writes.add(.localPurge(.everythingSoft, count: count), from: nil)
    }
}

/// The invalidations applied last, by the count of invalidations applied.
struct AppliedHistory: Sendable {
    /// The record ids, oldest first; `nil` stands for a floor or a local invalidation.
    private var names: [RecordID?] = []
    /// The count of invalidations applied.
    private(set) var count: UInt64 = 0

    /// The minimum number of ids that are kept.
    static let countMin = 4_096

    /// Adds an invalidation and returns the count with it.
    mutating func append(_ name: RecordID?) -> UInt64 {
        names.append(name)
        count += 1
        if names.count >= 2 * Self.countMin { names.removeFirst(Self.countMin) }
        return count
    }

    /// Returns the ids applied after count `start`.
    ///
    /// `nil` if some of them are no longer kept, or one stands for a floor or a local invalidation.
    func names(after start: UInt64) -> [RecordID]? {
        guard start < count else { return [] }
        let wanted = count - start
        guard wanted <= UInt64(names.count) else { return nil }
        var found: [RecordID] = []
        for name in names.suffix(Int(wanted)) {
            guard let name else { return nil }
            found.append(name)
        }
        return found
    }
}

/// The group commit of log writes: those that wait while one batch is being synced.
struct WriteQueue: Sendable {
    /// An item with its source, which receives a confirmation once the item is synced.
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

    /// Adds an item for the next batch; one that marks everything soft replaces another directly
    /// before it.
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
    mutating func add(_ update: LogMetadataUpdate) { pendingMetadata.add(update) }

    /// When the next batch may start; `nil` while one is under way or nothing is to be written.
    var dueAt: Instant? {
        let isWaiting = isFreeingSpace ? !pendingMetadata.isEmpty : !pendingWrites.isEmpty
        return batch.isEmpty && isWaiting ? earliestBatchAt ?? .distantPast : nil
    }

    /// Returns the next batch if it may start at `now`, metadata first; none while another is under
    /// way.
    ///
    /// While space is to be freed, the batch consists of metadata alone. `interval` returns the
    /// minimum time until the batch after it, given its record count.
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

    /// Requeues the batch, which may be on disk or not, for a start no earlier than `beginsAt`.
    mutating func batchFailed(beginsAt: Instant) {
        requeueBatch()
        isFreeingSpace = false
        self.earliestBatchAt = beginsAt
    }

    /// Requeues the batch, which was not written for lack of space; the next one has pending
    /// metadata alone, if there is any.
    ///
    /// - Returns: False, without a change, if the rejected batch consisted of such metadata.
    mutating func rejectBatch() -> Bool {
        guard !isFreeingSpace else { return false }
        requeueBatch()
        isFreeingSpace = !pendingMetadata.isEmpty
        earliestBatchAt = nil
        return true
    }

    /// Puts the items of the batch back ahead of those that wait.
    private mutating func requeueBatch() {
        var later = PendingMetadata()
        swap(&later, &pendingMetadata)
        for case .metadata(let update) in batch.map(\.write) { pendingMetadata.add(update) }
        for update in later.takeAll() { pendingMetadata.add(update) }
        pendingWrites = batch.takeAll().filter { !$0.write.isMetadata } + pendingWrites
    }
}

/// The pending metadata updates; of positions dropped and of consensus states only the last counts.
private struct PendingMetadata: Sendable {
    private var state: VoterSetConsensus.PersistentState?
    private var dropped = PositionVector()
    /// The retired and forgotten streams, in order.
    private var ends: [LogMetadataUpdate] = []

    var isEmpty: Bool { state == nil && dropped.isEmpty && ends.isEmpty }

    mutating func add(_ update: LogMetadataUpdate) {
        switch update {
        case .consensusState(let state): self.state = state
        case .dropped(let position): dropped.merge(position)
        case .retired, .forgotten: ends.append(update)
        }
    }

    /// Removes and returns all updates: the consensus state, the dropped positions, the ends of
    /// streams.
    ///
    /// The state comes first because later updates may drop records that it includes. A dropped
    /// position must not follow the retirement of its stream, which it would revive. It is from
    /// before the retirement, because only a record revives a stream, and records are written
    /// behind the metadata.
    mutating func takeAll() -> [LogMetadataUpdate] {
        defer { self = PendingMetadata() }
        let positions = dropped.positions.map { LogMetadataUpdate.dropped($0) }
        return (state.map { [.consensusState($0)] } ?? []) + positions + ends
    }
}
