import Synchronization
import Tiers

// Eviction; `Tiers.MemoryAdmission` has the rules.
extension MemoryStore {
    /// A response to be admitted, as far as it is known.
    package struct AdmissionCandidate {
        /// The keyed hash of its key.
        let hash: UInt64
        /// Bytes of memory that it uses, or will use.
        let bytes: Int
    }

    /// Maximum number of entries in use that are skipped before one is evicted anyway, or the
    /// reservation fails.
    static let skippedMax = 64
    /// Maximum bytes of removed entries that readers may hold: a quarter of the limit (Design,
    /// "Memory tier").
    private var pinnedBytesMax: Int { account.limitBytes / 4 }

    /// True while at least an eighth of each limit is unused.
    package var hasSpareCapacity: Bool {
        let most = entriesMax.load(ordering: .relaxed)
        return (most == 0 || count < most - most / 8 - 1)
            && account.usedBytes < account.limitBytes - account.limitBytes / 8
    }

    /// Reserves `bytes`, evicting as many entries as necessary.
    ///
    /// - Parameters:
    ///   - bytes: the bytes to reserve. The caller owns the reservation and transfers it to a
    ///     `StoredBody` or `MemoryEntry`, or releases it.
    ///   - newcomer: the response to be admitted; `nil` if the space is needed regardless of what
    ///     is evicted.
    /// - Returns: false, with nothing reserved, if there is no space, or if `newcomer` is worth
    ///   less than what would be evicted.
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

    /// Returns the maximum value of entries that may be evicted for this one.
    private func gain(of newcomer: AdmissionCandidate?) -> UInt64 {
        guard let newcomer,
            MemoryAdmission.isSubjectToAdmission(newcomer.bytes, limitBytes: account.limitBytes)
        else { return .max }
        return shard(newcomer.hash).state.withLock {
            $0.gain(newcomer.hash, bytes: newcomer.bytes)
        }
    }

    /// Removes the least valuable entry of the tier, if it is worth no more than `maxGain`.
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

// Limits that change while the tier is in use.
//
// A lower limit is applied in small steps, and the tier is evicted down to each before the next. So
// a loop that reserves space for a fetch meanwhile evicts no more than one step.
extension MemoryStore {
    /// Bytes by which a limit is lowered in one step.
    private static let stepBytes = 256 << 10
    /// Entries by which a limit is lowered in one step.
    private static let stepEntries = 256

    /// The configured limit in bytes; the one in force is the account's.
    package var configuredBytes: Int { configuredLimit.load(ordering: .relaxed) }

    /// Applies new configured limits: bytes, and entries (0 for no limit).
    ///
    /// Returns once the tier meets them, except for entries that are still being read. Blocks; not
    /// for an event loop.
    package func applyLimits(limitBytes: Int, entriesMax: Int) {
        pressureLimit.withLock { pressureLimit in
            configuredLimit.store(limitBytes, ordering: .relaxed)
            lowerBytes(to: min(limitBytes, pressureLimit ?? .max), for: .limitLowered)
            lowerEntries(to: entriesMax)
        }
    }

    /// Sets a limit in bytes below the configured one; `nil` removes it.
    ///
    /// Returns once the tier meets it, except for entries that are still being read. Blocks; not
    /// for an event loop.
    package func setPressureLimit(bytes pressedBytes: Int?) {
        pressureLimit.withLock { pressureLimit in
            guard pressedBytes != pressureLimit else { return }
            pressureLimit = pressedBytes
            lowerBytes(to: min(configuredBytes, pressedBytes ?? .max), for: .pressure)
        }
    }

    /// Sets the limit in bytes; a lower one in steps, evicting down to each.
    private func lowerBytes(to target: Int, for reason: EvictionCounters.Reason) {
        var hasMore = true
        while hasMore, account.limitBytes > target, account.usedBytes > target {
            let step = min(account.limitBytes, account.usedBytes) - Self.stepBytes
            account.setLimit(max(target, step))
            while hasMore, account.usedBytes > account.limitBytes {
                hasMore = evictOneNotInUse(for: reason)
            }
        }
        account.setLimit(target)
    }

    /// Sets the maximum number of entries, 0 for no limit; a lower one in steps, evicting down to
    /// each.
    private func lowerEntries(to target: Int) {
        var hasMore = true
        while hasMore, target > 0, count > target {
            entriesMax.store(max(target, count - Self.stepEntries), ordering: .relaxed)
            while hasMore, count > entriesMax.load(ordering: .relaxed) {
                hasMore = evictOne(for: .limitLowered, skipsEntriesInUse: false).isEvicted
            }
        }
        entriesMax.store(target, ordering: .relaxed)
    }

    /// Evicts one entry, which is in use only if no other is found soon; false if there is no entry
    /// at all.
    private func evictOneNotInUse(for reason: EvictionCounters.Reason) -> Bool {
        for _ in 0..<Self.skippedMax {
            switch evictOne(for: reason, skipsEntriesInUse: true) {
            case .evicted: return true
            case .empty, .allAboveMaxGain: return false
            case .skippedInUse: continue
            }
        }
        return evictOne(for: reason, skipsEntriesInUse: false).isEvicted
    }
}

/// Numbers of entries removed from memory since the start, by reason; thread-safe.
package final class EvictionCounters: Sendable {
    /// The reason of a removal.
    package enum Reason: Int, CaseIterable, Sendable {
        /// The limit on bytes was reached.
        case byteLimit
        /// The limit on entries was reached.
        case entryLimit
        /// The share of the entry's site was used up.
        case share
        /// A limit was lowered by a change of the configuration.
        case limitLowered
        /// The process had to use less memory.
        case pressure
        /// The entry was invalidated, and could not stay as a stale one.
        case purged
    }

    private let counts = InlineArray<6, Atomic<UInt64>> { _ in Atomic(0) }

    /// Creates counters at 0.
    package init() {
        precondition(Reason.allCases.count == 6)
    }

    func add(_ reason: Reason) {
        counts[reason.rawValue].wrappingAdd(1, ordering: .relaxed)
    }

    /// The number of removals for a reason.
    package subscript(reason: Reason) -> UInt64 {
        counts[reason.rawValue].load(ordering: .relaxed)
    }
}
