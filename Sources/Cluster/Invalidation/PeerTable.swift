import Ground

/// The knowledge that this node and the other members have of each other's positions.
struct PeerTable: Sendable {
    /// The progress of the connected members.
    private var progress = SortedTable<NodeID, PeerProgress>()
    /// The positions that members, connected or not, have applied and this node lacks.
    private var missing = SortedTable<NodeID, SortedTable<ProcessID, UInt64>>()

    /// The connected members, by id.
    var connected: [NodeID] { progress.keys }

    /// The progress of a member; `nil` if it is not connected.
    subscript(node: NodeID) -> PeerProgress? { progress[node] }

    /// The number of positions kept of all members.
    var reportedCount: Int {
        progress.values.reduce(0) { $0 + $1.syncedCounts.count }
            + missing.values.reduce(0) { $0 + $1.count }
    }

    // MARK: Connections

    /// Adds a connected member, or replaces its connection, and forgets what this node lacked of
    /// it.
    ///
    /// Its earlier reports may concern streams that no node has any longer; it reports its
    /// positions ahead of its first query here.
    ///
    /// - Parameters:
    ///   - node: The member.
    ///   - connection: The connection in use.
    ///   - sentCount: The count of invalidations applied up to which the member need not be
    ///     informed; `nil` to inform it of all.
    mutating func connect(_ node: NodeID, on connection: ConnectionID, sentCount: UInt64?) {
        missing[node] = nil
        progress[node] = PeerProgress(connection: connection, sentCount: sentCount)
    }

    /// Removes the progress of a member; what this node lacks of it stays recorded.
    mutating func disconnect(_ node: NodeID) { progress[node] = nil }

    // MARK: Reports of members

    /// Records the positions that `node` has synced; ignored if it is not connected.
    mutating func recordSynced(_ positions: some Sequence<StreamPosition>, by node: NodeID) {
        guard var peer = progress[node] else { return }
        for position in positions { peer.syncedCounts[position.process] = position.count }
        progress[node] = peer
    }

    /// Records positions that `node` has applied and this node lacks; of earlier ones, those that
    /// are still missing are kept.
    ///
    /// Those of live streams are kept, and of others at most `othersMax`. While any of them is
    /// missing, this node lags behind `node`, whatever else it lacks.
    mutating func recordMissing(
        _ positions: [StreamPosition], at node: NodeID, in streams: StreamTable, othersMax: Int
    ) {
        guard !positions.isEmpty else { return }
        var counts = SortedTable<ProcessID, UInt64>()
        var othersCount = 0
        for position in missingPositions(of: node).filter(streams.lags) + positions {
            let before = counts[position.process]
            if before == nil, !streams.isLive(position) {
                guard othersCount < othersMax else { continue }
                othersCount += 1
            }
            counts[position.process] = max(position.count, before ?? 0)
        }
        missing[node] = counts
    }

    /// Returns the positions that `node` has reported and that this node lacked when it did.
    func missingPositions(of node: NodeID) -> [StreamPosition] {
        guard let counts = missing[node] else { return [] }
        return zip(counts.keys, counts.values).map { StreamPosition(process: $0, count: $1) }
    }

    /// Forgets what this node lacked of `node`.
    mutating func forgetMissing(of node: NodeID) { missing[node] = nil }

    /// Forgets the records that this node lacked of a stream that no node has any longer.
    ///
    /// A member that reported it before would appear to be ahead for ever.
    mutating func forget(_ process: ProcessID) {
        missing.updateAll { _, counts in counts[process] = nil }
        forgetSynced(process)
    }

    /// Forgets what the connected members have synced of a stream that this node no longer knows.
    mutating func forgetSynced(_ process: ProcessID) {
        progress.updateAll { _, peer in peer.syncedCounts[process] = nil }
    }

    // MARK: Sources of repairs

    /// Returns how far `node` reports to have a stream, with or without gaps.
    func claimedCount(of process: ProcessID, by node: NodeID) -> UInt64 {
        max(progress[node]?.syncedCounts[process] ?? 0, missing[node]?[process] ?? 0)
    }

    /// Returns how far any connected member reports to have a stream.
    func claimedCount(of process: ProcessID) -> UInt64 {
        connected.map { claimedCount(of: process, by: $0) }.max() ?? 0
    }

    /// Records that `node` has synced a stream only below `number`.
    ///
    /// Its report to have applied more is dropped, unless `isAhead` is true of that number.
    mutating func limitClaim(
        of process: ProcessID, by node: NodeID, below number: UInt64,
        isAhead: (_ claimed: UInt64) -> Bool
    ) {
        if let count = progress[node]?.syncedCounts[process] {
            progress[node]?.syncedCounts[process] = min(count, number - 1)
        }
        if let claimed = missing[node]?[process], !isAhead(claimed) {
            missing[node]?[process] = nil
        }
    }

    // MARK: What was sent

    /// Records that `unsent` was sent to `node`; ignored if another connection is in use since.
    mutating func recordSent(_ unsent: UnsentInvalidations, to node: NodeID) {
        guard let peer = progress[node], peer.connection == unsent.connection else { return }
        progress[node]?.sentCount = max(peer.sentCount ?? 0, unsent.appliedCount)
    }

    /// Records that this node's own records up to `number` are queued to `node`.
    mutating func recordPushed(upTo number: UInt64, to node: NodeID) {
        guard let peer = progress[node], peer.pushedNumber < number else { return }
        progress[node]?.pushedNumber = number
    }
}

/// The knowledge that this node and a connected member have of each other's positions.
struct PeerProgress: Sendable {
    /// The connection in use.
    let connection: ConnectionID
    /// The count of invalidations applied up to which the member was informed; `nil` if nothing was
    /// sent.
    var sentCount: UInt64?
    /// The number up to which this node's own records were pushed, ahead of the next query.
    var pushedNumber: UInt64 = 0
    /// The positions that the member reports to have synced without gaps.
    var syncedCounts = SortedTable<ProcessID, UInt64>()

    /// Returns true if the member need not receive the record; `own` is this process.
    func covers(_ name: RecordID, own: ProcessID) -> Bool {
        let isOwn = name.stream == own
        return (isOwn && name.number <= pushedNumber)
            || name.number <= syncedCounts[name.stream] ?? 0
    }
}
