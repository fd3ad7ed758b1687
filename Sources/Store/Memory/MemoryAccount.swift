import Synchronization

/// How much of the memory limit is taken, over all shards, fetches and readers of a node.
///
/// Whoever is about to hold bytes reserves them first, so that the limit holds at every instant;
/// whoever lets go of the last reference releases them. What an evicted body's last reader still
/// holds is therefore still counted.
package final class MemoryAccount: Sendable {
    private let used = Atomic<Int>(0)
    private let indexed = Atomic<Int>(0)
    private let overhead = Atomic<Int>(0)
    private let fetching = Atomic<Int>(0)
    /// Windows of bodies that are not kept.
    private let windows = Atomic<Int>(0)
    private let limit: Atomic<Int>

    /// - Parameter limit: bytes.
    package init(limit: Int) {
        self.limit = Atomic(limit)
    }

    package var limitBytes: Int { limit.load(ordering: .relaxed) }
    /// Everything reserved and not yet released.
    package var usedBytes: Int { used.load(ordering: .relaxed) }
    /// What belongs to entries that a look-up can find.
    package var indexedBytes: Int { indexed.load(ordering: .relaxed) }
    /// Of these, all but bodies: keys, heads, tags, objects, and places in index and policy.
    package var overheadBytes: Int { overhead.load(ordering: .relaxed) }
    /// What fetches under way hold, for bodies that become entries and for those that do not.
    package var fetchBytes: Int { fetching.load(ordering: .relaxed) }
    /// What is held only by readers of entries that are no longer there.
    package var pinnedBytes: Int {
        max(0, usedBytes - indexedBytes - fetchBytes)
    }

    /// A lower limit frees nothing by itself: the store evicts down to it.
    func setLimit(_ bytes: Int) {
        limit.store(bytes, ordering: .relaxed)
    }

    /// Takes `bytes` if they fit under the limit; otherwise takes nothing and gives false.
    package func reserve(_ bytes: Int) -> Bool {
        var current = used.load(ordering: .relaxed)
        while true {
            guard bytes <= limitBytes - current else { return false }
            let (exchanged, original) = used.weakCompareExchange(
                expected: current, desired: current + bytes, ordering: .relaxed)
            if exchanged { return true }
            current = original
        }
    }

    /// Counts a window of `bytes`; false, with nothing counted, if all of them would be more than
    /// `max`.
    func reserveWindow(_ bytes: Int, max: Int) -> Bool {
        guard windows.add(bytes, ordering: .relaxed).newValue <= max else {
            windows.subtract(bytes, ordering: .relaxed)
            return false
        }
        return true
    }

    func releaseWindow(_ bytes: Int) {
        windows.subtract(bytes, ordering: .relaxed)
    }

    package func release(_ bytes: Int) {
        let left = used.subtract(bytes, ordering: .relaxed).newValue
        assert(left >= 0, "released more than was reserved: \(left)")
    }

    /// Of the reserved bytes, `bytes` more (or fewer, if negative) belong to fetches under way.
    package func addFetchBytes(_ bytes: Int) {
        fetching.add(bytes, ordering: .relaxed)
    }

    /// Of the reserved bytes, `bytes` more (or fewer, if negative) belong to entries that can be
    /// found.
    ///
    /// `overheadBytes` of them are not bodies.
    func addIndexedBytes(_ bytes: Int, overheadBytes: Int) {
        indexed.add(bytes, ordering: .relaxed)
        overhead.add(overheadBytes, ordering: .relaxed)
    }
}
