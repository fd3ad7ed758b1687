/// Names a segment of the disk's log: 0 up to the number of segments that the cap allows.
package struct SegmentID: Hashable, Sendable {
    package var index: UInt32

    package init(index: UInt32) {
        self.index = index
    }
}

/// The two queues that the log's segments belong to, each first in, first out.
///
/// The raw values are for segment headers.
package enum SegmentQueue: UInt8, CaseIterable, Sendable {
    /// Newcomers, a tenth of the log.
    case small = 0
    /// What was asked for again while it was in the small queue or soon after, and all that is
    /// re-inserted.
    case main = 1
}
