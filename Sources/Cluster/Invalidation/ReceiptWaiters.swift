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

    private var lines: [Line: [Place]] = [:]
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
        lines[line, default: []].insert(
            Place(number: name.number, serial: serial, waiter: waiter), sortedBy: \.number)
        return Ticket(line: line, number: name.number, serial: serial)
    }

    /// It waits no longer, if it still did.
    package mutating func remove(_ ticket: Ticket) {
        guard let waiters = lines[ticket.line] else { return }
        let first = waiters.sortedCount { $0.number < ticket.number }
        let place = waiters[first...].firstIndex { $0.serial == ticket.serial }
        guard let place else { return }
        if waiters.count == 1 {
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
        for (line, waiters) in lines {
            let count =
                waiters.firstIndex {
                    !isOver(RecordName(stream: line.stream, number: $0.number), line.isForAll)
                } ?? waiters.count
            guard count > 0 else { continue }
            taken += waiters.prefix(count).map(\.waiter)
            lines[line] = count == waiters.count ? nil : Array(waiters.dropFirst(count))
        }
        return taken
    }
}

extension Array {
    /// Inserts behind all that are not greater; what is appended in order costs nothing.
    fileprivate mutating func insert<Value: Comparable>(
        _ element: Element, sortedBy value: (Element) -> Value
    ) {
        let key = value(element)
        var index = count
        while index > 0, value(self[index - 1]) > key { index -= 1 }
        insert(element, at: index)
    }
}
