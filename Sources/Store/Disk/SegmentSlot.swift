import Synchronization

/// What readers know of one segment: its file and the use that it is put to.
///
/// A reader takes the use, reads, and looks whether it is still the same: if so, nothing was
/// overwritten meanwhile, because the writer ends the use before it writes over it. So nobody ever
/// waits for a reader.
package final class SegmentSlot: Sendable {
    /// A segment from one opening to the next.
    package struct Use: Sendable {
        package let file: any VolumeFile
        package let salt: UInt64
        /// Never the same for two uses.
        package let sequence: UInt64
    }

    private let use = Mutex<Use?>(nil)

    init() {}

    /// The present use; nil if there is nothing to be read.
    package var current: Use? { use.withLock { $0 } }

    func begin(_ new: Use) {
        use.withLock { $0 = new }
    }

    func end() {
        use.withLock { $0 = nil }
    }

    /// True if the segment is still put to this use.
    func isStill(_ former: Use) -> Bool {
        use.withLock { $0?.sequence == former.sequence }
    }
}
