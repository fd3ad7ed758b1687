import Ground

/// Whom is to be told soon how far their streams are synced here: those who issued records, and
/// those who gave them.
struct PendingConfirmations: Sendable {
    private var streams = SortedTable<NodeID, Set<ProcessID>>()
    /// When they are to be told; nil if nobody is.
    private(set) var dueAt: Instant?

    /// `node` is to be told how far the stream of `process` is synced here: at `dueAt`, or with
    /// what is due before.
    mutating func add(_ process: ProcessID, to node: NodeID, at dueAt: Instant) {
        streams.update(node, or: []) { $0.insert(process) }
        self.dueAt = self.dueAt ?? dueAt
    }

    /// Takes all if that is due.
    mutating func takeDue(at now: Instant) -> [(node: NodeID, processes: [ProcessID])] {
        guard let dueAt, dueAt <= now else { return [] }
        defer { self = PendingConfirmations() }
        return zip(streams.keys, streams.values).map { ($0, $1.sorted()) }
    }
}
