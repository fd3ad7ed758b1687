import Synchronization
import Tiers

/// How room is made; `Tiers.MemoryAdmission` has the rules.
extension MemoryStore {
    /// An entry that is to get in, as far as it is known.
    package struct AdmissionCandidate: Hashable, Sendable {
        /// The keyed hash of its key.
        package var hash: UInt64
        /// Bytes of memory that it has, or is to have.
        package var bytes: Int

        package init(hash: UInt64, bytes: Int) {
            self.hash = hash
            self.bytes = bytes
        }
    }

    /// Entries put back because of their readers before one is evicted anyway, or it is admitted
    /// that there is no room.
    static let skippedMax = 64
    /// Of entries that are being read, at most a quarter of the limit may be outside the index
    /// (DESIGN.md §6).
    private var pinnedBytesMax: Int { account.limitBytes / 4 }

    /// True while an eighth of the limits, or more, is taken by nothing.
    package var hasSpareCapacity: Bool {
        let most = entriesMax.load(ordering: .relaxed)
        return (most == 0 || count < most - most / 8 - 1)
            && account.usedBytes < account.limitBytes - account.limitBytes / 8
    }

    /// Reserves `bytes`, evicting as much as that takes; false, with nothing taken, if there can be
    /// no room, or if `newcomer` is worth less than what would have to go.
    ///
    /// With nil the room is needed, whatever goes for it. The caller owns the reservation and hands
    /// it on to a `StoredBody` or `MemoryEntry`, or releases it.
    package func reserve(_ bytes: Int, candidate newcomer: AdmissionCandidate? = nil) -> Bool {
        guard bytes <= account.limitBytes else { return false }
        var spared = 0
        var gain: UInt64?
        while !account.reserve(bytes) {
            let worth = gain ?? self.gain(of: newcomer)
            gain = worth
            let outcome = evictOne(
                for: .byteLimit, skipsEntriesInUse: account.pinnedBytes > pinnedBytesMax,
                maxGain: worth)
            switch outcome {
            case .evicted: continue
            case .skippedInUse where spared < Self.skippedMax: spared += 1
            case .skippedInUse, .empty: return false
            case .allAboveMaxGain:
                if let newcomer {
                    shard(newcomer.hash).state.withLock { $0.recordRejection(newcomer.hash) }
                }
                return false
            }
        }
        return true
    }

    /// What an entry may be worth at most that goes for this one.
    private func gain(of newcomer: AdmissionCandidate?) -> UInt64 {
        guard let newcomer,
            MemoryAdmission.isSubjectToAdmission(newcomer.bytes, limitBytes: account.limitBytes)
        else { return .max }
        return shard(newcomer.hash).state.withLock {
            $0.gain(newcomer.hash, bytes: newcomer.bytes)
        }
    }

    /// Removes the entry that the tier can best do without, if it is worth no more than `worth`.
    func evictOne(
        for reason: EvictionCounters.Reason, skipsEntriesInUse: Bool, maxGain: UInt64 = .max
    ) -> MemoryShard.EvictionOutcome {
        let giver = MemoryAdmission.evictingShard(among: shards.count, bytes: account.indexedBytes)
        {
            let shard = shards[$0]
            return (
                shard.bytes.load(ordering: .relaxed), shard.inflation.load(ordering: .relaxed)
            )
        }
        guard let shard = giver.map({ shards[$0] }) else { return .empty }
        let eviction = shard.state.withLock { state in
            let eviction = state.evict(skipsEntriesInUse: skipsEntriesInUse, maxGain: maxGain)
            shard.inflation.store(state.inflation, ordering: .relaxed)
            return eviction
        }
        if case .evicted(let entry) = eviction {
            recordRemoval([entry])
            evictions.add(reason)
        }
        return eviction
    }
}
