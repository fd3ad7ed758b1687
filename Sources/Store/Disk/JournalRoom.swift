import Tiers

/// What of a node's disk limit its invalidation log has.
package struct JournalSpace: Hashable, Sendable {
    /// The most bytes of its files.
    package let bytesMax: Int
    /// About how many bytes one file has.
    package let fileBytes: Int
    /// The most bytes that each file has beyond what is written in it.
    let preallocatedBytes: Int

    /// There is no log.
    package static let none = JournalSpace(bytesMax: 0)

    /// A 32nd of the limit, for there are to be a million records or those of a day; more than that
    /// takes is of no use.
    package init(limitBytes: UInt64) {
        self.init(
            bytesMax: max(Self.bytesMin, Int(min(limitBytes / 32, 768 << 20)) / 65_536 * 65_536))
    }

    private init(bytesMax: Int) {
        self.bytesMax = bytesMax
        fileBytes = max(bytesMax / 16, min(bytesMax / 8, 32 << 20))
        preallocatedBytes = max(4_096, min(fileBytes / 4, 32 << 10))
    }

    private static let bytesMin = 256 << 10
    /// What a file system takes for files beside what is written in them: twice as many as fit, for
    /// some wait to be deleted, and the one that says which member the node is.
    private var overheadBytes: Int { 33 * ((8 << 10) + preallocatedBytes) }

    /// So many marks the journal keeps when the records are gone that named them: what one of its
    /// files holds, for each begins with all of them, and no more than some 40 MiB of memory hold.
    package var marksMax: Int { min(fileBytes / (MarkTable.markBytes + 4), 1 << 19) }

    /// All that it takes of the limit.
    package var bytes: UInt64 { bytesMax == 0 ? 0 : UInt64(bytesMax + overheadBytes) }

    /// What the least limit has for it.
    package static let minimum = JournalSpace(limitBytes: 0)
}
