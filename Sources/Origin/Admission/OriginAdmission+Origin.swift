/// What the gate does with what it knows of one origin.
extension OriginAdmission.OriginState {
    /// Place in the queue of the one that is to be served next, on `loop` if it is said: of those
    /// that lack a connection, and not a share, one whose client has the fewest connections.
    func nextEligible(on loop: Int? = nil) -> Int? {
        var next: (index: Int, count: Int)?
        for (index, waiting) in queue.enumerated()
        where loop == nil || waiting.ticket.loop == loop {
            let count = quotas.clientCount(of: waiting.holders)
            guard count < next?.count ?? .max, quotas.hasQuota(for: waiting.holders) else {
                continue
            }
            next = (index, count)
            if count == 0 { break }
        }
        return next?.index
    }

    /// One at `index` is served; those that should have been before it are passed over.
    mutating func recordBypasses(before index: Int) {
        let count = quotas.clientCount(of: queue[index].holders)
        for other in queue.indices where other != index {
            let waiting = queue[other]
            let otherCount = quotas.clientCount(of: waiting.holders)
            guard (otherCount, other) < (count, index), quotas.hasQuota(for: waiting.holders) else {
                continue
            }
            queue[other].bypassCount += 1
        }
    }

    /// One waits no more.
    mutating func dequeue(at index: Int) -> OriginAdmission.QueuedRequest {
        let waiting = queue.remove(at: index)
        queueQuotas.release(waiting.holders)
        return waiting
    }

    /// A fetch has a connection of its own.
    mutating func acquireQuota(_ ticket: OriginAdmission.TransactionID, _ holders: [QuotaHolder]) {
        guard !holders.isEmpty else { return }
        self.holders[ticket] = holders
        quotas.acquire(holders)
    }

    /// It has none any more, if it had one.
    mutating func releaseQuota(_ ticket: OriginAdmission.TransactionID) {
        if let held = holders.removeValue(forKey: ticket) { quotas.release(held) }
    }

    /// Takes one idle connection of `loop`; false if it has none.
    mutating func takeIdle(on loop: Int) -> Bool {
        guard let count = idleByLoop[loop] else { return false }
        idleByLoop[loop] = count > 1 ? count - 1 : nil
        return true
    }

    /// True if `ticket` was a trial, which it is no more.
    mutating func endTrial(_ ticket: OriginAdmission.TransactionID) -> Bool {
        guard let index = trials.firstIndex(of: ticket) else { return false }
        trials.remove(at: index)
        return true
    }

    /// Whether a fetch of `loop` is served before those of other loops that stand before `index` in
    /// the queue, which is then counted.
    ///
    /// A connection that fetches join again and again never becomes free, so they may not for ever.
    mutating func bypassQueue(of loop: Int, before index: Int? = nil) -> Bool {
        let others = queue.indices.prefix(index ?? queue.count)
            .filter { queue[$0].ticket.loop != loop && quotas.hasQuota(for: queue[$0].holders) }
        guard others.allSatisfy({ queue[$0].bypassCount < OriginAdmission.bypassesMax }) else {
            return false
        }
        for other in others { queue[other].bypassCount += 1 }
        return true
    }

    /// The loop with the most idle connections.
    var loopWithMostIdle: Int? {
        idleByLoop.max { ($0.value, -$0.key) < ($1.value, -$1.key) }?.key
    }
}
