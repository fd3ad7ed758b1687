package import Ground

/// What time brings.
extension InvalidationLog {
    /// When ``ticked(now:effects:)`` is to be called next.
    package var nextTick: Instant {
        var next = nextConfirm
        for stream in streams.streams {
            if let repair = stream.repair { next = min(next, repair.dueAt) }
        }
        if let dueAt = owed.dueAt { next = min(next, dueAt) }
        return writes.dueAt.map { min(next, $0) } ?? next
    }

    /// ``nextTick`` has come; coming earlier does no harm.
    package mutating func ticked(now: Instant, effects: inout [InvalidationEffect]) {
        ask(now, &effects)
        confirmOwed(now)
        guard nextConfirm <= now else { return }
        nextConfirm = now + settings.confirmInterval(lines.count)
        confirmToAll()
        trim(now)
        retireOld(now, &effects)
        retireSurplus(now, &effects)
    }

    /// Tells every member what has been synced since it was told last; receipts are seen everywhere
    /// by that, and streams retired.
    private mutating func confirmToAll() {
        var had: [StreamPosition] = []
        for place in streams.indices where streams[place].isConfirmDue {
            streams[place].isConfirmDue = false
            if streams[place].position.count > 0 { had.append(streams[place].position) }
        }
        guard !lines.isEmpty, !had.isEmpty || company.recorded != confirmedMembers else { return }
        confirmedMembers = company.recorded
        news.confirmations.append((had, lines.keys))
    }

    /// Tells those who gave records, or issued them, how far their streams are synced.
    mutating func confirmOwed(_ now: Instant) {
        for (node, processes) in owed.take(at: now) where lines[node] != nil {
            news.confirmations.append((processes.compactMap { position(of: $0) }, [node]))
        }
    }
}
