import Synchronization

/// What the disk tier counts, from all its threads.
package final class DiskCounters: Sendable {
    package enum DiskCounter: Int, CaseIterable, Sendable {
        /// Records of new answers, and what they take with heads and rounding.
        case admittedRecords
        case admittedBytes
        /// Everything written: records, those written again, headers, footers, marks.
        case writtenBytes
        /// Answers that were not kept because as many wait to be written as may.
        case queueOverflowRecords
        /// Answers that were not kept because the disk has a fault, they were purged or are larger
        /// than a segment, or their site may not take so much.
        case droppedRecords
        /// Records written again when their segment was reclaimed.
        case reinsertedRecords
        /// Entries given up for want of room, and because nobody asked for them in time.
        case evictedEntries
        case expiredEntries
        /// Records that could not be read or did not check.
        case lostRecords
        /// Those of them whose bytes are what was written, and of which no answer can be made.
        case invalidRecords
        case reclaims
        /// Records read from the page cache on an event loop, and by a disk thread.
        case nonblockingReads
        case threadReads
        case readBytes
        /// Entries whose accesses were taken over into the index, and those for which the writer
        /// was too far behind.
        case touchesApplied
        case touchesDropped
        /// Syncs of the journal.
        case journalSyncs
        /// Calls of the system that failed.
        case failures
    }

    private let values: [Counter]

    private final class Counter: Sendable {
        let value = Atomic<Int>(0)
    }

    package init() {
        values = DiskCounter.allCases.map { _ in Counter() }
    }

    package func add(_ figure: DiskCounter, _ count: Int = 1) {
        values[figure.rawValue].value.add(count, ordering: .relaxed)
    }

    package subscript(figure: DiskCounter) -> Int {
        values[figure.rawValue].value.load(ordering: .relaxed)
    }
}
