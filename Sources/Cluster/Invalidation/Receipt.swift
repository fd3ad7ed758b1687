package import Ground

/// How far one invalidation has come, as one node sees it.
package struct Receipt: Hashable, Sendable {
    package enum ConfirmationStatus: Hashable, Sendable {
        /// It has applied and synced the record; this node learnt so that long after it had the
        /// record itself.
        case confirmed(elapsed: Interval)
        /// There is a connection with it, and it has not said so.
        case pending
        /// There is no connection with it, and it has not said so.
        case unreachable(since: Instant)

        package var isConfirmed: Bool {
            if case .confirmed = self { true } else { false }
        }
    }

    package struct MemberConfirmation: Hashable, Sendable {
        package var node: NodeID
        package var status: ConfirmationStatus

        package init(_ node: NodeID, _ standing: ConfirmationStatus) {
            self.node = node
            self.status = standing
        }
    }

    package var record: InvalidationRecord
    /// When this node got or issued it.
    package var heldSince: Instant
    /// Everybody who is a member, this node included, and whoever a confirmation named as one; by
    /// node id.
    package var confirmations: [MemberConfirmation]
    /// When a majority of the members who counted then had confirmed; nil if none has.
    package var majorityAt: Instant?
    /// From then on no node serves what is covered.
    package var boundedAt: Instant?
    /// No node can serve that is not in ``lines``.
    ///
    /// That is not so for up to two fences after more than half of the counted members have started
    /// anew or were replaced: whom they had answered before nobody may know.
    package var isMembershipComplete = true

    /// Nobody is pending: waiting longer tells no more, unless somebody comes back.
    package var isSettled: Bool {
        isMembershipComplete && !confirmations.contains { $0.status == .pending }
    }
    /// Every node that can serve has it.
    ///
    /// Without a majority this node may not know who can: it has started, and met nobody yet.
    package var isConfirmedByAll: Bool {
        majorityAt != nil && isMembershipComplete && confirmations.allSatisfy(\.status.isConfirmed)
    }
}

/// Those that wait until a record has come as far as they want to know, by stream.
///
/// Members confirm a stream up to a number: what a record has reached, all earlier ones of its
/// stream have. So only the first of each line is looked at, however many wait.
package struct ReceiptWaiters<Waiter> {
    /// One of those that wait.
    package struct Token: Hashable, Sendable {
        fileprivate let line: QueueKey
        fileprivate let number: UInt64
        fileprivate let serial: UInt64
    }

    fileprivate struct QueueKey: Hashable, Sendable {
        let stream: ProcessID
        let awaitsAll: Bool
    }

    private struct QueuedWaiter {
        let number: UInt64
        let serial: UInt64
        let waiter: Waiter
    }

    /// In the order of their numbers.
    private struct Queue {
        private var entries: [QueuedWaiter] = []
        /// Those before are gone.
        private var start = 0

        var waiting: ArraySlice<QueuedWaiter> { entries[start...] }

        /// Inserts behind all that are not greater; what comes in order costs nothing.
        mutating func insert(_ place: QueuedWaiter) {
            var index = entries.count
            while index > start, entries[index - 1].number > place.number { index -= 1 }
            entries.insert(place, at: index)
        }

        mutating func remove(at index: Int) { entries.remove(at: index) }

        mutating func drop(_ count: Int) {
            start += count
            // Half of it at once, so that each is moved about once.
            guard start > entries.count / 2 else { return }
            entries.removeFirst(start)
            start = 0
        }
    }

    private var queues: [QueueKey: Queue] = [:]
    private var serial: UInt64 = 0

    package init() {}

    package var isEmpty: Bool { queues.isEmpty }

    /// `waiter` waits until the record is synced here; with `isForAll` until nobody's word is
    /// outstanding who can be reached.
    package mutating func add(
        _ waiter: Waiter, for name: RecordID, awaitsAll: Bool
    ) -> Token {
        serial += 1
        let line = QueueKey(stream: name.stream, awaitsAll: awaitsAll)
        queues[line, default: Queue()].insert(
            QueuedWaiter(number: name.number, serial: serial, waiter: waiter))
        return Token(line: line, number: name.number, serial: serial)
    }

    /// It waits no longer, if it still did.
    package mutating func remove(_ ticket: Token) {
        guard let waiting = queues[ticket.line]?.waiting else { return }
        let first = waiting.partitionPoint { $0.number < ticket.number }
        let place = waiting.dropFirst(first).firstIndex { $0.serial == ticket.serial }
        guard let place else { return }
        if waiting.count == 1 {
            queues[ticket.line] = nil
        } else {
            queues[ticket.line]?.remove(at: place)
        }
    }

    /// Gives, in no particular order, those for whose records `isOver` is true, and has them wait
    /// no longer.
    package mutating func removeCompleted(
        where isOver: (_ name: RecordID, _ isForAll: Bool) -> Bool
    ) -> [Waiter] {
        var taken: [Waiter] = []
        for (line, queue) in queues {
            let over = queue.waiting.prefix {
                isOver(RecordID(stream: line.stream, number: $0.number), line.awaitsAll)
            }
            guard !over.isEmpty else { continue }
            taken += over.map(\.waiter)
            if over.count == queue.waiting.count {
                queues[line] = nil
            } else {
                queues[line]?.drop(over.count)
            }
        }
        return taken
    }
}
