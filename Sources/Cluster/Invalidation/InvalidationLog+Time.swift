package import Ground

/// What time brings.
extension InvalidationLog {
    /// When ``ticked(now:effects:)`` is to be called next.
    package var nextTick: Instant {
        var next = nextConfirmationAt
        for stream in streams.streams {
            if let repair = stream.repair { next = min(next, repair.dueAt) }
        }
        for dueAt in [pendingConfirmations.dueAt, writes.dueAt, members.nextReview] {
            if let dueAt { next = min(next, dueAt) }
        }
        return next
    }

    /// ``nextTick`` has come; coming earlier does no harm.
    package mutating func ticked(now: Instant, effects: inout [InvalidationEffect]) {
        sendRepairRequests(now, &effects)
        sendDueConfirmations(now)
        if nextConfirmationAt <= now {
            nextConfirmationAt =
                now + settings.delays.confirmAll(after: confirmToAll() * peers.count)
            trim(now)
            retireOld(now, &effects)
            retireSurplus(now, &effects)
        }
        if let dueAt = members.nextReview, dueAt <= now { reviewMembers(now, &effects) }
    }

    /// Tells every member what was synced since it was told last, and gives of how many streams.
    ///
    /// Receipts are seen everywhere by that, and streams retired.
    private mutating func confirmToAll() -> Int {
        var had: [StreamPosition] = []
        for place in streams.indices where streams[place].isConfirmDue {
            streams[place].isConfirmDue = false
            if streams[place].syncedPosition.count > 0 { had.append(streams[place].syncedPosition) }
        }
        guard !peers.isEmpty, !had.isEmpty || members.ownMembers != confirmedMembers else {
            return 0
        }
        confirmedMembers = members.ownMembers
        output.confirmations.append((had, peers.keys))
        return had.count
    }

    /// Tells those who gave records, or issued them, how far their streams are synced.
    mutating func sendDueConfirmations(_ now: Instant) {
        for (node, processes) in pendingConfirmations.takeDue(at: now) where peers[node] != nil {
            let had = positions(of: processes)
            if !had.isEmpty { output.confirmations.append((had, [node])) }
        }
    }

    /// How far these streams are synced here without a gap; without those whose first record is
    /// missing.
    func positions(of processes: [ProcessID]) -> [StreamPosition] {
        processes.compactMap { process in
            streams.index(of: process).map { streams[$0].syncedPosition }
        }.filter { $0.count > 0 }
    }
}
