package import Ground

/// Getting what is missing, and giving what others miss.
extension InvalidationLog {
    /// `node` has everything up to these positions.
    package mutating func heard(
        _ positions: [StreamPosition], from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        let known = positions.prefix(settings.positionsMax)
        if var line = lines[node] {
            for position in known { line.has[position.process] = position.count }
            lines[node] = line
        }
        for position in known { want(position, at: now + settings.delays.ask, now, &effects) }
        ask(now, &effects)
    }

    /// `node` has applied something up to these positions, before it asks its next question.
    package mutating func told(
        _ positions: [StreamPosition], by node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        for position in positions.prefix(settings.positionsMax) where lags(behind: position) {
            setAhead(node, position)
            want(position, at: now, now, &effects)
        }
        ask(now, &effects)
    }

    /// `node` has told of something that this node lacks: what it asks is answered *behind*.
    package func lags(behind node: NodeID) -> Bool {
        guard let told = ahead[node] else { return false }
        return zip(told.keys, told.values).contains { process, count in
            lags(behind: StreamPosition(process: process, count: count))
        }
    }

    mutating func setAhead(_ node: NodeID, _ position: StreamPosition) {
        let before = ahead[node]
        var told = SortedTable<ProcessID, UInt64>()
        // Only what is still missing.
        for (process, count) in zip(before?.keys ?? [], before?.values ?? [])
        where lags(behind: StreamPosition(process: process, count: count)) {
            told[process] = count
        }
        told[position.process] = max(position.count, told[position.process] ?? 0)
        ahead[node] = told
    }

    private mutating func want(
        _ position: StreamPosition, at dueAt: Instant, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) {
        guard lags(behind: position) else { return }
        guard position.process != process else {
            // Somebody else goes by this process.
            let name = RecordName(stream: process, number: position.count)
            return news.contradicted(name)
        }
        guard let place = place(of: position.process, now, &effects) else { return }
        streams[place].want(position.count, at: dueAt)
    }

    /// Asks for what is due; of each stream one member at a time, and another one next time.
    mutating func ask(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        var asks = SortedTable<NodeID, [StreamRange]>()
        for place in streams.indices {
            guard var repair = streams[place].repair, repair.dueAt <= now else { continue }
            let stream = streams[place]
            guard let first = stream.gaps.first else { continue }
            let sources = lines.keys.filter { claim($0, stream.process) >= first.lowerBound }
            repair.dueAt = now + settings.delays.askPatience
            if let source = repair.next(of: sources) {
                let ranges = stream.gaps.map { StreamRange(process: stream.process, numbers: $0) }
                let asked = asks[source] ?? []
                guard asked.isEmpty || asked.count + ranges.count <= settings.rangesMax else {
                    continue
                }
                asks[source] = asked + ranges
                repair.asked = source
                repair.goesOn = false
            } else {
                repair.asked = nil
            }
            streams[place].repair = repair
        }
        for (node, ranges) in zip(asks.keys, asks.values) {
            effects.append(.send(.ask(ranges), to: [node]))
        }
    }

    /// How far `node` says to have a stream, with gaps or without.
    private func claim(_ node: NodeID, _ process: ProcessID) -> UInt64 {
        max(lines[node]?.has[process] ?? 0, ahead[node]?[process] ?? 0)
    }

    /// `node` has answered what it was asked for.
    package mutating func answered(
        _ answer: RepairAnswer, from node: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        received(answer.records, from: node, now: now, effects: &effects)
        takeFloors(answer.floors, from: node, now, &effects)
        for process in Set(answer.covered.map(\.process)).sorted() {
            guard let place = streams.place(of: process) else { continue }
            let covered = answer.covered.filter { $0.process == process }.map(\.numbers)
            lookedThrough(covered, place, by: node, now)
        }
        ask(now, &effects)
    }

