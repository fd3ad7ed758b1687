import Ground

/// Shares of memory that sites have of their own.
extension MemoryStore {
    /// Entries that are left where they are because they were asked for, before one goes anyway.
    private static let keptMax = 256

    /// Counts an entry that is to get in among those of its site, others of which leave for it;
    /// false, with nothing counted, if there is no room.
    func takeShare(for resident: Resident) -> Bool {
        guard let share = resident.share else { return true }
        let bytes = resident.indexedBytes
        let limit = share.limitBytes(of: account.limitBytes)
        guard bytes <= limit else { return false }
        while !share.take(bytes, limit: limit) {
            guard evictOne(of: share) else { return false }
        }
        return true
    }

    /// The entry got in, or did not.
    func settleShare(of resident: Resident, isIn: Bool) {
        guard let share = resident.share else { return }
        guard isIn else { return share.giveBack(resident.indexedBytes) }
        let own = MemoryShare.Place(hash: resident.hash, entry: ObjectIdentifier(resident))
        // Half of the places are of no entry, so each costs one look at most. One that is like the
        // entry's own is of one that has left, or of this one before it did.
        var looks = share.placeCount
        while looks > 0, share.isLittered, let place = share.next() {
            looks -= 1
            if place.entry != own.entry, isThere(place) { share.lookAgain(at: place) }
        }
        share.entered(own)
    }

    /// Removes the entry of a site that it can best do without; false if there is none.
    private func evictOne(of share: MemoryShare) -> Bool {
        var kept = 0
        while let place = share.next() {
            switch turn(of: place, mayStay: kept < Self.keptMax) {
            case .gone: continue
            case .stays(let frequency):
                kept += 1
                share.lookAgain(
                    at: .init(hash: place.hash, entry: place.entry, frequency: frequency))
            case .evicted(let resident):
                leave(resident)
                return true
            }
        }
        return false
    }
}
