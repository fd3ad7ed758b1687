// Queue, quota and idle-connection bookkeeping of one origin.
extension OriginAdmission.OriginState {
    /// Returns the queue index of the request to serve next, on `loop` if it is not `nil`.
    ///
    /// Of the requests that wait for a connection and not for quota, it picks the first one whose
    /// client has the fewest connections.
    func nextEligible(on loop: Int? = nil) -> Int? {
        var next: (index: Int, count: Int)?
        for (index, waiting) in queue.enumerated()
        where loop == nil || waiting.id.loop == loop {
            let count = quotas.clientCount(of: waiting.holders)
            guard count < next?.count ?? .max, quotas.hasQuota(for: waiting.holders) else {
                continue
            }
            next = (index, count)
            if count == 0 { break }
        }
        return next?.index
    }

    /// Counts a bypass for every request that ranks before the one at `index`, which is served
    /// first.
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

    /// Removes a request from the queue, with its quota there, and returns it.
    mutating func dequeue(at index: Int) -> OriginAdmission.QueuedRequest {
        let waiting = queue.remove(at: index)
        queueQuotas.release(waiting.holders)
        return waiting
    }

    /// Counts the connection of a fetch against the quotas of `holders`; without effect if there
    /// are none.
    mutating func acquireQuota(_ id: OriginAdmission.TransactionID, _ holders: [QuotaHolder]) {
        guard !holders.isEmpty else { return }
        self.holders[id] = holders
        quotas.acquire(holders)
    }

    /// Releases the quota of a fetch, if it has any.
    mutating func releaseQuota(_ id: OriginAdmission.TransactionID) {
        if let held = holders.removeValue(forKey: id) { quotas.release(held) }
    }

    /// Removes one idle connection of `loop` from the count; false if there is none.
    mutating func takeIdle(on loop: Int) -> Bool {
        guard let count = idleByLoop[loop] else { return false }
        idleByLoop[loop] = count > 1 ? count - 1 : nil
        return true
    }

    /// Ends the trial of `id`; false if it was none.
    mutating func endTrial(_ id: OriginAdmission.TransactionID) -> Bool {
        guard let index = trials.firstIndex(of: id) else { return false }
        trials.remove(at: index)
        return true
    }

    /// Decides whether a fetch of `loop` may be served before the requests of other loops in the
    /// queue, and counts the bypass against them if so.
    ///
    /// Only requests ahead of `index` matter, unless it is `nil`. A connection that fetches keep
    /// joining never becomes free, so a request can be bypassed only a limited number of times.
    mutating func bypassQueue(of loop: Int, before index: Int? = nil) -> Bool {
        let others = queue.indices.prefix(index ?? queue.count)
            .filter { queue[$0].id.loop != loop && quotas.hasQuota(for: queue[$0].holders) }
        guard others.allSatisfy({ queue[$0].bypassCount < OriginAdmission.bypassesMax }) else {
            return false
        }
        for other in others { queue[other].bypassCount += 1 }
        return true
    }

    /// The loop with the most idle connections; `nil` if there are none.
    var loopWithMostIdle: Int? {
        idleByLoop.max { ($0.value, -$0.key) < ($1.value, -$1.key) }?.key
    }
}
