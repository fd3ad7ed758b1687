package import Ground

/// What time brings.
extension InvalidationLog {
    /// When ``ticked(now:effects:)`` is to be called next.
    package var nextTick: Instant {
        var next = nextConfirm
        for stream in streams.streams {
            if let repair = stream.repair { next = min(next, repair.dueAt) }
        }
        for dueAt in [owed.dueAt, writes.dueAt, members.nextReview] {
            if let dueAt { next = min(next, dueAt) }
        }
        return next
    }

    /// ``nextTick`` has come; coming earlier does no harm.
    package mutating func ticked(now: Instant, effects: inout [InvalidationEffect]) {
        ask(now, &effects)
        confirmOwed(now)
        if nextConfirm <= now {
            nextConfirm = now + settings.delays.confirmAll(after: confirmToAll() * lines.count)
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
            if streams[place].position.count > 0 { had.append(streams[place].position) }
        }
        guard !lines.isEmpty, !had.isEmpty || members.recorded != confirmedMembers else { return 0 }
        confirmedMembers = members.recorded
        news.confirmations.append((had, lines.keys))
        return had.count
    }

    /// Tells those who gave records, or issued them, how far their streams are synced.
    mutating func confirmOwed(_ now: Instant) {
        for (node, processes) in owed.take(at: now) where lines[node] != nil {
            let had = positions(of: processes)
            if !had.isEmpty { news.confirmations.append((had, [node])) }
        }
    }

    /// How far these streams are synced here without a gap; without those whose first record is
    /// missing.
    func positions(of processes: [ProcessID]) -> [StreamPosition] {
        processes.compactMap { process in
            streams.place(of: process).map { streams[$0].position }
        }.filter { $0.count > 0 }
    }
}
