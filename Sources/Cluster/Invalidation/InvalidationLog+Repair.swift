package import Ground

/// Requests for missing records, and responses to those of others.
extension InvalidationLog {
    /// Records that `node` has synced these positions, and soon requests what is missing here.
    package mutating func syncedPositionsReceived(
        _ positions: [StreamPosition], from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        let accepted = Array(positions.prefix(settings.positionsMax))
        requestRepairs(accepted, at: now + settings.delays.repairRequest, now, &effects)
        peers.recordSynced(accepted.filter(streams.isLive), by: node)
        sendRepairRequests(now, &effects)
    }

    /// Records which positions that `node` has applied are missing here, and requests them at once.
    package mutating func appliedPositionsReceived(
        _ positions: [StreamPosition], from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        let missing = positions.prefix(settings.positionsMax).filter(streams.lags)
        requestRepairs(missing, at: now, now, &effects)
        peers.recordMissing(missing, at: node, in: streams, othersMax: settings.streamsMax)
        sendRepairRequests(now, &effects)
    }

    /// Returns true if `node` has reported something that this node lacks; its queries are then
    /// answered `behind`.
    package func lags(behind node: NodeID) -> Bool {
        lags(behind: peers.missingPositions(of: node))
    }

    /// Schedules requests for what is missing up to the positions; in its own stream a conflict.
    ///
    /// A report replaces only streams unchanged for the time of a repair: a flood of reports would
    /// otherwise cost the work of as many streams, and leave none of them the time to be repaired.
    private mutating func requestRepairs(
        _ positions: [StreamPosition], at dueAt: Instant, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) {
        var surplus = RetirableStreams(unchangedSince: now - settings.delays.repairTimeout)
        for position in positions where streams.lags(behind: position) {
            if position.process == process {
                // Another node uses this process id.
                events.append(.recordConflictFound(position))
            } else if let place = index(of: position.process, replacing: &surplus, now, &effects) {
                streams[place].requestRepair(position.count, at: dueAt)
            }
        }
    }

    /// Sends the requests that are due, to one member at a time for each stream and in turn.
    mutating func sendRepairRequests(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let requests = streams.takeRepairRequests(from: peers, settings, at: now)
        for (node, ranges) in zip(requests.keys, requests.values) {
            effects.append(.send(.repairRequest(ranges), to: [node]))
        }
    }

    /// Processes a response of `node` to a repair request.
    package mutating func repairResponseReceived(
        _ response: RepairResponse, from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        recordsReceived(response.records, from: node, now: now, effects: &effects)
        applyFloors(response.floors, from: node, now, &effects)
        streams.applyCoverage(response.covered, by: node, &peers, isFull: isFull, at: now)
        sendRepairRequests(now, &effects)
    }

    /// Returns what this node has of `ranges`; the requester counts as a member from now on.
    ///
    /// `bytesMax` is the approximate maximum size of the records in bytes; at least one is sent.
    package mutating func repairResponse(
        to ranges: [StreamRange], of node: NodeID, bytesMax: Int
    ) -> RepairResponse {
        receipts.members.addCatchingUp(node)
        return streams.response(to: ranges.prefix(settings.rangesMax), bytesMax: bytesMax)
    }

    /// Returns all that `node` needs to catch up; it counts as a member from now on.
    package mutating func catchUpTarget(of node: NodeID) -> CatchUpTarget {
        receipts.members.addCatchingUp(node)
        return catchUp
    }

    /// All that a node needs to catch up with this node.
    package var catchUp: CatchUpTarget {
        CatchUpTarget(positions: syncedPositions, retired: streams.retired.positions)
    }

    /// Processes the catch-up target that this node received after a start or while it was fenced.
    ///
    /// For missing records of retired streams, which no node holds, everything is marked soft once.
    package mutating func applyCatchUpTarget(
        _ catchUp: CatchUpTarget, from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        applyFloors(catchUp.retired, from: node, now, &effects)
        syncedPositionsReceived(catchUp.positions, from: node, now: now, effects: &effects)
    }
}
