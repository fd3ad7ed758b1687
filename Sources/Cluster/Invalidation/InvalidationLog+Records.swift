package import Ground

/// What becomes of a request for an invalidation.
package enum Issuance: Hashable, Sendable {
    /// It has got a number and is applied here.
    case new(RecordName)
    /// The same was asked for before under this id.
    case repeated(RecordName)
    /// Something else was asked for before under this id.
    case conflict(RecordName)
    /// Too much waits for the disk; nothing has happened.
    case busy
}

/// Records that are issued, that come, and that get synced.
extension InvalidationLog {
    /// Gives `invalidation` the next number of this node, unless its id is known.
    ///
    /// - Throws: ``InvalidationFault``; nothing has happened.
    package mutating func issue(
        _ invalidation: Invalidation, now: Instant, effects: inout [InvalidationEffect]
    ) throws(InvalidationFault) -> Issuance {
        let content = try invalidation.content()
        if let known = record(withID: invalidation.id) {
            return record(known)?.content == content ? .repeated(known) : .conflict(known)
        }
        guard !isFull, let place = streams.place(of: process) else { return .busy }
        let name = RecordName(stream: process, number: streams[place].applied.last + 1)
        apply(InvalidationRecord(name, content: content), at: place, from: nil, now, &effects)
        return .new(name)
    }

    /// `source` has told these records: pushed, with a question, or as an answer to one.
    package mutating func received(
        _ records: [InvalidationRecord], from source: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        for record in records {
            let name = record.name
            guard name.number > retired[name.stream] ?? 0 else { continue }
            guard let place = place(of: name.stream, now, &effects) else {
                setAhead(source, name.position)
                continue
            }
            if streams[place].applied.contains(name.number) {
                let slot = streams[place].shelf.slot(name.number)
                if let slot, slot.hash != record.hash { news.contradicted(name) }
            } else if name.stream == process {
                news.contradicted(name)
            } else if isFull {
                setAhead(source, name.position)
                streams[place].want(name.number, at: now + settings.delays.askPatience)
            } else {
                apply(record, at: place, from: source, now, &effects)
            }
        }
    }

    private mutating func apply(
        _ record: InvalidationRecord, at place: Int, from source: NodeID?, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) {
        recent.append(record.name)
        let count = recent.count
        streams[place].keep(record, count: count, at: now)
        ids.add(record)
        effects.append(.apply(record, count: count))
        news.applied.insert(record.name.stream)
        if source != nil, let count = record.countRecord { news.events.append(.recorded(count)) }
        if source == nil, Invalidation.isCount(record.content) {
            ownCounts.append(record.name.number)
        }
        writes.add(.record(record, count: count), from: source)
    }

    /// The place of a stream, which is added if need be; nil if there is no room.
    mutating func place(
        of process: ProcessID, _ now: Instant, _ effects: inout [InvalidationEffect]
    ) -> Int? {
        if let place = streams.place(of: process) { return place }
        while streams.count >= settings.streamsMax {
            guard let oldest = oldestDead else { return nil }
            retire(oldest, now, &effects)
        }
        return addStream(process, now)
    }

    /// The place of a new stream; one that was retired begins where it ended.
    mutating func addStream(_ process: ProcessID, _ now: Instant) -> Int {
        let floor = retired.revive(process)
        let place = streams.add(process, at: now)
        if let floor { streams[place].begin(behind: floor, at: now) }
        return place
    }

    // MARK: The disk

    /// What was to be written last is synced.
    package mutating func synced(now: Instant, effects: inout [InvalidationEffect]) {
        var issued: [InvalidationRecord] = []
        var touched: Set<ProcessID> = []
        let dueAt = now + settings.delays.confirm(others: lines.count)
        for done in writes.synced() {
            guard let (process, numbers) = done.write.covered,
                let place = streams.place(of: process)
            else { continue }
            streams[place].synced(numbers)
            touched.insert(process)
            if process == self.process {
                if case .record(let record, _) = done.write { issued.append(record) }
                continue
            }
            if let source = done.source { owed.owe(process, to: source, at: dueAt) }
        }
        for process in touched where process != self.process {
            if let issuer = members.node(of: process) { owed.owe(process, to: issuer, at: dueAt) }
        }
        let had = positions(of: touched.sorted())
        _ = confirmations.add(had, members: [], by: node, at: now)
        news.events.append(.synced(had))
        news.events += issued.compactMap { $0.countRecord.map { .recorded($0) } }
        push(issued, &effects)
        confirmOwed(now)
        trim(now)
        settle(&effects)
    }

    /// What was to be written last is perhaps not synced; it is written again in a while.
    package mutating func writeFailed(now: Instant) {
        writes.failed(beginsAt: now + settings.delays.failedWrite)
    }

    private mutating func push(
        _ records: [InvalidationRecord], _ effects: inout [InvalidationEffect]
    ) {
        guard let last = records.last else { return }
        effects.append(.issued(upTo: last.name.number))
        guard !lines.isEmpty else { return }
        effects.append(.send(.push(records), to: lines.keys))
    }
}

extension LogWrite {
    /// What it makes this node have of a stream; nil if nothing.
    fileprivate var covered: (process: ProcessID, numbers: ClosedRange<UInt64>)? {
        switch self {
        case .record(let record, _):
            (record.name.stream, record.name.number...record.name.number)
        case .floor(let position, _): (position.process, 1...position.count)
        case .local, .note: nil
        }
    }
}

extension InvalidationRecord {
    /// What it says of the count; nil if that is not what it is for.
    var countRecord: CountRecord? {
        guard Invalidation.isCount(content), case .count(let record) = invalidation.action else {
            return nil
        }
        return record
    }
}
