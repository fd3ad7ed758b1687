import Ground

/// The positions that nodes have confirmed as synced, and when this node learned of them.
struct Confirmations: Sendable {
    /// The progress of one node in one stream; the oldest steps are dropped.
    private struct ProgressHistory: Sendable {
        var steps: [(upTo: UInt64, at: Instant)] = []

        /// Adds a step; the caller keeps more steps for this node's own stream, whose receipts are
        /// read most.
        mutating func add(_ number: UInt64, at now: Instant, countMax: Int) {
            guard number > steps.last?.upTo ?? 0 else { return }
            steps.append((number, now))
            if steps.count > 2 * countMax { steps.removeFirst(countMax) }
        }

        /// Returns when `number` was confirmed, or a later time if that step was dropped; `nil` if
        /// it was not.
        func instant(of number: UInt64) -> Instant? {
            let place = steps.partitionPoint { $0.upTo < number }
            return place < steps.count ? steps[place].at : nil
        }
    }

    private struct NodeConfirmations: Sendable {
        /// The members that the node named.
        var members: [NodeID] = []
        var streams = SortedTable<ProcessID, ProgressHistory>()
    }

    private let own: ProcessID
    private var nodes = SortedTable<NodeID, NodeConfirmations>()

    /// The nodes that have confirmed anything, by id.
    var confirmers: [NodeID] { nodes.keys }

    init(own: ProcessID) {
        self.own = own
    }

    /// Adds a confirmation by `node`; confirmations are never withdrawn.
    ///
    /// - Returns: True if the node no longer names a member that it named before.
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

    /// Returns when `node` had confirmed the record, or `nil` if it has not.
    func instant(of name: RecordID, by node: NodeID) -> Instant? {
        nodes[node]?.streams[name.stream]?.instant(of: name.number)
    }

    /// Returns how far `node` is in a stream, 0 if it has confirmed nothing.
    func count(of process: ProcessID, by node: NodeID) -> UInt64 {
        nodes[node]?.streams[process]?.steps.last?.upTo ?? 0
    }

    /// Returns the nodes that `members` name as members; what other nodes named is outdated.
    func membersNamed(by members: [NodeID]) -> [NodeID] {
        members.flatMap { nodes[$0]?.members ?? [] }
    }

    /// Drops a stream that is no longer known.
    mutating func forget(_ process: ProcessID) {
        nodes.updateAll { _, node in node.streams[process] = nil }
    }

    mutating func remove(_ node: NodeID) {
        nodes[node] = nil
    }
}

/// The confirmations that are due soon to nodes that issued or forwarded records.
struct PendingConfirmations: Sendable {
    private var streams = SortedTable<NodeID, Set<ProcessID>>()
    /// The time at which they are due; `nil` if there are none.
    private(set) var dueAt: Instant?

    /// Schedules a confirmation to `node` for the stream of `process`, at `dueAt` or with an
    /// earlier one.
    mutating func add(_ process: ProcessID, to node: NodeID, at dueAt: Instant) {
        streams.update(node, or: []) { $0.insert(process) }
        self.dueAt = self.dueAt ?? dueAt
    }

    /// Removes and returns all confirmations if they are due.
    mutating func takeDue(at now: Instant) -> [(node: NodeID, processes: [ProcessID])] {
        guard let dueAt, dueAt <= now else { return [] }
        defer { self = PendingConfirmations() }
        return zip(streams.keys, streams.values).map { ($0, $1.sorted()) }
    }
}
