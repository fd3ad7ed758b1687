/// What the gate does with what it knows of one origin.
extension OriginGate.Origin {
    /// Place in the queue of the one that is to be served next, on `loop` if it is said: of those
    /// that lack a connection, and not a share, one whose client has the fewest connections.
    func nextEntitled(on loop: Int? = nil) -> Int? {
        var next: (index: Int, count: Int)?
        for (index, waiting) in queue.enumerated()
        where loop == nil || waiting.ticket.loop == loop {
            let count = shares.clientCount(of: waiting.holders)
            guard count < next?.count ?? .max, shares.hasShare(for: waiting.holders) else {
                continue
            }
            next = (index, count)
            if count == 0 { break }
        }
        return next?.index
    }

    /// One at `index` is served; those that should have been before it are passed over.
    mutating func passOthers(before index: Int) {
        let count = shares.clientCount(of: queue[index].holders)
        for other in queue.indices where other != index {
            let waiting = queue[other]
            let otherCount = shares.clientCount(of: waiting.holders)
            guard (otherCount, other) < (count, index), shares.hasShare(for: waiting.holders) else {
                continue
            }
            queue[other].passedOver += 1
        }
    }

    /// One waits no more.
    mutating func dequeue(at index: Int) -> OriginGate.Waiting {
        let waiting = queue.remove(at: index)
        queueShares.giveBack(waiting.holders)
        return waiting
    }

    /// A fetch has a connection of its own.
    mutating func hold(_ ticket: OriginGate.Ticket, _ holders: [ShareHolder]) {
        guard !holders.isEmpty else { return }
        self.holders[ticket] = holders
        shares.take(holders)
    }

    /// It has none any more, if it had one.
    mutating func letGo(_ ticket: OriginGate.Ticket) {
        if let held = holders.removeValue(forKey: ticket) { shares.giveBack(held) }
    }

    /// Takes one idle connection of `loop`; false if it has none.
    mutating func takeIdle(on loop: Int) -> Bool {
        guard let count = idle[loop] else { return false }
        idle[loop] = count > 1 ? count - 1 : nil
        return true
    }

    /// True if `ticket` was a trial, which it is no more.
    mutating func endTrial(_ ticket: OriginGate.Ticket) -> Bool {
        guard let index = trials.firstIndex(of: ticket) else { return false }
        trials.remove(at: index)
        return true
    }

    /// Whether a fetch of `loop` is served before those of other loops that stand before `index` in
    /// the queue, which is then counted.
    ///
    /// A connection that fetches join again and again never becomes free, so they may not for ever.
    mutating func passesOthers(of loop: Int, before index: Int? = nil) -> Bool {
        let others = queue.indices.prefix(index ?? queue.count)
            .filter { queue[$0].ticket.loop != loop && shares.hasShare(for: queue[$0].holders) }
        guard others.allSatisfy({ queue[$0].passedOver < OriginGate.passesMax }) else {
            return false
        }
        for other in others { queue[other].passedOver += 1 }
        return true
    }

    /// The loop with the most idle connections.
    var idleLoop: Int? {
        idle.max { ($0.value, -$0.key) < ($1.value, -$1.key) }?.key
    }
}
