/// Those that wait until a record has come as far as they want to know, by stream.
///
/// Members confirm a stream up to a number: what a record has reached, all earlier ones of its
/// stream have. So only the first of each line is looked at, however many wait.
package struct ReceiptWaiters<Waiter> {
    private struct Line: Hashable {
        let stream: ProcessID
        let isForAll: Bool
    }

    private var lines: [Line: [(number: UInt64, waiter: Waiter)]] = [:]

    package init() {}

    package var isEmpty: Bool { lines.isEmpty }

    /// `waiter` waits until the record is synced here; with `isForAll` until nobody's word is
    /// outstanding who can be reached.
    package mutating func add(_ waiter: Waiter, for name: RecordName, isForAll: Bool) {
        lines[Line(stream: name.stream, isForAll: isForAll), default: []].insert(
            (name.number, waiter), sortedBy: \.number)
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
