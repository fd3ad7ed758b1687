package import Ground

/// The outcome of a request to issue an invalidation.
package enum IssueOutcome: Hashable, Sendable {
    /// The invalidation has a number and is applied here.
    case issued(RecordID)
    /// A repetition: equal content was issued before under this id.
    case duplicate(RecordID)
    /// A contradiction: other content was issued before under this id.
    case conflict(RecordID)
    /// Too many bytes wait to be synced; nothing has happened.
    case busy
}

/// Issuing, receiving and syncing records.
extension InvalidationLog {
    /// Assigns `invalidation` the next number of this node, unless its id is known, and applies it.
    ///
    /// - Throws: ``InvalidationFault``; nothing has happened.
    package mutating func issue(
        _ invalidation: Invalidation, now: Instant, effects: inout [InvalidationEffect]
    ) throws(InvalidationFault) -> IssueOutcome {
        let content = try invalidation.content()
        if let known = streams.record(withClientID: invalidation.clientID) {
            return known.encodedContent == content ? .duplicate(known.id) : .conflict(known.id)
        }
        guard !isFull, let place = streams.index(of: process) else { return .busy }
        let name = RecordID(stream: process, number: streams[place].applied.last + 1)
        apply(InvalidationRecord(name, content: content), at: place, from: nil, now, &effects)
        return .issued(name)
    }

    /// Applies those of the records that are new here; `source` pushed them or sent them otherwise.
    ///
    /// Other content of a held number, and a new record of this node's own stream, are reported as
    /// a conflict. While the log is full, or has too many streams, records count as missing.
    package mutating func recordsReceived(
        _ records: [InvalidationRecord], from source: NodeID, now: Instant,
        effects: inout [InvalidationEffect]
    ) {
        var retirable = RetirableStreams(unchangedSince: now)
        var missing: [StreamPosition] = []
        for record in records {
            let name = record.id
            guard !streams.isRetired(name.position) else { continue }
            guard let place = index(of: name.stream, replacing: &retirable, now, &effects) else {
                missing.append(name.position)
                continue
            }
            if streams[place].applied.contains(name.number) {
                let slot = streams[place].records.slot(name.number)
                if let slot, slot.hash != record.hash {
                    events.append(.recordConflictFound(name.position))
                }
            } else if name.stream == process {
                events.append(.recordConflictFound(name.position))
            } else if isFull {
                missing.append(name.position)
                streams[place].requestRepair(name.number, at: now + settings.delays.repairTimeout)
            } else {
                apply(record, at: place, from: source, now, &effects)
            }
        }
        peers.recordMissing(missing, at: source, in: streams, othersMax: settings.streamsMax)
    }

    /// Adds and applies a new record; passes another node's consensus record to the fence.
    private mutating func apply(
        _ record: InvalidationRecord, at place: Int, from source: NodeID?, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) {
        streams.insert(record, to: place, at: now)
        applied.apply(record, from: source, &effects)
        if source != nil, let consensusRecord = record.consensusRecord {
            events.append(.consensusRecordRead(consensusRecord))
        }
        if source == nil, Invalidation.isConsensus(record.encodedContent) {
            receipts.consensusRecordIssued(record.id.number)
        }
    }

    /// Returns the index of a stream, added if necessary; `nil` if no room can be made for it.
    mutating func index(
        of process: ProcessID, replacing retirable: inout RetirableStreams, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) -> Int? {
        if let place = streams.index(of: process) { return place }
        retireSurplus(over: settings.streamsMax - 1, &retirable, for: process, now, &effects)
        guard streams.count < settings.streamsMax else { return nil }
        retirable.append(process, at: now)
        return streams.add(process, at: now)
    }

    // MARK: The disk

    /// Records that the last batch is synced; pushes own records in it, schedules confirmations.
    package mutating func writeSynced(now: Instant, effects: inout [InvalidationEffect]) {
        var issued: [InvalidationRecord] = []
        var synced: Set<ProcessID> = []
        let dueAt = now + settings.delays.confirm(others: peers.connected.count)
        for done in applied.writes.completeBatch() {
            guard let (process, numbers) = done.write.coveredNumbers,
                let place = streams.index(of: process)
            else { continue }
            streams[place].markSynced(numbers)
            synced.insert(process)
            if process == self.process {
                if case .record(let record, _) = done.write { issued.append(record) }
                continue
            }
            if let source = done.source { confirmations.add(process, to: source, at: dueAt) }
        }
        for process in synced where process != self.process {
            if let issuer = receipts.members.node(of: process) {
                confirmations.add(process, to: issuer, at: dueAt)
            }
        }
        let positions = streams.syncedPositions(of: synced.sorted())
        receipts.synced(positions, at: now)
        events.append(.positionsSynced(positions))
        events += issued.compactMap { $0.consensusRecord.map { .consensusRecordRead($0) } }
        if let last = issued.last {
            effects.append(.ownRecordsSynced(upTo: last.id.number))
            let members = peers.connected
            if !members.isEmpty { effects.append(.send(.push(issued), to: members)) }
        }
        confirmations.sendDue(to: peers, from: streams, at: now)
        trim(now)
        updateSettled(&effects)
    }

    /// Records that the last batch may not be synced; it is written again after a delay.
    package mutating func writeFailed(now: Instant) {
        applied.writes.batchFailed(beginsAt: now + settings.delays.failedWrite)
    }
}

extension LogWrite {
    /// The records that the write covers once it is synced; `nil` for none.
    fileprivate var coveredNumbers: (process: ProcessID, numbers: ClosedRange<UInt64>)? {
        switch self {
        case .record(let record, _):
            (record.id.stream, record.id.number...record.id.number)
        case .floor(let position, _): (position.process, 1...position.count)
        case .localPurge, .metadata: nil
        }
    }
}

extension InvalidationRecord {
    /// The consensus record in the content, or `nil` for another kind.
    var consensusRecord: ConsensusRecord? {
        guard Invalidation.isConsensus(encodedContent),
            case .consensus(let record) = invalidation.action
        else {
            return nil
        }
        return record
    }
}
