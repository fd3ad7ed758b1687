import Ground

/// What the journal wants done with its files, in this order, each before the next.
package enum JournalEffect: Hashable, Sendable {
    /// An empty file of this number; one that is there is not the journal's any more.
    case create(UInt64)
    case append(UInt64, [UInt8])
    /// What was appended to the file, and its name, survive a power failure from here on.
    case sync(UInt64)
    /// The file counts no more. That it is not there, cannot be deleted, or comes back, does no
    /// harm.
    case delete(UInt64)
    /// Files that were deleted do not come back after a power failure from here on.
    case syncDirectory
}

extension Journal {
    /// The limits of a journal.
    package struct Settings: Hashable, Sendable {
        /// About how many bytes of items are written to one file.
        package var fileBytesMax = 8 << 20
        /// The most bytes of all files.
        ///
        /// Above twice what the log may hold, and what may wait to be synced: a file is deleted
        /// when nothing in it counts, and after a start records are not dropped in the order in
        /// which they were written.
        package var bytesMax = 768 << 20

        package init() {}

        package init(fileBytesMax: Int, bytesMax: Int) {
            self.fileBytesMax = fileBytesMax
            self.bytesMax = bytesMax
        }

        /// When so few bytes are left the log is to give up records.
        var reserveBytes: Int { max(bytesMax / 8, 4 * fileBytesMax) }
    }
}

/// A file of the journal, as far as it counts.
struct JournalFile: Hashable, Sendable {
    let number: UInt64
    /// Bytes that are synced and count.
    var end: Int
    /// The most bytes that the file may have: what lies behind ``end`` does not count.
    var bytesCount: Int
    /// The greatest record of each stream in it, without those that did not count when they were
    /// read.
    var lastPositions = PositionVector()
    /// The greatest that anything in it bears.
    var latestVersion = InvalidationVersion.zero

    var endPosition: JournalPosition { JournalPosition(file: number, offset: UInt64(end)) }

    mutating func include(_ name: RecordID) { lastPositions.merge(name.position) }

    mutating func raiseLatestVersion(_ version: InvalidationVersion) {
        latestVersion = max(latestVersion, version)
    }

    /// What of it counts, by process; empty if it may be deleted.
    func livePositions(_ state: JournalState) -> [StreamPosition] {
        let last = JournalPosition(file: number, offset: .max)
        return lastPositions.positions {
            !state.isObsolete(RecordID(stream: $0.process, number: $0.count), at: last)
        }
    }
}
