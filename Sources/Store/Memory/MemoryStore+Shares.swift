import Ground

/// Shares of memory that sites have of their own.
extension MemoryStore {
    /// Entries that are left where they are because they were asked for, before one goes anyway.
    private static let secondChancesMax = 256

    /// Counts an entry that is to get in among those of its site, others of which leave for it;
    /// false, with nothing counted, if there is no room.
    func reserveShare(for entry: MemoryEntry) -> Bool {
        guard let share = entry.share else { return true }
        let bytes = entry.indexedBytes
        let limit = share.limitBytes(of: account.limitBytes)
        guard bytes <= limit else { return false }
        while !share.reserve(bytes, limit: limit) {
            guard evictOne(of: share) else { return false }
        }
        return true
    }

    /// The entry got in, or did not.
    func commitShare(of entry: MemoryEntry, isInserted: Bool) {
        guard let share = entry.share else { return }
        guard isInserted else { return share.release(entry.indexedBytes) }
        let own = MemoryShare.ClockEntry(hash: entry.hash, entry: ObjectIdentifier(entry))
        // Half of the places are of no entry, so each costs one look at most. One that is like the
        // entry's own is of one that has left, or of this one before it did.
        var looks = share.queuedCount
        while looks > 0, share.needsCompaction, let place = share.popOldest() {
            looks -= 1
            if place.entry != own.entry, contains(place) { share.requeue(at: place) }
        }
        share.entryInserted(own)
    }

    /// Removes the entry of a site that it can best do without; false if there is none.
    private func evictOne(of share: MemoryShare) -> Bool {
        var kept = 0
        while let place = share.popOldest() {
            switch evictUnlessTouched(of: place, mayRetain: kept < Self.secondChancesMax) {
            case .absent: continue
            case .retained(let frequency):
                kept += 1
                share.requeue(
                    at: .init(hash: place.hash, entry: place.entry, frequency: frequency))
            case .evicted(let entry):
                recordShareEviction(entry)
                return true
            }
        }
        return false
    }
}
