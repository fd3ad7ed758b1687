import Synchronization

/// Counters of the disk tier since the start; thread-safe.
package final class DiskCounters: Sendable {
    /// A counter of the disk tier.
    package enum DiskCounter: Int, CaseIterable, Sendable {
        /// Records of new responses.
        case admittedRecords
        /// Bytes of new records, including heads and rounding.
        case admittedBytes
        /// Bytes written in total: records, reinserted records, headers, footers.
        case writtenBytes
        /// Responses dropped because the write queue was full.
        case queueOverflowRecords
        /// Responses dropped because the disk has a fault, because they were purged or exceed a
        /// segment, or because of their site's share.
        case droppedRecords
        /// Records written again when their segment was reclaimed.
        case reinsertedRecords
        /// Entries evicted for space.
        case evictedEntries
        /// Entries expired because they were not requested within the age limit.
        case expiredEntries
        /// Records that could not be read or failed a check.
        case lostRecords
        /// Lost records with a correct checksum that are not a valid response.
        case invalidRecords
        /// Segments reclaimed.
        case reclaims
        /// Records read from the page cache on an event loop.
        case nonblockingReads
        /// Records read by a disk thread.
        case threadReads
        /// Bytes read.
        case readBytes
        /// Entries whose accesses were applied to the index.
        case touchesApplied
        /// Entries whose accesses were dropped because the writer was too far behind.
        case touchesDropped
        /// Syncs of the journal.
        case journalSyncs
        /// System calls that failed.
        case failures
    }

    private let values: [Counter]

    private final class Counter: Sendable {
        let value = Atomic<Int>(0)
    }

    /// Creates counters at 0.
    package init() {
        values = DiskCounter.allCases.map { _ in Counter() }
    }

    /// Adds `count` to a counter.
    package func add(_ figure: DiskCounter, _ count: Int = 1) {
        values[figure.rawValue].value.add(count, ordering: .relaxed)
    }

    /// The value of a counter.
    package subscript(figure: DiskCounter) -> Int {
        values[figure.rawValue].value.load(ordering: .relaxed)
    }
}
