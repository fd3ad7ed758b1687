import Synchronization

/// Limits that change while the tier is in use.
///
/// A lower limit is reached in small steps, each of which the tier is evicted down to before the
/// next. So a loop that makes room for a fetch meanwhile finds no more to evict than a step.
extension MemoryStore {
    struct Limits: Sendable {
        var configuredBytes: Int
        /// Nil without memory pressure.
        var pressedBytes: Int?

        var bytes: Int { min(configuredBytes, pressedBytes ?? .max) }
    }

    /// Bytes by which a limit is lowered at once, and entries.
    private static let stepBytes = 256 << 10
    private static let stepEntries = 256

    /// The limit on bytes as configured; what holds now is the account's.
    package var configuredBytes: Int { configured.load(ordering: .relaxed) }

    /// Puts new limits in the place of those of the start: bytes, and entries (0 for no limit).
    ///
    /// Returns when the tier keeps them, but for what is still being read. Not to be called on an
    /// event loop.
    package func adopt(limitBytes: Int, entriesMax: Int) {
        limits.withLock { limits in
            limits.configuredBytes = limitBytes
            configured.store(limitBytes, ordering: .relaxed)
            lowerBytes(to: limits.bytes, for: .limit)
            lowerEntries(to: entriesMax)
        }
    }

    /// Holds less than the configured limit on bytes, or with nil no less any more.
    ///
    /// Returns when the tier keeps it, but for what is still being read. Not to be called on an
    /// event loop.
    package func press(toBytes pressedBytes: Int?) {
        limits.withLock { limits in
            guard pressedBytes != limits.pressedBytes else { return }
            limits.pressedBytes = pressedBytes
            lowerBytes(to: limits.bytes, for: .pressure)
        }
    }

    private func lowerBytes(to target: Int, for reason: EvictionFigures.Reason) {
        var hasMore = true
        while hasMore, account.limitBytes > target, account.usedBytes > target {
            let step = min(account.limitBytes, account.usedBytes) - Self.stepBytes
            account.setLimit(max(target, step))
            while hasMore, account.usedBytes > account.limitBytes {
                hasMore = evictSparingly(for: reason)
            }
        }
        account.setLimit(target)
    }

    private func lowerEntries(to target: Int) {
        var hasMore = true
        while hasMore, target > 0, count > target {
            entriesMax.store(max(target, count - Self.stepEntries), ordering: .relaxed)
            while hasMore, count > entriesMax.load(ordering: .relaxed) {
                hasMore = evictOne(for: .limit, sparesReaders: false).isEvicted
            }
        }
        entriesMax.store(target, ordering: .relaxed)
    }

    /// Evicts one entry that nobody reads, if one is soon found; false if there is none at all.
    private func evictSparingly(for reason: EvictionFigures.Reason) -> Bool {
        for _ in 0..<Self.sparedMax {
            switch evictOne(for: reason, sparesReaders: true) {
            case .evicted: return true
            case .empty, .dearer: return false
            case .spared: continue
            }
        }
        return evictOne(for: reason, sparesReaders: false).isEvicted
    }
}
