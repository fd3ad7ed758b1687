package import Ground
import Tiers

/// The memory tier and the disk tier of a node, with the invalidation marks that both obey.
package struct CacheTiers: Sendable {
    /// The memory tier, which also holds the marks.
    package let memory: MemoryStore
    /// The disk tier; `nil` without a disk cache.
    package let disk: DiskStore?

    /// Creates the pair; `disk` must have been created with the marks of `memory`.
    package init(memory: MemoryStore, disk: DiskStore?) {
        self.memory = memory
        self.disk = disk
    }

    /// The index of marks, against which entries are checked.
    package var marks: InvalidationIndex { memory.marks }

    /// Invalidates what a purge covers, in memory, on disk and among the fetches in progress.
    ///
    /// - Parameters:
    ///   - targets: the invalidated targets; an empty list only advances the invalidation version.
    ///   - isSoft: true to make responses stale instead of removing them.
    ///   - now: the clock.
    /// - Returns: the version of the invalidation.
    package func invalidate(
        _ targets: [PurgeTarget], isSoft: Bool, now: @escaping @Sendable () -> Instant
    ) -> InvalidationVersion {
        let version = marks.apply(targets, isSoft: isSoft, now: now())
        if marks.needsPruning { disk?.pruneUnmatchedMarks(now: now) }
        for case .url(let name) in targets {
            for key in URLName.keys(of: name) { memory.applyMarksForKey(key) }
        }
        return version
    }

    /// Makes every entry stale since ever, because the set of invalidations is no longer known:
    /// none is served before it is revalidated, not even as a stale response.
    ///
    /// - Returns: the version of the invalidation.
    package func invalidateEverything() -> InvalidationVersion {
        marks.apply([.everything], isSoft: true, now: nil)
    }

    /// Advances the search for marks that can be dropped, on a node without a disk tier, which does
    /// it otherwise.
    ///
    /// - Returns: the number of marks folded since the last call because there were too many; 0
    ///   with a disk tier.
    package func reclaimMarks() -> Int {
        guard disk == nil else { return 0 }
        marks.pruneMarks(leastVersionOnDisk: { .last }, fingerprintsOnDisk: { _ in [] })
        return marks.takeFoldedCount()
    }
}
