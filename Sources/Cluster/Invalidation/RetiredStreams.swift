import Ground

/// Streams of dead processes that every counted member has and nobody holds: process and last
/// number alone, so that neither gossip nor a node that comes back brings them in again.
///
/// Bounded; the one that was retired first goes. As long as more of these are kept than streams may
/// be known at once, a node that comes back lacks one that is kept if it lacks any.
struct RetiredStreams: Sendable {
    private var counts = SortedTable<ProcessID, UInt64>()
    /// In the order of retirement.
    private var order: [ProcessID] = []
    let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    /// The last number; nil if it was not retired.
    subscript(process: ProcessID) -> UInt64? { counts[process] }

    var positions: [StreamPosition] {
        zip(counts.keys, counts.values).map { StreamPosition(process: $0, count: $1) }
    }

    /// Adds one; gives the one that had to go for it.
    mutating func add(_ position: StreamPosition) -> ProcessID? {
        if counts[position.process] == nil { order.append(position.process) }
        counts[position.process] = max(position.count, counts[position.process] ?? 0)
        guard counts.count > countMax else { return nil }
        let gone = order.removeFirst()
        counts[gone] = nil
        return gone
    }

    /// It goes on after all; its last number if it was retired.
    mutating func revive(_ process: ProcessID) -> UInt64? {
        guard let count = counts[process] else { return nil }
        counts[process] = nil
        order.removeAll { $0 == process }
        return count
    }
}
