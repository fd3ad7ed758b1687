import NIOCore

/// Operators for whom there is no place yet, in the order in which they came.
struct AdminQueue {
    private var waiting: [(number: Int, promise: EventLoopPromise<Bool>)] = []
    private var next = 0

    /// Takes in one more.
    ///
    /// - Returns: the number to leave with, and the promise of the one that has to go, if there are
    ///   `max` already: the first.
    mutating func enqueue(
        _ promise: EventLoopPromise<Bool>, max: Int
    ) -> (number: Int, turnedAway: EventLoopPromise<Bool>?) {
        let first = waiting.count >= max ? waiting.removeFirst().promise : nil
        next += 1
        waiting.append((next, promise))
        return (next, first)
    }

    /// The promise of the one with this number; nil if it was turned away.
    mutating func dequeue(_ number: Int) -> EventLoopPromise<Bool>? {
        guard let place = waiting.firstIndex(where: { $0.number == number }) else { return nil }
        return waiting.remove(at: place).promise
    }
}
