package import Ground

/// The removal of records and streams.
extension InvalidationLog {
    /// Marks everything soft once for other processes' records that are no longer available, which
    /// then count as applied.
    ///
    /// - Returns: False if all of them had been applied before.
    @discardableResult
    mutating func applyFloors(
        _ floors: [StreamPosition], from source: NodeID, _ now: Instant,
        _ effects: inout [InvalidationEffect]
    ) -> Bool {
        var raised: [StreamPosition] = []
        for floor in floors where floor.process != process && streams.lags(behind: floor) {
            streams.raiseFloor(to: floor, at: now)
            raised.append(floor)
        }
        applied.applyFloors(raised, from: source, &effects)
        return !raised.isEmpty
    }

    /// Applies an invalidation that is not sent to other nodes, even while the log is full.
    ///
    /// If more than ``Settings/localBytesMax`` of such invalidations wait beyond the limit,
    /// everything is marked soft instead.
    package mutating func applyLocally(_ purge: Purge, effects: inout [InvalidationEffect]) {
        let bytesMax = settings.unsyncedBytesMax + settings.localBytesMax
        applied.applyLocally(purge, unsyncedBytesMax: bytesMax, &effects)
    }

    /// Drops the oldest records while the log exceeds its limits.
    mutating func trim(_ now: Instant) {
        for floor in streams.trim(settings, at: now) { applied.writes.add(.dropped(floor)) }
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
        let dropped = positions.compactMap { streams.drop(upTo: $0) }
        for floor in dropped { applied.writes.add(.dropped(floor)) }
        let known = positions.filter { streams.index(of: $0.process) != nil }
        let isRaised = applyFloors(known, from: node, now, &effects)
        if (dropped.isEmpty && !isRaised) || !applied.writes.rejectBatch() { writeFailed(now: now) }
    }

    // MARK: Streams of dead processes

    /// Retires dead processes' streams that all voters have, unchanged for ``Settings/ageMin``.
    mutating func retireOld(_ now: Instant, _ effects: inout [InvalidationEffect]) {
        let members = receipts.members.processes
        let old = streams.live.filter { stream in
            stream.isRetirable(members) && now - stream.changedAt > settings.ageMin
                && receipts.isConfirmedByVoters(stream.syncedPosition)
        }
        for stream in old { retire(stream.process, now, &effects) }
    }

    /// Retires the streams of dead processes beyond `countMax` streams, so that `newcomer`, if any,
    /// has a place; if necessary before all members have them.
    mutating func retireSurplus(
        over countMax: Int, _ retirable: inout RetirableStreams, for newcomer: ProcessID?,
        _ now: Instant, _ effects: inout [InvalidationEffect]
    ) {
        guard streams.count > countMax else { return }
        retirable.search(streams, receipts.members)
        while streams.count > countMax, let oldest = retirable.next(in: streams, for: newcomer) {
            retire(oldest, now, &effects)
        }
    }

    /// Drops a stream except its last position, which asserts that all of it was applied.
    ///
    /// A stream with gaps is not retired yet: everything is marked soft first, and the stream is
    /// retired later, when that is synced.
    private mutating func retire(
        _ process: ProcessID, _ now: Instant, _ effects: inout [InvalidationEffect]
    ) {
        guard let place = streams.index(of: process) else { return }
        let last = streams[place].appliedPosition
        guard streams[place].applied.prefix == last.count else {
            streams.raiseFloor(to: last, at: now)
            return applied.applyFloors([last], from: nil, &effects)
        }
        let forgotten = streams.retire(place)
        receipts.forget(process)
        guard last.count > 0 else { return peers.forgetSynced(process) }
        applied.writes.add(.retired(last))
        events.append(.streamRetired(last))
        guard let forgotten else { return }
        applied.writes.add(.forgotten(forgotten))
        events.append(.streamForgotten(forgotten))
        peers.forget(forgotten)
    }
}
