import Ground

/// A queue of future events, ordered by time, then by the order in which they were scheduled.
struct EventQueue<Event: Sendable>: Sendable {
    private struct Entry: Sendable {
        let instant: Instant
        let order: UInt64
        let event: Event

        /// Returns true if the entry comes out before `other`.
        func precedes(_ other: Entry) -> Bool {
            (instant.nanoseconds, order) < (other.instant.nanoseconds, other.order)
        }
    }

    /// A binary heap with the next event at the root.
    private var heap: [Entry] = []
    /// The number of events scheduled so far.
    private var order: UInt64 = 0

    /// The time of the next event; `nil` if there is none.
    var next: Instant? { heap.first?.instant }

    /// Adds an event at `instant`.
    mutating func schedule(_ event: Event, at instant: Instant) {
        order += 1
        heap.append(Entry(instant: instant, order: order, event: event))
        var index = heap.count - 1
        while index > 0, heap[index].precedes(heap[(index - 1) / 2]) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Removes and returns the next event; `nil` if there is none.
    mutating func popNext() -> (instant: Instant, event: Event)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return (first.instant, first.event)
    }

    /// Restores the order of the heap after the root was replaced.
    private mutating func sink() {
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count {
                if heap[child].precedes(heap[least]) { least = child }
            }
            guard least != index else { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
