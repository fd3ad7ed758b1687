package import Ground

/// What ``SegmentAllocator`` knows of one segment.
package struct Segment: Hashable, Sendable {
    package enum State: UInt8, Sendable {
        /// Holds nothing, and its file may be cut to nothing. Next: open.
        case free
        /// Takes records. Next: closed.
        case open
        /// Holds records, takes no more. Next: reclaiming.
        case closed
        /// Its records are being re-inserted or dropped. Next: free.
        case reclaiming
    }

    package internal(set) var state = State.free
    /// Which queue it belongs to; without meaning while free.
    package internal(set) var queue = SegmentQueue.small
    /// Greater than that of any segment opened before; 0 while free.
    package internal(set) var sequence: UInt64 = 0
    /// Bytes taken by records and their footer entries; at most ``SegmentAllocator/Settings/room``.
    package internal(set) var usedBytes = 0
    /// Records appended, alive or not.
    package internal(set) var recordCount = 0
    /// Those of ``usedBytes`` whose entries are not known to be gone.
    package internal(set) var liveBytes = 0
    /// The least stamp of its records; nil if it has none.
    package var leastVersion: InvalidationVersion?

    package init() {}

    /// A closed segment as recovery finds it.
    ///
    /// `usedBytes` and `liveBytes` count records with their footer entries.
    package init(
        closedIn queue: SegmentQueue, sequence: UInt64, usedBytes: Int, recordCount: Int,
        liveBytes: Int, leastVersion: InvalidationVersion?
    ) {
        state = .closed
        self.queue = queue
        self.sequence = sequence
        self.usedBytes = usedBytes
        self.recordCount = recordCount
        self.liveBytes = liveBytes
        self.leastVersion = leastVersion
    }

    /// Of a recovered segment, so many bytes are an entry's; never more than are used.
    package mutating func setLiveBytes(_ bytes: Int) {
        liveBytes = min(bytes, usedBytes)
    }

    mutating func append(_ bytes: Int, _ version: InvalidationVersion) {
        usedBytes += bytes
        liveBytes += bytes
        recordCount += 1
        leastVersion = leastVersion.map { min($0, version) } ?? version
    }
}
