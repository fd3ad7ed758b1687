import Ground

/// Those that wait until a record has come as far as they want to know, by stream.
///
/// Members confirm a stream up to a number: what a record has reached, all earlier ones of its
/// stream have. So only the first of each line is looked at, however many wait.
package struct ReceiptWaiters<Waiter> {
    /// One of those that wait.
    package struct Ticket: Hashable, Sendable {
        fileprivate let line: Line
        fileprivate let number: UInt64
        fileprivate let serial: UInt64
    }

    fileprivate struct Line: Hashable, Sendable {
        let stream: ProcessID
        let isForAll: Bool
    }

    private struct Place {
        let number: UInt64
        let serial: UInt64
        let waiter: Waiter
    }

    /// In the order of their numbers.
    private struct Queue {
        private var places: [Place] = []
        /// Those before are gone.
        private var start = 0

        var waiting: ArraySlice<Place> { places[start...] }

        /// Inserts behind all that are not greater; what comes in order costs nothing.
        mutating func insert(_ place: Place) {
            var index = places.count
            while index > start, places[index - 1].number > place.number { index -= 1 }
            places.insert(place, at: index)
        }

        mutating func remove(at index: Int) { places.remove(at: index) }

        mutating func drop(_ count: Int) {
            start += count
            // Half of it at once, so that each is moved about once.
            guard start > places.count / 2 else { return }
            places.removeFirst(start)
            start = 0
        }
    }

    private var lines: [Line: Queue] = [:]
    private var serial: UInt64 = 0

    package init() {}

    package var isEmpty: Bool { lines.isEmpty }

    /// `waiter` waits until the record is synced here; with `isForAll` until nobody's word is
    /// outstanding who can be reached.
    package mutating func add(
        _ waiter: Waiter, for name: RecordName, isForAll: Bool
    ) -> Ticket {
        serial += 1
        let line = Line(stream: name.stream, isForAll: isForAll)
        lines[line, default: Queue()].insert(
            Place(number: name.number, serial: serial, waiter: waiter))
        return Ticket(line: line, number: name.number, serial: serial)
    }

    /// It waits no longer, if it still did.
    package mutating func remove(_ ticket: Ticket) {
        guard let waiting = lines[ticket.line]?.waiting else { return }
        let first = waiting.sortedCount { $0.number < ticket.number }
        let place = waiting.dropFirst(first).firstIndex { $0.serial == ticket.serial }
        guard let place else { return }
        if waiting.count == 1 {
            lines[ticket.line] = nil
        } else {
            lines[ticket.line]?.remove(at: place)
        }
    }

    /// Gives, in no particular order, those for whose records `isOver` is true, and has them wait
    /// no longer.
    package mutating func take(
        where isOver: (_ name: RecordName, _ isForAll: Bool) -> Bool
    ) -> [Waiter] {
        var taken: [Waiter] = []
        for (line, queue) in lines {
            let over = queue.waiting.prefix {
                isOver(RecordName(stream: line.stream, number: $0.number), line.isForAll)
            }
            guard !over.isEmpty else { continue }
            taken += over.map(\.waiter)
            if over.count == queue.waiting.count {
                lines[line] = nil
            } else {
                lines[line]?.drop(over.count)
            }
        }
        return taken
    }
}
