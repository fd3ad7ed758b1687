import Glibc
import Ground
import Synchronization
package import Tiers

/// The segment files of a node's directory: their names, and their recovery.
package enum SegmentFiles {
    private static let prefix = "segment-"

    /// Returns the name of segment file `number`.
    package static func name(_ number: Int) -> String {
        let digits = String(number)
        return prefix + String(repeating: "0", count: max(0, 5 - digits.count)) + digits
    }

    /// Returns the number in a segment file's name; `nil` for another file.
    package static func number(_ name: String) -> Int? {
        guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)),
            number >= 0, self.name(number) == name
        else { return nil }
        return number
    }

    /// Returns the numbers of all segment files, in ascending order.
    static func numbers(in volume: any DiskVolume) throws(DiskFile.Failure) -> [Int] {
        try volume.names().compactMap(number).sorted()
    }

    /// Opens all segment files, in ascending order of their numbers.
    ///
    /// A file that cannot be opened is omitted; the error is reported when it is to be written.
    package static func files(
        in volume: any DiskVolume
    ) throws(DiskFile.Failure) -> [(number: Int, file: any VolumeFile)] {
        try numbers(in: volume).compactMap { number in
            (try? volume.open(name(number), creates: false)).map { (number, $0) }
        }
    }

    /// Recovers the records of one file for the node with this identity, from its footer or by a
    /// scan.
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

/// The current use of one segment, as readers see it.
///
/// A reader takes the generation, reads, and checks that the generation is still current: the
/// writer ends it before it overwrites the file, so what was read is intact. Readers are not waited
/// for, with one exception: the writer waits while a reader sends the file's pages to a socket,
/// because those cannot be recalled. Thread-safe.
package final class SegmentSlot: Sendable {
    /// The use of a segment from one opening to the next.
    package struct Generation: Sendable {
        /// The segment's file.
        package let file: any VolumeFile
        /// The salt of the checksums of the generation's records.
        package let salt: UInt64
        /// The sequence number of the segment; unique to the generation.
        package let sequence: UInt64
    }

    private struct State {
        var generation: Generation?
        /// Readers that are sending from the file, whose data was in the page cache shortly before.
        var senders = 0
    }

    private let state = Mutex(State())

    init() {}

    /// The current generation; `nil` if the segment has nothing to read.
    package var current: Generation? { state.withLock { $0.generation } }

    /// Starts a generation, which readers use from now on.
    func beginGeneration(_ new: Generation) {
        state.withLock { $0.generation = new }
    }

    /// Ends the generation; returns once no reader is sending from the file.
    func endGeneration() {
        state.withLock { $0.generation = nil }
        while state.withLock({ $0.senders > 0 }) { sched_yield() }
    }

    /// Returns true if the generation is still current.
    func isCurrent(_ former: Generation) -> Bool {
        state.withLock { $0.generation?.sequence == former.sequence }
    }

    /// Runs `send`, during which the generation does not end; `nil` if it has ended already.
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

/// A segment that is open for records.
///
/// A class, so that its entries are never copied.
final class OpenSegment {
    let id: SegmentID
    let header: SegmentHeader
    let file: any VolumeFile
    /// Footer entries in the order in which the records were written.
    var entries: [SegmentFooter.Entry] = []
    /// The offset of the end of the last record.
    var recordsEnd = UInt64(DiskFormat.headerBytes)
    /// Forgotten entries with a record in a segment of the other queue that was opened after this
    /// one.
    var entriesInLaterSegments: Set<EntryDigest> = []

    init(id: SegmentID, header: SegmentHeader, file: any VolumeFile) {
        self.id = id
        self.header = header
        self.file = file
    }
}
