package import Ground

/// Members and their confirmations.
extension InvalidationLog {
    /// Records the members that membership reports.
    package mutating func membersChanged(
        _ named: [ReplicationMember], now: Instant, effects: inout [InvalidationEffect]
    ) {
        members.update(named, now: now)
        reviewMembers(now, &effects)
    }

    /// Sets the voters, ascending by id.
    package mutating func votersChanged(
        _ counted: [NodeID], now: Instant, effects: inout [InvalidationEffect]
    ) {
        if members.setVoters(counted, now: now) { reviewMembers(now, &effects) }
    }

    /// Drops the data of members that have left or disappeared and that no member names.
    ///
    /// What was durable at a majority that included them stays so.
    mutating func reviewMembers(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        members.review(now: now)
        for node in members.leftMembers where members.hasLeft(node) { missingFromPeers[node] = nil }
        review(now, &effects)
        for node in confirmations.confirmers
        where node != self.node && peers[node] == nil && !members.isKnown(node)
            && !members.hasBeenVoter(node)
        {
            confirmations.remove(node)
            missingFromPeers[node] = nil
        }
    }

    /// Records that this node and `node` now use this connection.
    ///
    /// Each sends all its positions at once; the first query also carries them, because it may
    /// overtake these.
    package mutating func connected(
        _ node: NodeID, on connection: ConnectionID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        if members.connected(node) { reviewMembers(now, &effects) }
        guard peers[node]?.connection != connection else { return }
        // It sends its positions ahead of its first query here; what it reported before may concern
        // streams that no node holds any more.
        missingFromPeers[node] = nil
        let reaches = appliedPositions
        peers[node] = PeerProgress(
            connection: connection, sentCount: reaches.isEmpty ? history.count : nil)
        if !reaches.isEmpty { effects.append(.send(.appliedPositions(reaches), to: [node])) }
        output.confirmations.append((syncedPositions, [node]))
        members.review(connected: peers.keys, now: now)
        updateSettled(&effects)
    }

    /// Records that there is no connection with `node` any more.
    package mutating func disconnected(
        _ node: NodeID, now: Instant, effects: inout [InvalidationEffect]
    ) {
        peers[node] = nil
        members.review(connected: peers.keys, now: now)
        updateSettled(&effects)
    }

    /// Records what `node` has synced and which members it names.
    package mutating func confirmationReceived(
        _ positions: [StreamPosition], members: [NodeID], by node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        syncedPositionsReceived(positions, from: node, now: now, effects: &effects)
        guard !self.members.hasLeft(node) else { return }
        let bounded = Array(members.prefix(settings.streamsMax))
        let namesFewer = confirmations.record(positions, members: bounded, by: node, at: now)
        let namesMore = bounded.contains { !self.members.isKnown($0) && !self.members.hasLeft($0) }
        if namesFewer || namesMore {
            review(now, &effects)
        } else {
            updateSettled(&effects)
        }
    }

    mutating func review(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        members.review(
            named: confirmations.membersNamed(by: members.ownMembers), connected: peers.keys,
            now: now)
        updateSettled(&effects)
    }

    /// Reports the number up to which no receipt of this node's records is pending.
    mutating func updateSettled(_ effects: inout [InvalidationEffect]) {
        guard let place = streams.index(of: process) else { return }
        var count = streams[place].synced.prefix
        guard count > settledNumber else { return }
        for node in members.known where node != self.node && peers[node] != nil {
            count = min(count, confirmations.count(of: process, by: node))
        }
        guard count > settledNumber else { return }
        settledNumber = count
        effects.append(.receiptsSettled(upTo: count))
    }

    /// Returns the progress of the record; `nil` if it is not held.
    package func receipt(of name: RecordID) -> Receipt? {
        guard let place = streams.index(of: name.stream),
            let slot = streams[place].records.slot(name.number),
            let record = streams[place].record(name.number)
        else { return nil }
        let lines = members.known.map { node in
            Receipt.MemberConfirmation(
                node, confirmationStatus(of: node, name, since: slot.heldSince))
        }
        let majorityAt = members.majorityInstant { confirmations.instant(of: name, by: $0) }
        return Receipt(
            record: record, heldSince: slot.heldSince, confirmations: lines, majorityAt: majorityAt,
            boundedAt: majorityAt.map { $0 + settings.fenceDuration })
    }

    private func confirmationStatus(
        of node: NodeID, _ name: RecordID, since: Instant
    ) -> Receipt.ConfirmationStatus {
        if let instant = confirmations.instant(of: name, by: node) {
            return .confirmed(elapsed: max(.zero, instant - since))
        }
        return members.unreachableSince[node].map { .unreachable(since: $0) } ?? .pending
    }
}

/// Queries for operators.
extension InvalidationLog {
    /// Returns the purges that this node received last, at most `countMax`, newest first.
    package func lastPurges(_ countMax: Int) -> [RecordID] {
        var found: [(since: Instant, name: RecordID)] = []
        for stream in streams.streams {
            // Consensus records lie between them.
            let slots = stream.records.last(countMax) { !Invalidation.isConsensus($0) }
            found += slots.map {
                ($0.heldSince, RecordID(stream: stream.process, number: $0.number))
            }
        }
        found.sort {
            ($1.since, $1.name.stream, $1.name.number) < ($0.since, $0.name.stream, $0.name.number)
        }
        return found.prefix(countMax).map(\.name)
    }

    /// The number of this node's purges that some voter has not confirmed, reachable or not.
    package var pendingReceiptCount: UInt64 {
        guard let place = streams.index(of: process) else { return 0 }
        let synced = streams[place].synced.prefix
        let others = members.voters.lazy.filter { $0 != node }
        let had = others.map { confirmations.count(of: process, by: $0) }.min() ?? synced
        guard had < synced else { return 0 }
        let ofCount = ownConsensusNumbers.count { $0 > had && $0 <= synced }
        return synced - had - UInt64(ofCount)
    }

    /// Returns how many invalidations are synced here that `node` has not confirmed.
    package func lag(of node: NodeID) -> UInt64 {
        guard node != self.node else { return 0 }
        return syncedPositions.reduce(0) { sum, position in
            let had = confirmations.count(of: position.process, by: node)
            return sum + (position.count > had ? position.count - had : 0)
        }
    }
}
