package import Ground

/// Getting what is missing, and giving what others miss.
extension InvalidationLog {
    /// `node` has everything up to these positions.
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

    /// `node` has applied something up to these positions, before it asks its next question.
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

    /// `node` has told of something that this node lacks: what it asks is answered *behind*.
    package func lags(behind node: NodeID) -> Bool {
        guard let told = missingFromPeers[node] else { return false }
        return zip(told.keys, told.values).contains { process, count in
            lags(behind: StreamPosition(process: process, count: count))
        }
    }

    mutating func recordMissing(_ node: NodeID, _ position: StreamPosition) {
        let before = missingFromPeers[node]
        var told = SortedTable<ProcessID, UInt64>()
        // Only what is still missing.
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
            // Somebody else goes by this process.
            let name = RecordID(stream: process, number: position.count)
            return output.recordConflict(name)
        }
        guard let place = index(of: position.process, now, &effects) else { return }
        streams[place].requestRepair(position.count, at: dueAt)
    }

    /// Asks for what is due; of each stream one member at a time, and another one next time.
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

    /// How far `node` says to have a stream, with gaps or without.
    private func claimedCount(_ node: NodeID, _ process: ProcessID) -> UInt64 {
        max(peers[node]?.syncedCounts[process] ?? 0, missingFromPeers[node]?[process] ?? 0)
    }

    /// `node` has answered what it was asked for.
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

    /// What is still missing of `covered` is not to be had from `node`.
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
        // Asking at once would go round for ever where nothing can come of it.
        let isFutile = isLacking && claimedCount(node, stream.process) >= first.lowerBound
        if !isFull, !isFutile { repair.dueAt = now }
        streams[place].repair = repair
    }

    /// What this node has of `ranges`, up to about `bytesMax` of records but at least one; whoever
    /// asks is a member from now on.
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

    /// A record of the count of this node's own that may be lost with the process.
    ///
    /// Nobody else may read it yet; it is pushed when it is synced.
    private func isUnsyncedConsensusRecord(_ record: InvalidationRecord) -> Bool {
        guard record.id.stream == process, Invalidation.isConsensus(record.content) else {
            return false
        }
        return streams.index(of: process).map { !streams[$0].synced.contains(record.id.number) }
            ?? false
    }

    /// All that `node`, which catches up, must have.
    ///
    /// It is a member from now on.
    package mutating func catchUpTarget(of node: NodeID) -> CatchUpTarget {
        members.addCatchingUp(node)
        return catchUp
    }

    /// All that whoever catches up with this node must have.
    package var catchUp: CatchUpTarget {
        CatchUpTarget(positions: syncedPositions, retired: retired.positions)
    }

    /// `node` has said what this node, which has just started or was fenced, must have.
    ///
    /// What it lacks of retired streams nobody holds: everything is made soft, once for all.
    package mutating func applyCatchUpTarget(
        _ catchUp: CatchUpTarget, from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        applyFloors(catchUp.retired, from: node, now, &effects)
        syncedPositionsReceived(catchUp.positions, from: node, now: now, effects: &effects)
    }
}

extension RepairResponse {
    /// `range` was looked through up to `number`, which is not in the answer.
    fileprivate mutating func cover(_ range: StreamRange, below number: UInt64) {
        guard number > range.numbers.lowerBound else { return }
        let numbers = range.numbers.lowerBound...(number - 1)
        covered.append(StreamRange(process: range.process, numbers: numbers))
    }
}

extension InvalidationStream {
    /// So many gaps are asked for one by one; what lies behind them as a whole.
    private static let gapsMax = 32

    /// What is to be asked for, ascending.
    fileprivate var gaps: [ClosedRange<UInt64>] {
        var gaps = applied.gaps(upTo: repairTarget, countMax: Self.gapsMax)
        if gaps.count == Self.gapsMax, let last = gaps.popLast() {
            gaps.append(last.lowerBound...repairTarget)
        }
        return gaps
    }
}

extension InvalidationStream.Repair {
    /// The one after whoever was asked last, in a circle; the same one if it is to go on.
    fileprivate func next(of sources: [NodeID]) -> NodeID? {
        guard let lastSource else { return sources.first }
        if isProgressing, sources.contains(lastSource) { return lastSource }
        return sources.first { $0 > lastSource } ?? sources.first
    }
}
