import Ground

/// What nodes said to have synced, and when this node heard it.
struct Confirmations: Sendable {
    /// How one node came on in one stream; the oldest steps are forgotten.
    private struct ProgressHistory: Sendable {
        var steps: [(upTo: UInt64, at: Instant)] = []

        /// Of this node's own stream, whose receipts are asked for most, more are kept.
        mutating func add(_ number: UInt64, at now: Instant, countMax: Int) {
            guard number > steps.last?.upTo ?? 0 else { return }
            steps.append((number, now))
            if steps.count > 2 * countMax { steps.removeFirst(countMax) }
        }

        /// When it had come to `number`, or later if that is forgotten; nil if it has not.
        func instant(of number: UInt64) -> Instant? {
            let place = steps.partitionPoint { $0.upTo < number }
            return place < steps.count ? steps[place].at : nil
        }
    }

    private struct NodeConfirmations: Sendable {
        /// Whom it has for members.
        var members: [NodeID] = []
        var streams = SortedTable<ProcessID, ProgressHistory>()
    }

    private let own: ProcessID
    private var nodes = SortedTable<NodeID, NodeConfirmations>()

    /// Those that have confirmed anything, by id.
    var confirmers: [NodeID] { nodes.keys }

    init(own: ProcessID) {
        self.own = own
    }

    /// Adds what `node` says; true if it no longer names somebody whom it named before.
    ///
    /// What was confirmed once stays so.
    mutating func record(
        _ positions: [StreamPosition], members: [NodeID], by node: NodeID, at now: Instant
    ) -> Bool {
        var namesFewer = false
        nodes.update(node, or: NodeConfirmations()) { node in
            if node.members != members {
                namesFewer = !Set(node.members).isSubset(of: members)
                node.members = members
            }
            for position in positions where position.count > 0 {
                let countMax = position.process == own ? 64 : 4
                node.streams.update(position.process, or: ProgressHistory()) {
                    $0.add(position.count, at: now, countMax: countMax)
                }
            }
        }
        return namesFewer
    }

    /// When `node` had confirmed the record; nil if it has not.
    func instant(of name: RecordID, by node: NodeID) -> Instant? {
        nodes[node]?.streams[name.stream]?.instant(of: name.number)
    }

    /// How far `node` is in a stream.
    func count(of process: ProcessID, by node: NodeID) -> UInt64 {
        nodes[node]?.streams[process]?.steps.last?.upTo ?? 0
    }

    /// Everybody whom one of `members` has for a member; the word of others is of the past.
    func membersNamed(by members: [NodeID]) -> [NodeID] {
        members.flatMap { nodes[$0]?.members ?? [] }
    }

    /// The stream is not known any more.
    mutating func forget(_ process: ProcessID) {
        nodes.updateAll { _, node in node.streams[process] = nil }
    }

    mutating func remove(_ node: NodeID) {
        nodes[node] = nil
    }
}

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
