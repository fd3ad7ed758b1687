package import Ground

/// The removal of records and streams.
extension InvalidationLog {
    /// Marks everything soft once for records that are no longer available, which then count as
    /// applied.
    ///
    /// - Returns: False if all of them had been applied before.
    @discardableResult
    mutating func applyFloors(
        _ floors: [StreamPosition], from source: NodeID, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) -> Bool {
        var raised: [StreamPosition] = []
        for floor in floors where floor.process != process && lags(behind: floor) {
            // Even beyond the limit of streams: it must not be requested again and again.
            let place = streams.index(of: floor.process) ?? addStream(floor.process, now)
            while let first = streams[place].records.first, first.number <= floor.count {
                dropFirst(place)
            }
            streams[place].raiseFloor(to: floor.count, at: now)
            streams[place].setFloor(floor.count)
            raised.append(floor)
        }
        emitFloors(raised, from: source, &effects)
        return !raised.isEmpty
    }

    /// Marks everything soft once, on this node only.
    mutating func markAllSoft(effects: inout [InvalidationEffect]) {
        history.append(nil)
        effects.append(.applyFloors([], count: history.count))
        writes.add(.localPurge(.everythingSoft, count: history.count), from: nil)
    }

    private mutating func emitFloors(
        _ floors: [StreamPosition], from source: NodeID?, _ effects: inout [InvalidationEffect]
    ) {
        guard !floors.isEmpty else { return }
        history.append(nil)
        effects.append(.applyFloors(floors, count: history.count))
        output.applied.formUnion(floors.map(\.process))
        for floor in floors { writes.add(.floor(floor, count: history.count), from: source) }
    }

    /// Applies an invalidation that is not sent to other nodes, even while the log is full.
    ///
    /// If more than ``Settings/localBytesMax`` of such invalidations wait beyond the limit,
    /// everything is marked soft instead.
    package mutating func applyLocally(_ purge: Purge, effects: inout [InvalidationEffect]) {
        let isTooMuch =
            writes.bytesCount >= settings.unsyncedBytesMax + settings.localBytesMax
        // A name that is too long cannot be written.
        guard !isTooMuch, (try? Invalidation(id: [0], .purge(purge)).content()) != nil else {
            return markAllSoft(effects: &effects)
        }
        history.append(nil)
        effects.append(.applyLocally(purge, count: history.count))
        writes.add(.localPurge(purge, count: history.count), from: nil)
    }

    /// Drops the oldest records while the log exceeds its limits.
    mutating func trim(_ now: Instant) {
        var count = heldCount
        var bytes = heldBytes
        var dropped: Set<ProcessID> = []
        while let place = oldestDroppableIndex, let first = streams[place].droppable {
            let isOld = now - first.heldSince > settings.ageMin
            guard bytes > settings.bytesMax || (count > settings.recordsMin && isOld) else { break }
            bytes -= streams[place].records.bytesCount
            dropFirst(place)
            bytes += streams[place].records.bytesCount
            count -= 1
            dropped.insert(streams[place].process)
        }
        for process in dropped.sorted() {
            guard let place = streams.index(of: process) else { continue }
            writes.add(.dropped(StreamPosition(process: process, count: streams[place].floor)))
        }
    }

    /// Drops records for which the disk has no space, regardless of the limits; the refused batch
    /// is written again.
    ///
    /// `positions` are those up to which records must be dropped. If an earlier record that could
    /// still arrive is missing, everything is marked soft instead. If nothing can be dropped, the
    /// batch is retried after a delay.
    package mutating func dropForSpace(
        _ positions: [StreamPosition], now: Instant, effects: inout [InvalidationEffect]
    ) {
        var isGiven = false
        for position in positions {
            guard let place = streams.index(of: position.process) else { continue }
            let before = streams[place].floor
            while let first = streams[place].droppable, first.number <= position.count {
                dropFirst(place)
            }
            let floor = streams[place].floor
            guard floor > before else { continue }
            writes.add(.dropped(StreamPosition(process: position.process, count: floor)))
            isGiven = true
        }
        let known = positions.filter { streams.index(of: $0.process) != nil }
        isGiven = applyFloors(known, from: node, now, &effects) || isGiven
        if !isGiven || !writes.rejectBatch() { writeFailed(now: now) }
    }

    /// The index of the stream with the oldest record that may be dropped.
    private var oldestDroppableIndex: Int? {
        var oldest: (place: Int, heldSince: Instant)?
        for place in streams.indices {
            guard let first = streams[place].droppable else { continue }
            if let before = oldest, before.heldSince <= first.heldSince { continue }
            oldest = (place, first.heldSince)
        }
        return oldest?.place
    }

    private mutating func dropFirst(_ place: Int) {
        guard let (number, content) = streams[place].removeFirst() else { return }
        clientIDs.remove(RecordID(stream: streams[place].process, number: number), content)
    }

    // MARK: Streams of dead processes

    /// Retires the streams that all voters have and that have not changed for long.
    mutating func retireOld(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let counted = members.voters
        guard !counted.isEmpty else { return }
        let old = streams.streams.filter { stream in
            isDead(stream) && now - stream.changedAt > settings.ageMin
                && counted.allSatisfy {
                    confirmations.count(of: stream.process, by: $0) >= stream.synced.prefix
                }
        }.map(\.process)
        for process in old { retire(process, now, &effects) }
    }

    /// Retires streams beyond the limit, if necessary before all members have them.
    mutating func retireSurplus(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        while streams.count > settings.streamsMax, let oldest = oldestDeadStream {
            retire(oldest, now, &effects)
        }
    }

    /// The stream of a dead process that has been unchanged longest; `nil` if there is none.
    var oldestDeadStream: ProcessID? {
        streams.streams.filter(isDead).min { $0.changedAt < $1.changedAt }?.process
    }

    private func isDead(_ stream: InvalidationStream) -> Bool {
        stream.process != process && !stream.isUnsynced && !members.isLive(stream.process)
    }

    /// Drops a stream except its last position, which asserts that all of it was applied.
    ///
    /// A stream with gaps is not retired yet: everything is marked soft first, and the stream is
    /// retired later, when that is synced.
    mutating func retire(
        _ process: ProcessID, _ now: Instant, _ effects: inout [InvalidationEffect]
    ) {
        guard let place = streams.index(of: process) else { return }
        let stream = streams[place]
        guard stream.applied.prefix == stream.appliedPosition.count else {
            while streams[place].records.first != nil { dropFirst(place) }
            streams[place].raiseFloor(to: stream.appliedPosition.count, at: now)
            streams[place].setFloor(stream.appliedPosition.count)
            return emitFloors([stream.appliedPosition], from: nil, &effects)
        }
        while streams[place].records.first != nil { dropFirst(place) }
        let last = streams[place].appliedPosition
        streams.remove(place)
        confirmations.forget(process)
        guard last.count > 0 else { return }
        writes.add(.retired(last))
        output.events.append(.streamRetired(last))
        guard let gone = retired.add(last) else { return }
        writes.add(.forgotten(gone))
        output.events.append(.streamForgotten(gone))
        // A member that reported it before would appear to be ahead for ever.
        missingFromPeers.updateAll { _, told in told[gone] = nil }
    }
}
