import Synchronization

/// How many entries were removed from memory since the start, and why; from any thread.
package final class EvictionCounters: Sendable {
    package enum Reason: Int, CaseIterable, Sendable {
        /// The limit on bytes was reached.
        case byteLimit
        /// The limit on entries was reached.
        case entryLimit
        /// What their site may take of memory was reached.
        case share
        /// A limit was lowered by a change of settings.
        case limitLowered
        /// The process was to take less memory.
        case pressure
        /// They were found to be invalidated, and could not stay as stale ones.
        case purged
    }

    private let counts = InlineArray<6, Atomic<UInt64>> { _ in Atomic(0) }

    package init() {
        precondition(Reason.allCases.count == 6)
    }

    func add(_ reason: Reason) {
        counts[reason.rawValue].wrappingAdd(1, ordering: .relaxed)
    }

    package subscript(reason: Reason) -> UInt64 {
        counts[reason.rawValue].load(ordering: .relaxed)
    }
}
