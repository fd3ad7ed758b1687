package import Ground

/// Requests for missing records, and responses to those of others.
extension InvalidationLog {
    /// Records that `node` has synced these positions, and soon requests what is missing here.
    package mutating func syncedPositionsReceived(
        _ positions: [StreamPosition], from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        let known = positions.prefix(settings.positionsMax)
        peers.recordSynced(known, by: node)
        for position in known {
            requestRepair(position, at: now + settings.delays.repairRequest, now, &effects)
        }
        sendRepairRequests(now, &effects)
    }

    /// Records which positions that `node` has applied are missing here, and requests them at once.
    package mutating func appliedPositionsReceived(
        _ positions: [StreamPosition], from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        for position in positions.prefix(settings.positionsMax) where streams.lags(behind: position)
        {
            recordMissing(position, at: node)
            requestRepair(position, at: now, now, &effects)
        }
        sendRepairRequests(now, &effects)
    }

    /// Returns true if `node` has reported something that this node lacks; its queries are then
    /// answered `behind`.
    package func lags(behind node: NodeID) -> Bool {
        lags(behind: peers.missingPositions(of: node))
    }

    /// Records that `node` has applied a position that this node lacks.
    mutating func recordMissing(_ position: StreamPosition, at node: NodeID) {
        peers.recordMissing(position, at: node, isMissing: streams.lags)
    }

    /// Schedules a request for what is missing up to the position; in its own stream a conflict.
    private mutating func requestRepair(
        _ position: StreamPosition, at dueAt: Instant, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) {
        guard streams.lags(behind: position) else { return }
        guard position.process != process else {
            // Another node uses this process id.
            return events.append(.recordConflictFound(position))
        }
        guard let place = index(of: position.process, now, &effects) else { return }
        streams[place].requestRepair(position.count, at: dueAt)
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
