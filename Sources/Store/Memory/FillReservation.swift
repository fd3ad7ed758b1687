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
