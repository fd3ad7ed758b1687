package import Ground

/// Requests for missing records, and responses to those of others.
extension InvalidationLog {
    /// Records that `node` has synced everything up to these positions.
    package mutating func syncedPositionsReceived(
        _ positions: [StreamPosition], from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        let known = positions.prefix(settings.positionsMax)
        if var line = peers[node] {
            for position in known { line.syncedCounts[position.process] = position.count }
            peers[node] = line
        }
        for position in known {
            requestRepair(position, at: now + settings.delays.repairRequest, now, &effects)
        }
        sendRepairRequests(now, &effects)
    }

    /// Records that `node` has applied these positions, which it sends before its next query.
    package mutating func appliedPositionsReceived(
        _ positions: [StreamPosition], from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        for position in positions.prefix(settings.positionsMax) where lags(behind: position) {
            recordMissing(node, position)
            requestRepair(position, at: now, now, &effects)
        }
        sendRepairRequests(now, &effects)
    }

    /// Returns true if `node` has reported something that this node lacks; its queries are then
    /// answered `behind`.
    package func lags(behind node: NodeID) -> Bool {
        guard let told = missingFromPeers[node] else { return false }
        return zip(told.keys, told.values).contains { process, count in
            lags(behind: StreamPosition(process: process, count: count))
        }
    }

    mutating func recordMissing(_ node: NodeID, _ position: StreamPosition) {
        let before = missingFromPeers[node]
        var told = SortedTable<ProcessID, UInt64>()
        // Keeps only what is still missing.
        for (process, count) in zip(before?.keys ?? [], before?.values ?? [])
        where lags(behind: StreamPosition(process: process, count: count)) {
            told[process] = count
        }
        told[position.process] = max(position.count, told[position.process] ?? 0)
        missingFromPeers[node] = told
    }

    private mutating func requestRepair(
        _ position: StreamPosition, at dueAt: Instant, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) {
        guard lags(behind: position) else { return }
        guard position.process != process else {
            // Another node uses this process id.
            let name = RecordID(stream: process, number: position.count)
            return output.recordConflict(name)
        }
        guard let place = index(of: position.process, now, &effects) else { return }
        streams[place].requestRepair(position.count, at: dueAt)
    }

    /// Sends the requests that are due, to one member at a time for each stream and in turn.
    mutating func sendRepairRequests(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        var asks = SortedTable<NodeID, [StreamRange]>()
        for place in streams.indices {
            guard var repair = streams[place].repair, repair.dueAt <= now else { continue }
            let stream = streams[place]
            guard let first = stream.gaps.first else { continue }
            let sources = peers.keys.filter { claimedCount($0, stream.process) >= first.lowerBound }
            repair.dueAt = now + settings.delays.repairTimeout
            if let source = repair.next(of: sources) {
                let ranges = stream.gaps.map { StreamRange(process: stream.process, numbers: $0) }
                let asked = asks[source] ?? []
                guard asked.isEmpty || asked.count + ranges.count <= settings.rangesMax else {
                    continue
                }
                asks[source] = asked + ranges
                repair.lastSource = source
                repair.isProgressing = false
            } else {
                repair.lastSource = nil
            }
            streams[place].repair = repair
        }
        for (node, ranges) in zip(asks.keys, asks.values) {
            effects.append(.send(.repairRequest(ranges), to: [node]))
        }
    }

    /// Returns how far `node` reports to have a stream, with or without gaps.
    private func claimedCount(_ node: NodeID, _ process: ProcessID) -> UInt64 {
        max(peers[node]?.syncedCounts[process] ?? 0, missingFromPeers[node]?[process] ?? 0)
    }

    /// Processes a response of `node` to a repair request.
    package mutating func repairResponseReceived(
        _ response: RepairResponse, from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        recordsReceived(response.records, from: node, now: now, effects: &effects)
        applyFloors(response.floors, from: node, now, &effects)
        for process in Set(response.covered.map(\.process)).sorted() {
            guard let place = streams.index(of: process) else { continue }
            let covered = response.covered.filter { $0.process == process }.map(\.numbers)
            applyCoverage(covered, place, by: node, now)
        }
        sendRepairRequests(now, &effects)
    }

