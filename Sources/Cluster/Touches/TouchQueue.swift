package import Ground

/// The touches of all loops, merged, until they are sent or applied in batches.
///
/// Bounded: when more entries are touched than fit, the oldest touches are dropped and counted. At
/// worst an entry then looks idle for longer than it was.
package struct TouchQueue: Sendable {
    /// In the order of first touches; those before ``head`` are gone.
    private var waiting: [Touch] = []
    private var head = 0
    private var indexes: [EntryDigest: Int] = [:]
    /// The most entries that wait.
    package let keysMax: Int
    /// Touches that were merged into one that waited already.
    package private(set) var mergedCount: UInt64 = 0
    /// Touches that were dropped for want of room.
    package private(set) var droppedCount: UInt64 = 0

    /// Keys of one batch, after which it is not waited for more.
    package static let batchKeys = 1_024
    /// How long a touch waits at most before it is handed on.
    package static let batchInterval = Interval.seconds(5)

    /// An empty queue for `keysMax` entries.
    package init(keysMax: Int) {
        precondition(keysMax > 0, "a queue for \(keysMax) entries")
        self.keysMax = keysMax
    }

    /// Entries that wait.
    package var count: Int { waiting.count - head }
    /// True if there is a whole batch.
    package var hasBatch: Bool { count >= Self.batchKeys }

    /// Takes in what one loop has noted.
    package mutating func add(_ touches: [Touch]) {
        for touch in touches {
            if let place = indexes[touch.digest] {
                waiting[place].merge(touch)
                mergedCount += 1
                continue
            }
            if count == keysMax { dropOldest() }
            indexes[touch.digest] = waiting.count
            waiting.append(touch)
        }
    }

    /// The oldest touches, at most a batch of them; none if nothing waits.
    package mutating func takeBatch() -> [Touch] {
        let end = head + min(count, Self.batchKeys)
        let batch = Array(waiting[head..<end])
        for touch in batch { indexes[touch.digest] = nil }
        head = end
        compact()
        return batch
    }

    private mutating func dropOldest() {
        indexes[waiting[head].digest] = nil
        head += 1
        droppedCount += 1
        compact()
    }

    /// Lets go of what is gone when it is more than what waits.
    private mutating func compact() {
        guard head > count else { return }
        waiting.removeFirst(head)
        head = 0
        for (place, touch) in waiting.enumerated() { indexes[touch.digest] = place }
    }
}
