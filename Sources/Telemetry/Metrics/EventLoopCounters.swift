import Synchronization

/// The counters of one event loop.
///
/// Only the loop's thread adds; any thread may read.
///
/// With one writer, an addition needs no locked instruction: a relaxed load and a relaxed store.
package final class EventLoopCounters: Sendable {
    private let cells = CounterCells()

    /// Creates counters of zero.
    package init() {}

    /// Adds `amount`, which may be negative; call only on the thread of the loop.
    package func add(_ metric: Metric, _ amount: Int = 1) {
        let cell = metric.rawValue
        let value = cells.load(cell) &+ UInt64(bitPattern: Int64(amount))
        cells.store(value, in: cell)
    }

    /// Returns the value as two's complement: it may be negative, because one loop may close what
    /// another opened.
    func load(_ metric: Metric) -> UInt64 {
        cells.load(metric.rawValue)
    }
}

/// The counters that belong to no event loop; any thread may add, set and read.
package final class NodeCounters: Sendable {
    private let cells = CounterCells()

    /// Creates counters of zero.
    package init() {}

    /// Adds `amount`, which may be negative, in one atomic step.
    package func add(_ metric: Metric, _ amount: Int = 1) {
        cells.add(UInt64(bitPattern: Int64(amount)), to: metric.rawValue)
    }

    /// Replaces the value of a gauge that is maintained elsewhere, such as the bytes in memory.
    package func set(_ metric: Metric, to value: Int) {
        cells.store(UInt64(bitPattern: Int64(value)), in: metric.rawValue)
    }

    /// Returns the value as two's complement.
    func load(_ metric: Metric) -> UInt64 {
        cells.load(metric.rawValue)
    }
}

/// The storage for every ``Metric``, with a cache line of padding on either side.
///
/// The padding keeps the counters of two loops off one cache line when they are adjacent in the
/// heap.
private struct CounterCells: ~Copyable, Sendable {
    private static let padding = 8
    private let words = InlineArray<272, Atomic<UInt64>> { _ in Atomic(0) }

    @inline(__always)
    func load(_ cell: Int) -> UInt64 {
        words[Self.padding + cell].load(ordering: .relaxed)
    }

    @inline(__always)
    func store(_ value: UInt64, in cell: Int) {
        words[Self.padding + cell].store(value, ordering: .relaxed)
    }

    @inline(__always)
    func add(_ value: UInt64, to cell: Int) {
        words[Self.padding + cell].wrappingAdd(value, ordering: .relaxed)
    }
}
