import Synchronization

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
