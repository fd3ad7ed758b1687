package import Ground

/// Members and their confirmations.
extension InvalidationLog {
    /// Records the members that membership reports, and drops the data of those that are gone.
    package mutating func membersChanged(
        _ named: [ReplicationMember], now: Instant, effects: inout [InvalidationEffect]
    ) {
        receipts.members.update(named, now: now)
        reviewMembers(now, &effects)
    }

    /// Sets the voters, ascending by id.
    package mutating func votersChanged(
        _ voters: [NodeID], now: Instant, effects: inout [InvalidationEffect]
    ) {
        if receipts.members.setVoters(voters, now: now) { reviewMembers(now, &effects) }
    }

    /// Drops the data of members that have left or disappeared and that no member names.
    mutating func reviewMembers(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        for node in receipts.review(connected: peers.connected, now: now) {
            peers.forgetMissing(of: node)
        }
        updateSettled(&effects)
    }

    /// Records that this node and `node` now use this connection, unless they did before.
    ///
    /// Each sends all its positions at once; the first query also carries them, because it may
    /// overtake these.
    package mutating func connected(
        _ node: NodeID, on connection: ConnectionID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        if receipts.members.connected(node) { reviewMembers(now, &effects) }
        guard peers[node]?.connection != connection else { return }
        let positions = appliedPositions
        peers.connect(node, on: connection, sentCount: positions.isEmpty ? appliedCount : nil)
        if !positions.isEmpty { effects.append(.send(.appliedPositions(positions), to: [node])) }
        confirmations.send(syncedPositions, to: [node])
        receipts.members.review(connected: peers.connected, now: now)
        updateSettled(&effects)
    }

    /// Records that the connection with `node` is lost; receipts then do not wait for the node.
    package mutating func disconnected(
        _ node: NodeID, now: Instant, effects: inout [InvalidationEffect]
    ) {
        peers.disconnect(node)
        receipts.members.review(connected: peers.connected, now: now)
        updateSettled(&effects)
    }

    /// Records what `node` has synced and which members it names; requests what is missing here.
    package mutating func confirmationReceived(
        _ positions: [StreamPosition], members: [NodeID], by node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        syncedPositionsReceived(positions, from: node, now: now, effects: &effects)
        let known = positions.filter(streams.isLive)
        if receipts.confirmed(known, naming: members, by: node, at: now) {
            receipts.reviewNamed(connected: peers.connected, now: now)
        }
        updateSettled(&effects)
    }

    /// Reports the number up to which none of this node's receipts is pending, if it has risen.
    mutating func updateSettled(_ effects: inout [InvalidationEffect]) {
        let peers = peers
        let settled = receipts.settle(synced: streams.ownSyncedCount) { peers[$0] != nil }
        if let settled { effects.append(.receiptsSettled(upTo: settled)) }
    }
}

/// Queries for operators.
extension InvalidationLog {
    /// Returns the progress of the record; `nil` if it is not held.
    package func receipt(of name: RecordID) -> Receipt? {
        guard let slot = streams.slot(name), let record = record(name) else { return nil }
        return receipts.receipt(of: record, heldSince: slot.heldSince)
    }

    /// Returns the purges that this node received last, at most `countMax`, newest first.
    package func lastPurges(_ countMax: Int) -> [RecordID] { streams.lastPurges(countMax) }

    /// The number of this node's purges that some voter has not confirmed, reachable or not.
    package var pendingReceiptCount: UInt64 {
        receipts.pendingCount(synced: streams.ownSyncedCount)
    }

    /// Returns how many invalidations are synced here that `node` has not confirmed.
    package func lag(of node: NodeID) -> UInt64 {
        node == self.node ? 0 : receipts.lag(of: node, behind: syncedPositions)
    }
}
