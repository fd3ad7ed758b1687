import Glibc
import Ground
import Synchronization
package import Tiers

/// The segment files of a node's directory: what they are called, and what a start finds in them.
package enum SegmentFiles {
    private static let prefix = "segment-"

    /// The name of file `number`.
    package static func name(_ number: Int) -> String {
        let digits = String(number)
        return prefix + String(repeating: "0", count: max(0, 5 - digits.count)) + digits
    }

    /// The number that a file's name gives; nil for another file.
    package static func number(_ name: String) -> Int? {
        guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)),
            number >= 0, self.name(number) == name
        else { return nil }
        return number
    }

    /// The numbers of all segment files, in order.
    static func numbers(in volume: any DiskVolume) throws(DiskFile.Failure) -> [Int] {
        try volume.names().compactMap(number).sorted()
    }

    /// The segment files in the order of their numbers.
    ///
    /// One that cannot be opened is left out: it says so when it is to be written to.
    package static func files(
        in volume: any DiskVolume
    ) throws(DiskFile.Failure) -> [(number: Int, file: any VolumeFile)] {
        try numbers(in: volume).compactMap { number in
            (try? volume.open(name(number), creates: false)).map { (number, $0) }
        }
    }

    /// What one file holds for the node with this identity: by its footer, or read from one end to
    /// the other.
    package static func recover(
        _ file: any VolumeFile, _ identity: NodeIdentity
    ) -> SegmentRecovery.Outcome {
        var recovery = SegmentRecovery(
            nodeID: identity.nodeID, segmentBytes: identity.segmentBytes)
        while let part = recovery.nextRead {
            if let bytes = try? file.read(part.bytes, at: part.offset) {
                recovery.bytesRead(bytes.span)
            } else {
                recovery.readFailed()
            }
        }
        guard let outcome = recovery.outcome else {
            preconditionFailure("a recovery that wants nothing has no outcome")
        }
        return outcome
    }
}

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

/// A segment that takes records.
///
/// An object, so that nothing copies its entries.
final class OpenSegment {
    let id: SegmentID
    let header: SegmentHeader
    let file: any VolumeFile
    /// In the order in which they were written.
    var entries: [SegmentFooter.Entry] = []
    var recordsEnd = UInt64(DiskFormat.headerBytes)

    init(id: SegmentID, header: SegmentHeader, file: any VolumeFile) {
        self.id = id
        self.header = header
        self.file = file
    }
}
