import Synchronization

/// The counters of one event loop: only its thread adds, any thread may read.
///
/// With one writer an addition needs no locked instruction: a relaxed load and a relaxed store.
package final class EventLoopCounters: Sendable {
    private let cells = CounterCells()

    package init() {}

    /// Adds `amount`; call on the thread of the counters' loop only.
    package func add(_ metric: Metric, _ amount: Int = 1) {
        let cell = metric.rawValue
        let value = cells.load(cell) &+ UInt64(bitPattern: Int64(amount))
        cells.store(value, in: cell)
    }

    /// The value so far; as two's complement, because one loop may open what another closes.
    func load(_ metric: Metric) -> UInt64 {
        cells.load(metric.rawValue)
    }
}

/// The counters that no loop owns: any thread may add, set and read.
package final class NodeCounters: Sendable {
    private let cells = CounterCells()

    package init() {}

    /// Adds `amount` in one atomic step.
    package func add(_ metric: Metric, _ amount: Int = 1) {
        cells.add(UInt64(bitPattern: Int64(amount)), to: metric.rawValue)
    }

    /// Replaces the value of a gauge that somebody else keeps, such as the bytes in memory.
    package func set(_ metric: Metric, to value: Int) {
        cells.store(UInt64(bitPattern: Int64(value)), in: metric.rawValue)
    }

    func load(_ metric: Metric) -> UInt64 {
        cells.load(metric.rawValue)
    }
}

/// Room for every ``Metric``, with a cache line of padding on either side.
///
/// The padding keeps two loops' counters, which may lie side by side in the heap, off one line.
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
