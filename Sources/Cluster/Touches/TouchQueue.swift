import Ground

/// The merged touches of all event loops until they are sent or applied in batches.
///
/// Bounded: when the queue is full, the oldest touches are dropped and counted. At worst an entry
/// then appears idle for longer than it was.
package struct TouchQueue: Sendable {
    /// The touches in the order of first touches; those before `head` are already removed.
    private var waiting: [Touch] = []
    private var head = 0
    private var indexes: [EntryDigest: Int] = [:]
    /// The maximum number of waiting entries.
    package let keysMax: Int
    /// The number of touches that were merged into a waiting one.
    package private(set) var mergedCount: UInt64 = 0
    /// The number of touches that were dropped because the queue was full.
    package private(set) var droppedCount: UInt64 = 0

    /// The maximum number of entries in a batch; a full batch is forwarded without further delay.
    package static let batchKeys = 1_024

    /// Creates an empty queue for `keysMax` entries.
    package init(keysMax: Int) {
        precondition(keysMax > 0, "a queue for \(keysMax) entries")
        self.keysMax = keysMax
    }

    /// The number of waiting entries.
    package var count: Int { waiting.count - head }
    /// True if at least one full batch waits.
    package var hasBatch: Bool { count >= Self.batchKeys }

    /// Adds the touches of one event loop, merging those of entries that already wait.
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

    /// Removes and returns the oldest touches, at most ``batchKeys``; empty if nothing waits.
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

    /// Frees the storage of removed touches when they outnumber the waiting ones.
    private mutating func compact() {
        guard head > count else { return }
        waiting.removeFirst(head)
        head = 0
        for (place, touch) in waiting.enumerated() { indexes[touch.digest] = place }
    }
}
