import Synchronization

/// The use of the memory limit by all shards, fetches and readers of a node; thread-safe.
///
/// Bytes are reserved before they are held, so that the limit holds at every instant, and released
/// with the last reference. An evicted body that a reader still holds is therefore still counted.
package final class MemoryAccount: Sendable {
    private let used = Atomic<Int>(0)
    private let indexed = Atomic<Int>(0)
    private let overhead = Atomic<Int>(0)
    private let fetching = Atomic<Int>(0)
    /// Bytes of windows of bodies that are not stored.
    private let windows = Atomic<Int>(0)
    private let limit: Atomic<Int>

    /// Creates an account with a limit in bytes.
    package init(limit: Int) {
        self.limit = Atomic(limit)
    }

    /// The current limit in bytes.
    package var limitBytes: Int { limit.load(ordering: .relaxed) }
    /// Bytes reserved and not yet released.
    package var usedBytes: Int { used.load(ordering: .relaxed) }
    /// Bytes of entries that a look-up can find.
    package var indexedBytes: Int { indexed.load(ordering: .relaxed) }
    /// The part of ``indexedBytes`` that is not bodies: keys, heads, tags, objects, and positions
    /// in index and policy.
    package var overheadBytes: Int { overhead.load(ordering: .relaxed) }
    /// Bytes held by fetches in progress, for bodies that become entries and for those that do not.
    package var fetchBytes: Int { fetching.load(ordering: .relaxed) }
    /// Bytes held only by readers of entries that have been removed.
    package var pinnedBytes: Int {
        max(0, usedBytes - indexedBytes - fetchBytes)
    }

    /// Sets the limit in bytes; a lower one frees nothing by itself, the store evicts down to it.
    func setLimit(_ bytes: Int) {
        limit.store(bytes, ordering: .relaxed)
    }

    /// Reserves `bytes` if they fit under the limit; otherwise reserves nothing and returns false.
    package func reserve(_ bytes: Int) -> Bool {
        used.add(bytes, ifAtMost: limitBytes)
    }

    /// Counts a window of `bytes`; false, with nothing counted, if the total would exceed `max`.
    func reserveWindow(_ bytes: Int, max: Int) -> Bool {
        guard windows.add(bytes, ordering: .relaxed).newValue <= max else {
            windows.subtract(bytes, ordering: .relaxed)
            return false
        }
        return true
    }

    /// Subtracts a window of `bytes`.
    func releaseWindow(_ bytes: Int) {
        windows.subtract(bytes, ordering: .relaxed)
    }

    /// Releases reserved bytes.
    package func release(_ bytes: Int) {
        let left = used.subtract(bytes, ordering: .relaxed).newValue
        assert(left >= 0, "released more than was reserved: \(left)")
    }

    /// Attributes `bytes` of the reserved bytes to fetches in progress; fewer, if negative.
    package func addFetchBytes(_ bytes: Int) {
        fetching.add(bytes, ordering: .relaxed)
    }

    /// Attributes `bytes` of the reserved bytes to indexed entries; fewer, if negative.
    ///
    /// `overheadBytes` of them are not bodies.
    func addIndexedBytes(_ bytes: Int, overheadBytes: Int) {
        indexed.add(bytes, ordering: .relaxed)
        overhead.add(overheadBytes, ordering: .relaxed)
    }
}

extension Atomic<Int> {
    /// Adds `amount` if the sum is at most `limit`; otherwise adds nothing and returns false.
    func add(_ amount: Int, ifAtMost limit: Int) -> Bool {
        var current = load(ordering: .relaxed)
        while amount <= limit - current {
            let (exchanged, original) = weakCompareExchange(
                expected: current, desired: current + amount, ordering: .relaxed)
            if exchanged { return true }
            current = original
        }
        return false
    }
}

/// The part of the memory limit that one fetch holds before its bytes belong to an entry.
///
/// Not thread-safe; the rest is released when the object is freed.
package final class FetchReservation {
    private let store: MemoryStore
    /// The keyed hash of the entry's key, for admission by value; `nil` if space is made regardless
    /// of what is evicted.
    package var admissionHash: UInt64?
    /// Bytes reserved and neither transferred nor released.
    package private(set) var reservedBytes = 0
    /// Bytes of opened windows.
    private var windowBytes = 0

    /// Creates an empty reservation in `store`.
    package init(_ store: MemoryStore) {
        self.store = store
    }

    deinit {
        closeWindow()
        release(reservedBytes)
    }

    /// Reserves `bytes` more, evicting for them.
    ///
    /// - Returns: false, with nothing reserved, if there is no space, or if the bytes held so far
    ///   and these are worth less than what would be evicted.
    package func grow(by bytes: Int) -> Bool {
        let newcomer = admissionHash.map {
            MemoryStore.AdmissionCandidate(hash: $0, bytes: reservedBytes + bytes)
        }
        guard store.reserve(bytes, candidate: newcomer) else { return false }
        store.account.addFetchBytes(bytes)
        reservedBytes += bytes
        return true
    }

    /// Reserves the window of a body that is not stored.
    ///
    /// - Parameters:
    ///   - large: the size in bytes if it fits in memory and windows use less than a quarter of the
    ///     limit. This way many such bodies do not evict the entries in memory.
    ///   - small: the size otherwise. It is granted even if memory is full, up to an eighth of the
    ///     limit in total, which bounds the excess over the limit.
    /// - Returns: the size of the window; `nil` if there are too many small ones.
    package func openWindow(large: Int, small: Int) -> Int? {
        admissionHash = nil
        let account = store.account
        if account.reserveWindow(large, max: account.limitBytes / 4) {
            windowBytes += large
            if grow(by: large) { return large }
            closeWindow()
        }
        guard account.reserveWindow(small, max: account.limitBytes / 4 + account.limitBytes / 8)
        else { return nil }
        windowBytes += small
        _ = grow(by: small)
        return small
    }

    /// Subtracts the windows from the total of all fetches; their bytes stay reserved.
    private func closeWindow() {
        store.account.releaseWindow(windowBytes)
        windowBytes = 0
    }

    /// Transfers `bytes` of the reservation to a `StoredBody` or a `MemoryEntry`, which releases
    /// them itself.
    package func transfer(_ bytes: Int) {
        precondition(bytes <= reservedBytes, "hands over \(bytes) of \(reservedBytes)")
        store.account.addFetchBytes(-bytes)
        reservedBytes -= bytes
    }

    /// Releases `bytes` of the reservation.
    package func release(_ bytes: Int) {
        transfer(bytes)
        store.account.release(bytes)
    }
}
