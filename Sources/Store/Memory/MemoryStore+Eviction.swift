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

/// Limits that change while the tier is in use.
///
/// A lower limit is reached in small steps, each of which the tier is evicted down to before the
/// next. So a loop that makes room for a fetch meanwhile finds no more to evict than a step.
extension MemoryStore {
    struct Limits: Sendable {
        var configuredBytes: Int
        /// Nil without memory pressure.
        var pressureLimitBytes: Int?

        var bytes: Int { min(configuredBytes, pressureLimitBytes ?? .max) }
    }

    /// Bytes by which a limit is lowered at once, and entries.
    private static let stepBytes = 256 << 10
    private static let stepEntries = 256

    /// The limit on bytes as configured; what holds now is the account's.
    package var configuredBytes: Int { configuredLimit.load(ordering: .relaxed) }

    /// Puts new limits in the place of those of the start: bytes, and entries (0 for no limit).
    ///
    /// Returns when the tier keeps them, but for what is still being read. Not to be called on an
    /// event loop.
    package func applyLimits(limitBytes: Int, entriesMax: Int) {
        limits.withLock { limits in
            limits.configuredBytes = limitBytes
            configuredLimit.store(limitBytes, ordering: .relaxed)
            lowerBytes(to: limits.bytes, for: .limitLowered)
            lowerEntries(to: entriesMax)
        }
    }

    /// Holds less than the configured limit on bytes, or with nil no less any more.
    ///
    /// Returns when the tier keeps it, but for what is still being read. Not to be called on an
    /// event loop.
    package func setPressureLimit(bytes pressedBytes: Int?) {
        limits.withLock { limits in
            guard pressedBytes != limits.pressureLimitBytes else { return }
            limits.pressureLimitBytes = pressedBytes
            lowerBytes(to: limits.bytes, for: .pressure)
        }
    }

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

    /// Evicts one entry that nobody reads, if one is soon found; false if there is none at all.
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