    /// What is still missing of `covered` is not to be had from `node`.
    private mutating func lookedThrough(
        _ covered: [ClosedRange<UInt64>], _ place: Int, by node: NodeID, _ now: Instant
    ) {
        let stream = streams[place]
        func isCovered(_ gap: ClosedRange<UInt64>) -> Bool {
            covered.contains { $0.lowerBound <= gap.lowerBound && gap.upperBound <= $0.upperBound }
        }
        guard let first = stream.gaps.first else { return }
        let isLacking = covered.contains { $0.contains(first.lowerBound) } && !isFull
        if isLacking {
            if var line = lines[node], let has = line.has[stream.process] {
                line.has[stream.process] = min(has, first.lowerBound - 1)
                lines[node] = line
            }
            if let told = ahead[node]?[stream.process],
                stream.gaps.allSatisfy({ $0.lowerBound > told || isCovered($0) })
            {
                ahead[node]?[stream.process] = nil
            }
            let greatest = lines.keys.map { claim($0, stream.process) }.max() ?? 0
            streams[place].wantOnly(greatest)
        }
        guard var repair = streams[place].repair, repair.asked == node else { return }
        repair.goesOn = !isLacking
        // Asking at once would go round for ever where nothing can come of it.
        let isFutile = isLacking && claim(node, stream.process) >= first.lowerBound
        if !isFull, !isFutile { repair.dueAt = now }
        streams[place].repair = repair
    }

    /// What this node has of `ranges`, up to about `bytesMax` of records but at least one; whoever
    /// asks is a member from now on.
    package mutating func answer(
        to ranges: [StreamRange], of node: NodeID, bytesMax: Int
    ) -> RepairAnswer {
        members.record(node)
        var answer = RepairAnswer()
        var bytes = 0
        for range in ranges.prefix(settings.rangesMax) {
            guard let place = streams.place(of: range.process) else {
                if let last = retired[range.process], last >= range.numbers.lowerBound {
                    answer.floors.append(StreamPosition(process: range.process, count: last))
                }
                answer.covered.append(range)
                continue
            }
            let stream = streams[place]
            if stream.floor >= range.numbers.lowerBound {
                answer.floors.append(
                    StreamPosition(process: range.process, count: stream.floor))
            }
            var rest = range.numbers
            while let number = stream.shelf.firstNumber(in: rest),
                let record = stream.record(number)
            {
                if !isUnsyncedCount(record) {
                    bytes += record.bytesCount
                    guard answer.records.isEmpty || bytes <= bytesMax else {
                        answer.cover(range, below: number)
                        return answer
                    }
                    answer.records.append(record)
                }
                guard number < rest.upperBound else { break }
                rest = (number + 1)...rest.upperBound
            }
            answer.covered.append(range)
        }
        return answer
    }

    /// A record of the count of this node's own that may be lost with the process.
    ///
    /// Nobody else may read it yet; it is pushed when it is synced.
    private func isUnsyncedCount(_ record: InvalidationRecord) -> Bool {
        guard record.name.stream == process, Invalidation.isCount(record.content) else {
            return false
        }
        return streams.place(of: process).map { !streams[$0].synced.contains(record.name.number) }
            ?? false
    }

    /// All that `node`, which catches up, must have.
    ///
    /// It is a member from now on.
    package mutating func catchUp(of node: NodeID) -> CatchUp {
        members.record(node)
        return catchUp
    }

    /// All that whoever catches up with this node must have.
    package var catchUp: CatchUp {
        CatchUp(positions: positions, retired: retired.positions)
    }

    /// `node` has said what this node, which has just started or was fenced, must have.
    ///
    /// What it lacks of retired streams nobody holds: everything is made soft, once for all.
    package mutating func caughtUp(
        _ catchUp: CatchUp, from node: NodeID, now: Instant, effects: inout [InvalidationEffect]
    ) {
        takeFloors(catchUp.retired, from: node, now, &effects)
        heard(catchUp.positions, from: node, now: now, effects: &effects)
    }
}

extension RepairAnswer {
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
        var gaps = applied.gaps(upTo: wanted, countMax: Self.gapsMax)
        if gaps.count == Self.gapsMax, let last = gaps.popLast() {
            gaps.append(last.lowerBound...wanted)
        }
        return gaps
    }
}

extension InvalidationStream.Repair {
    /// The one after whoever was asked last, in a circle; the same one if it is to go on.
    fileprivate func next(of sources: [NodeID]) -> NodeID? {
        guard let asked else { return sources.first }
        if goesOn, sources.contains(asked) { return asked }
        return sources.first { $0 > asked } ?? sources.first
    }
}
