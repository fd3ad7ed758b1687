import Glibc
import Synchronization

/// What readers know of one segment: its file and the use that it is put to.
///
/// A reader takes the use, reads, and looks whether it is still the same: if so, nothing was
/// overwritten meanwhile, because the writer ends the use before it writes over it. So nobody waits
/// for a reader, except that the writer does for one that is handing the file's pages to a socket:
/// those cannot be taken back.
package final class SegmentSlot: Sendable {
    /// A segment from one opening to the next.
    package struct Generation: Sendable {
        package let file: any VolumeFile
        package let salt: UInt64
        /// Never the same for two uses.
        package let sequence: UInt64
    }

    private struct State {
        var generation: Generation?
        /// Those who are sending from the file, of which the page cache had all a moment ago.
        var senders = 0
    }

    private let state = Mutex(State())

    init() {}

    /// The present use; nil if there is nothing to be read.
    package var current: Generation? { state.withLock { $0.generation } }

    func beginGeneration(_ new: Generation) {
        state.withLock { $0.generation = new }
    }

    /// Returns when nobody is sending from the file any more.
    func endGeneration() {
        state.withLock { $0.generation = nil }
        while state.withLock({ $0.senders > 0 }) { sched_yield() }
    }

    /// True if the segment is still put to this use.
    func isCurrent(_ former: Generation) -> Bool {
        state.withLock { $0.generation?.sequence == former.sequence }
    }

    /// What `send` gives, during which the use does not end; nil if it has ended.
    func withGeneration(_ former: Generation, _ send: () -> Int) -> Int? {
        let isStill = state.withLock { state in
            guard state.generation?.sequence == former.sequence else { return false }
            state.senders += 1
            return true
        }
        guard isStill else { return nil }
        defer { state.withLock { $0.senders -= 1 } }
        return send()
    }
}
