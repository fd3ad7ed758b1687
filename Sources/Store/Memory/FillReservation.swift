/// The part of the memory limit that one fetch holds before its bytes belong to an entry.
///
/// Not thread-safe; whatever it still holds at its end goes back.
package final class FillReservation {
    private let store: MemoryStore
    /// Bytes reserved and neither handed over nor given back.
    package private(set) var heldBytes = 0

    package init(_ store: MemoryStore) {
        self.store = store
    }

    deinit {
        giveBack(heldBytes)
    }

    /// Reserves `bytes` more, evicting for them; false, with nothing changed, if there can be no
    /// room.
    package func grow(by bytes: Int) -> Bool {
        guard store.reserve(bytes) else { return false }
        store.account.countFilling(bytes)
        heldBytes += bytes
        return true
    }

    /// The same for the window of a body that is not kept: false also if the fetches under way would
    /// hold more than one `part`th of the limit, so that a storm of them leaves entries in memory.
    package func growWindow(by bytes: Int, part: Int) -> Bool {
        guard store.account.fillingBytes + bytes <= store.account.limitBytes / part else {
            return false
        }
        return grow(by: bytes)
    }

    /// `bytes` of it now belong to a `Body` or a `Resident`, which gives them back itself.
    package func handOver(_ bytes: Int) {
        precondition(bytes <= heldBytes, "hands over \(bytes) of \(heldBytes)")
        store.account.countFilling(-bytes)
        heldBytes -= bytes
    }

    package func giveBack(_ bytes: Int) {
        handOver(bytes)
        store.account.release(bytes)
    }
}
