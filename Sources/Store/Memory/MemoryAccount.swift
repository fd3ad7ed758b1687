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

/// The part of the memory limit that one fetch holds before its bytes belong to an entry.
///
/// Not thread-safe; whatever it still holds at its end goes back.
package final class FetchReservation {
    private let store: MemoryStore
    /// The keyed hash of the key whose entry it is for; nil if room is made whatever goes for it.
    package var admissionHash: UInt64?
    /// Bytes reserved and neither handed over nor given back.
    package private(set) var reservedBytes = 0
    /// Of windows opened.
    private var windowBytes = 0

    package init(_ store: MemoryStore) {
        self.store = store
    }

    deinit {
        closeWindow()
        release(reservedBytes)
    }

    /// Reserves `bytes` more, evicting for them; false, with nothing reserved, if there can be no
    /// room, or if what is held so far, and these, are worth less than what would have to go.
    package func grow(by bytes: Int) -> Bool {
        let newcomer = admissionHash.map {
            MemoryStore.AdmissionCandidate(hash: $0, bytes: reservedBytes + bytes)
        }
        guard store.reserve(bytes, candidate: newcomer) else { return false }
        store.account.addFetchBytes(bytes)
        reservedBytes += bytes
        return true
    }

    /// Makes room for the window of a body that is not kept: `large` if there is room in memory and
    /// windows take less than a quarter of it, otherwise `small`; gives its size, nil if even of
    /// small ones there are too many.
    ///
    /// A storm of such bodies leaves the entries in memory by that. A small window is there also
    /// where every byte is taken; of those not more than an eighth of the limit, which is all that
    /// may be held beyond it.
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

    private func closeWindow() {
        store.account.releaseWindow(windowBytes)
        windowBytes = 0
    }

    /// `bytes` of it now belong to a `StoredBody` or a `MemoryEntry`, which gives them back itself.
    package func transfer(_ bytes: Int) {
        precondition(bytes <= reservedBytes, "hands over \(bytes) of \(reservedBytes)")
        store.account.addFetchBytes(-bytes)
        reservedBytes -= bytes
    }

    package func release(_ bytes: Int) {
        transfer(bytes)
        store.account.release(bytes)
    }
}
