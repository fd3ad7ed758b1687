import Ground

/// The positions that nodes have confirmed as synced, and when this node learned of them.
struct Confirmations: Sendable {
    /// The progress of one node in one stream; the oldest steps are dropped.
    private struct ProgressHistory: Sendable {
        var steps: [(upTo: UInt64, at: Instant)] = []

        /// Adds a step beyond the last one; at least the last `countMax` steps are kept.
        ///
        /// The caller keeps more steps for this node's own stream, whose receipts are read most.
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

    /// The number of streams in which nodes have confirmed anything, counted for each node.
    var count: Int { nodes.values.reduce(0) { $0 + $1.streams.count } }

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

    /// Returns when `node` confirmed the record, or `nil` if it has not.
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

    /// Removes all that `node` has confirmed.
    mutating func remove(_ node: NodeID) {
        nodes[node] = nil
    }
}

/// The confirmations that this node sends: soon to nodes that issued or forwarded records, and at
/// intervals to all members.
///
/// By those to all, receipts become visible everywhere and streams can be retired.
struct ConfirmationQueue: Sendable {
    /// The streams to confirm soon, by receiver.
    private var pending = SortedTable<NodeID, Set<ProcessID>>()
    /// When ``pending`` is due; `nil` if it is empty.
    private var pendingDueAt: Instant?
    /// When all members are next confirmed to.
    private var nextToAllAt: Instant
    /// The members named in the last confirmation to all.
    private var namedMembers: [NodeID] = []
    /// The confirmations that the caller has not taken yet.
    private var outgoing: [(positions: [StreamPosition], nodes: [NodeID])] = []

    init(nextToAllAt: Instant) {
        self.nextToAllAt = nextToAllAt
    }

    /// When confirmations to some or all members are due.
    var nextDue: Instant { min(nextToAllAt, pendingDueAt ?? nextToAllAt) }

    /// Schedules a confirmation to `node` for the stream of `process`, at `dueAt` or with those
    /// already scheduled.
    mutating func add(_ process: ProcessID, to node: NodeID, at dueAt: Instant) {
        pending.update(node, or: []) { $0.insert(process) }
        pendingDueAt = pendingDueAt ?? dueAt
    }

    /// Adds a confirmation of `positions` to `nodes` to those that ``takeAll()`` returns.
    mutating func send(_ positions: [StreamPosition], to nodes: [NodeID]) {
        outgoing.append((positions, nodes))
    }

    /// Sends the scheduled confirmations if they are due; those to nodes that are not connected are
    /// dropped.
    mutating func sendDue(to peers: PeerTable, from streams: StreamTable, at now: Instant) {
        guard let dueAt = pendingDueAt, dueAt <= now else { return }
        for (node, processes) in zip(pending.keys, pending.values) where peers[node] != nil {
            let positions = streams.syncedPositions(of: processes.sorted())
            if !positions.isEmpty { send(positions, to: [node]) }
        }
        pending.removeAll()
        pendingDueAt = nil
    }

    /// Confirms to all `connected` members what was synced since the last time, if that is due.
    ///
    /// Nothing is sent if nothing was synced and the named `members` are those of the last time.
    ///
    /// - Returns: True if it was due.
    mutating func sendToAll(
        _ connected: [NodeID], naming members: [NodeID], from streams: inout StreamTable,
        _ delays: LogDelays, at now: Instant
    ) -> Bool {
        guard nextToAllAt <= now else { return false }
        let positions = streams.takeConfirmable()
        var count = 0
        if !connected.isEmpty, !positions.isEmpty || members != namedMembers {
            namedMembers = members
            send(positions, to: connected)
            count = positions.count * connected.count
        }
        nextToAllAt = now + delays.confirmAll(after: count)
        return true
    }

    /// Removes and returns the confirmations to send.
    mutating func takeAll() -> [(positions: [StreamPosition], nodes: [NodeID])] {
        outgoing.takeAll()
    }
}
