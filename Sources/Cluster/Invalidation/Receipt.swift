package import Ground

/// The progress of one invalidation in the cluster, as one node knows it (Design, "Receipts").
package struct Receipt: Hashable, Sendable {
    /// The status of one member.
    package enum ConfirmationStatus: Hashable, Sendable {
        /// The member has applied and synced the record.
        ///
        /// `elapsed` is the time from when this node had the record until it learned of that.
        case confirmed(elapsed: Interval)
        /// The member is connected and has not confirmed the record.
        case pending
        /// The member is not connected and has not confirmed the record.
        case unreachable(since: Instant)

        /// True if the member has confirmed the record.
        package var isConfirmed: Bool {
            if case .confirmed = self { true } else { false }
        }
    }

    /// A member with its status.
    package struct MemberConfirmation: Hashable, Sendable {
        /// The member.
        package var node: NodeID
        /// The member's status.
        package var status: ConfirmationStatus

        /// Creates a status from its parts.
        package init(_ node: NodeID, _ status: ConfirmationStatus) {
            self.node = node
            self.status = status
        }
    }

    /// The record.
    package var record: InvalidationRecord
    /// The time at which this node received or issued the record.
    package var heldSince: Instant
    /// All members, including this node and those that a confirmation named, by id.
    package var confirmations: [MemberConfirmation]
    /// When a majority of the voters of that time had confirmed; `nil` if none has.
    package var majorityAt: Instant?
    /// The time from which no node serves what the purge covers; `nil` if unknown.
    package var boundedAt: Instant?
    /// True if every node that can serve is in ``confirmations``.
    ///
    /// False for up to two fence durations after more than half of the voters restarted or were
    /// replaced: the nodes that they had answered before may be unknown.
    package var isMembershipComplete = true

    /// True if no member is pending: the receipt changes only if an unreachable member returns.
    package var isSettled: Bool {
        isMembershipComplete && !confirmations.contains { $0.status == .pending }
    }
    /// True if every node that can serve has confirmed the record.
    ///
    /// Without a majority this is unknown: the node may have just started and met no other.
    package var isConfirmedByAll: Bool {
        majorityAt != nil && isMembershipComplete && confirmations.allSatisfy(\.status.isConfirmed)
    }
}

/// The waiters for records to be synced or confirmed, by stream.
///
/// Members confirm a stream up to a number: what holds for a record holds for all earlier ones of
/// its stream. So only the first waiter of each queue is examined, however many there are.
package struct ReceiptWaiters<Waiter> {
    /// The identity of a waiter.
    package struct Token: Hashable, Sendable {
        fileprivate let key: QueueKey
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

    /// The waiters of one stream and condition, by record number.
    private struct Queue {
        private var entries: [QueuedWaiter] = []
        /// The number of removed elements at the beginning of `entries`.
        private var start = 0

        var waiting: ArraySlice<QueuedWaiter> { entries[start...] }

        /// Inserts a waiter behind all with lower or equal numbers; constant time for ascending
        /// numbers.
        mutating func insert(_ place: QueuedWaiter) {
            var index = entries.count
            while index > start, entries[index - 1].number > place.number { index -= 1 }
            entries.insert(place, at: index)
        }

        mutating func remove(at index: Int) { entries.remove(at: index) }

        /// Removes the first `count` waiters.
        mutating func drop(_ count: Int) {
            start += count
            // The array is compacted once half of it is removed, so each element moves about once.
            guard start > entries.count / 2 else { return }
            entries.removeFirst(start)
            start = 0
        }
    }

    private var queues: [QueueKey: Queue] = [:]
    private var serial: UInt64 = 0

    /// Creates an empty collection.
    package init() {}

    /// True if there is no waiter.
    package var isEmpty: Bool { queues.isEmpty }

    /// Adds a waiter for a record.
    ///
    /// - Parameters:
    ///   - waiter: The waiter.
    ///   - name: The record.
    ///   - awaitsAll: False to wait until the record is synced here; true to wait until no
    ///     reachable member's confirmation is pending.
    /// - Returns: The token with which to remove the waiter.
    package mutating func add(
        _ waiter: Waiter, for name: RecordID, awaitsAll: Bool
    ) -> Token {
        serial += 1
        let key = QueueKey(stream: name.stream, awaitsAll: awaitsAll)
        queues[key, default: Queue()].insert(
            QueuedWaiter(number: name.number, serial: serial, waiter: waiter))
        return Token(key: key, number: name.number, serial: serial)
    }

    /// Removes the waiter if it is still waiting.
    package mutating func remove(_ token: Token) {
        guard let waiting = queues[token.key]?.waiting else { return }
        let first = waiting.partitionPoint { $0.number < token.number }
        let place = waiting.dropFirst(first).firstIndex { $0.serial == token.serial }
        guard let place else { return }
        if waiting.count == 1 {
            queues[token.key] = nil
        } else {
            queues[token.key]?.remove(at: place)
        }
    }

    /// Removes and returns the waiters for whose records `isOver` returns true, in no particular
    /// order.
    ///
    /// `isForAll` is the `awaitsAll` with which the waiter was added.
    package mutating func removeCompleted(
        where isOver: (_ name: RecordID, _ isForAll: Bool) -> Bool
    ) -> [Waiter] {
        var taken: [Waiter] = []
        for (key, queue) in queues {
            let over = queue.waiting.prefix {
                isOver(RecordID(stream: key.stream, number: $0.number), key.awaitsAll)
            }
            guard !over.isEmpty else { continue }
            taken += over.map(\.waiter)
            if over.count == queue.waiting.count {
                queues[key] = nil
            } else {
                queues[key]?.drop(over.count)
            }
        }
        return taken
    }
}
