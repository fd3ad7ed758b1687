import Ground

/// What is written to this node's log on disk.
package enum LogWrite: Hashable, Sendable {
    /// `count` is what the count of invalidations applied was with it: with the boot epoch, the
    /// stamp that its marks have.
    case record(InvalidationRecord, count: UInt64)
    /// Everything up to here counts as applied, for everything was marked soft at `count`.
    case floor(StreamPosition, count: UInt64)

    /// What it makes this node have.
    var covered: (process: ProcessID, numbers: ClosedRange<UInt64>) {
        switch self {
        case .record(let record, _):
            (record.name.stream, record.name.number...record.name.number)
        case .floor(let position, _): (position.process, 1...position.count)
        }
    }

    var bytesCount: Int {
        switch self {
        case .record(let record, _): record.bytesCount
        case .floor: 34
        }
    }
}

/// Group commit: what waits to be written while one batch is being synced.
struct WriteQueue: Sendable {
    private struct Waiting: Sendable {
        var write: LogWrite
        /// Who gave it; nil for what this node issued.
        var source: NodeID?
    }

    private var waiting: [Waiting] = []
    /// Written, and not known to be synced; empty if nothing is.
    private var batch: [Waiting] = []
    /// Bytes in both.
    private(set) var bytesCount = 0
    /// After a failure nothing is written before this.
    private(set) var resumesAt: Instant?

    mutating func add(_ write: LogWrite, from source: NodeID?) {
        waiting.append(Waiting(write: write, source: source))
        bytesCount += write.bytesCount
    }

    /// The next batch, if none is under way; nil if there is nothing to write.
    mutating func next() -> [LogWrite]? {
        guard batch.isEmpty, !waiting.isEmpty, resumesAt == nil else { return nil }
        swap(&batch, &waiting)
        return batch.map(\.write)
    }

    /// The batch is on disk: what it was, and who gave some of it.
    mutating func synced() -> (writes: [LogWrite], sources: [NodeID]) {
        let writes = batch.map(\.write)
        let sources = Set(batch.compactMap(\.source)).sorted()
        bytesCount -= writes.reduce(0) { $0 + $1.bytesCount }
        batch.removeAll()
        return (writes, sources)
    }

    /// The batch may be on disk or not: it is written again.
    mutating func failed(resumesAt: Instant) {
        waiting = batch + waiting
        batch.removeAll()
        self.resumesAt = resumesAt
    }

    mutating func ticked(_ now: Instant) {
        if let resumesAt, resumesAt <= now { self.resumesAt = nil }
    }
}
