import Ground

/// Requests for missing records, and the responses to those of others.
extension StreamTable {
    /// When the next request is due; `nil` if nothing is missing.
    var nextRepairAt: Instant? { live.lazy.compactMap { $0.repair?.dueAt }.min() }

    /// Returns the requests that are due, to one member at a time for each stream and in turn.
    mutating func takeRepairRequests(
        from peers: PeerTable, _ settings: InvalidationLog.Settings, at now: Instant
    ) -> SortedTable<NodeID, [StreamRange]> {
        var requests = SortedTable<NodeID, [StreamRange]>()
        for place in indices {
            guard var repair = live[place].repair, repair.dueAt <= now else { continue }
            let stream = live[place]
            guard let first = stream.gaps.first else { continue }
            let sources = peers.connected.filter {
                peers.claimedCount(of: stream.process, by: $0) >= first.lowerBound
            }
            repair.dueAt = now + settings.delays.repairTimeout
            if let source = repair.next(of: sources) {
                let ranges = stream.gaps.map { StreamRange(process: stream.process, numbers: $0) }
                let requested = requests[source] ?? []
                guard requested.isEmpty || requested.count + ranges.count <= settings.rangesMax
                else { continue }
                requests[source] = requested + ranges
                repair.lastSource = source
                repair.isProgressing = false
            } else {
                repair.lastSource = nil
            }
            self[place].repair = repair
        }
        return requests
    }

    /// Records that what is still missing of the ranges `searched` is not available from `node`.
    ///
    /// The next request of these streams is due at once, unless it could not succeed.
    ///
    /// - Parameters:
    ///   - searched: The ranges of one response, whose records were added.
    ///   - node: The member that has sent the response.
    ///   - peers: The members' positions, which are limited to what `node` has.
    ///   - isFull: True if the log accepts nothing, so that records of the response were not added.
    ///   - now: The current time.
    mutating func applyCoverage(
        _ searched: [StreamRange], by node: NodeID, _ peers: inout PeerTable, isFull: Bool,
        at now: Instant
    ) {
        for process in Set(searched.map(\.process)).sorted() {
            guard let place = index(of: process), let first = live[place].gaps.first else {
                continue
            }
            let ranges = searched.filter { $0.process == process }.map(\.numbers)
            let isLacking = ranges.contains { $0.contains(first.lowerBound) } && !isFull
            if isLacking {
                let unsearched = live[place].gaps.filter { gap in
                    !ranges.contains { $0.contains(gap.lowerBound) && $0.contains(gap.upperBound) }
                }
                peers.limitClaim(of: process, by: node, below: first.lowerBound) { claimed in
                    unsearched.contains { $0.lowerBound <= claimed }
                }
                self[place].limitRepair(peers.claimedCount(of: process))
            }
            guard live[place].repair?.lastSource == node else { continue }
            self[place].repair?.isProgressing = !isLacking
            // An immediate request would repeat for ever if it cannot succeed.
            let isFutile =
                isLacking && peers.claimedCount(of: process, by: node) >= first.lowerBound
            if !isFull, !isFutile { self[place].repair?.dueAt = now }
        }
    }

    /// Returns what this node has of `ranges`, except its own consensus records that are not synced
    /// yet.
    ///
    /// `bytesMax` is the approximate maximum size of the records in bytes; at least one is sent.
    func response(to ranges: some Sequence<StreamRange>, bytesMax: Int) -> RepairResponse {
        var response = RepairResponse()
        var bytes = 0
        for range in ranges {
            guard let stream = stream(of: range.process) else {
                if let last = retired[range.process], last >= range.numbers.lowerBound {
                    response.floors.append(StreamPosition(process: range.process, count: last))
                }
                response.covered.append(range)
                continue
            }
            if stream.floor >= range.numbers.lowerBound {
                response.floors.append(StreamPosition(process: range.process, count: stream.floor))
            }
            var rest = range.numbers
            while let number = stream.records.firstNumber(in: rest),
                let record = stream.record(number)
            {
                if !isUnsyncedConsensusRecord(record, of: stream) {
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
    private func isUnsyncedConsensusRecord(
        _ record: InvalidationRecord, of stream: InvalidationStream
    ) -> Bool {
        stream.process == own && Invalidation.isConsensus(record.encodedContent)
            && !stream.synced.contains(record.id.number)
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
    var gaps: [ClosedRange<UInt64>] {
        var gaps = applied.gaps(upTo: repairTarget, countMax: Self.gapsMax)
        if gaps.count == Self.gapsMax, let last = gaps.popLast() {
            gaps.append(last.lowerBound...repairTarget)
        }
        return gaps
    }
}

extension InvalidationStream.Repair {
    /// Returns the member after the last one that was sent a request, in a cycle, or the same one
    /// if it made progress; `nil` without sources.
    fileprivate func next(of sources: [NodeID]) -> NodeID? {
        guard let lastSource else { return sources.first }
        if isProgressing, sources.contains(lastSource) { return lastSource }
        return sources.first { $0 > lastSource } ?? sources.first
    }
}