    /// Records that what is still missing of `covered` is not available from `node`.
    private mutating func applyCoverage(
        _ covered: [ClosedRange<UInt64>], _ place: Int, by node: NodeID, _ now: Instant
    ) {
        let stream = streams[place]
        func isCovered(_ gap: ClosedRange<UInt64>) -> Bool {
            covered.contains { $0.lowerBound <= gap.lowerBound && gap.upperBound <= $0.upperBound }
        }
        guard let first = stream.gaps.first else { return }
        let isLacking = covered.contains { $0.contains(first.lowerBound) } && !isFull
        if isLacking {
            if var line = peers[node], let has = line.syncedCounts[stream.process] {
                line.syncedCounts[stream.process] = min(has, first.lowerBound - 1)
                peers[node] = line
            }
            if let told = missingFromPeers[node]?[stream.process],
                stream.gaps.allSatisfy({ $0.lowerBound > told || isCovered($0) })
            {
                missingFromPeers[node]?[stream.process] = nil
            }
            let greatest = peers.keys.map { claimedCount($0, stream.process) }.max() ?? 0
            streams[place].limitRepair(greatest)
        }
        guard var repair = streams[place].repair, repair.lastSource == node else { return }
        repair.isProgressing = !isLacking
        // An immediate request would repeat for ever if it cannot succeed.
        let isFutile = isLacking && claimedCount(node, stream.process) >= first.lowerBound
        if !isFull, !isFutile { repair.dueAt = now }
        streams[place].repair = repair
    }

    /// Returns what this node has of `ranges`; the requester counts as a member from now on.
    ///
    /// `bytesMax` is the approximate maximum size of the records in bytes; at least one is sent.
    package mutating func repairResponse(
        to ranges: [StreamRange], of node: NodeID, bytesMax: Int
    ) -> RepairResponse {
        members.addCatchingUp(node)
        var response = RepairResponse()
        var bytes = 0
        for range in ranges.prefix(settings.rangesMax) {
            guard let place = streams.index(of: range.process) else {
                if let last = retired[range.process], last >= range.numbers.lowerBound {
                    response.floors.append(StreamPosition(process: range.process, count: last))
                }
                response.covered.append(range)
                continue
            }
            let stream = streams[place]
            if stream.floor >= range.numbers.lowerBound {
                response.floors.append(
                    StreamPosition(process: range.process, count: stream.floor))
            }
            var rest = range.numbers
            while let number = stream.records.firstNumber(in: rest),
                let record = stream.record(number)
            {
                if !isUnsyncedConsensusRecord(record) {
                    bytes += record.bytesCount
                    guard response.records.isEmpty || bytes <= bytesMax else {
                        response.cover(range, below: number)
                        return response
                    }
                    response.records.append(record)
                }
                guard number < rest.upperBound else { break }
                rest = (number + 1)...rest.upperBound
            }
            response.covered.append(range)
        }
        return response
    }

    /// Returns true for a consensus record of this node that may be lost with the process.
    ///
    /// No other node may read it before it is synced; it is pushed then.
    private func isUnsyncedConsensusRecord(_ record: InvalidationRecord) -> Bool {
        guard record.id.stream == process, Invalidation.isConsensus(record.encodedContent) else {
            return false
        }
        return streams.index(of: process).map { !streams[$0].synced.contains(record.id.number) }
            ?? false
    }

    /// Returns all that `node` needs to catch up; it counts as a member from now on.
    package mutating func catchUpTarget(of node: NodeID) -> CatchUpTarget {
        members.addCatchingUp(node)
        return catchUp
    }

    /// All that a node needs to catch up with this node.
    package var catchUp: CatchUpTarget {
        CatchUpTarget(positions: syncedPositions, retired: retired.positions)
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

extension RepairResponse {
    /// Marks `range` as searched below `number`, which is not in the response.
    fileprivate mutating func cover(_ range: StreamRange, below number: UInt64) {
        guard number > range.numbers.lowerBound else { return }
        let numbers = range.numbers.lowerBound...(number - 1)
        covered.append(StreamRange(process: range.process, numbers: numbers))
    }
}

extension InvalidationStream {
    /// The maximum number of gaps requested separately; what lies behind them is requested as a
    /// whole.
    private static let gapsMax = 32

    /// The ranges to request, ascending.
    fileprivate var gaps: [ClosedRange<UInt64>] {
        var gaps = applied.gaps(upTo: repairTarget, countMax: Self.gapsMax)
        if gaps.count == Self.gapsMax, let last = gaps.popLast() {
            gaps.append(last.lowerBound...repairTarget)
        }
        return gaps
    }
}

extension InvalidationStream.Repair {
    /// Returns the member after the last one asked, in a cycle, or the same one if it made
    /// progress.
    fileprivate func next(of sources: [NodeID]) -> NodeID? {
        guard let lastSource else { return sources.first }
        if isProgressing, sources.contains(lastSource) { return lastSource }
        return sources.first { $0 > lastSource } ?? sources.first
    }
}
