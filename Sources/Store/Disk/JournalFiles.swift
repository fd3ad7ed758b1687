import Ground
import Tiers

/// The files of a node's invalidation log (the journal) in the node's directory: `journal-` and a
/// number.
///
/// Used by one thread at a time.
package final class JournalFiles {
    private let volume: any DiskVolume
    /// Granularity in bytes of the zeros written ahead in each file.
    private let preallocatedBytes: Int
    /// The file being written: `end` follows the appended data, `filledEnd` the zeros written
    /// ahead.
    private var open: (number: UInt64, file: any VolumeFile, end: UInt64, filledEnd: UInt64)?

    private static let prefix = "journal-"
    private static let memberName = "member"

    /// Creates access to the journal files of `volume`.
    package init(_ volume: any DiskVolume, space: JournalSpace) {
        self.volume = volume
        preallocatedBytes = space.preallocatedBytes
    }

    /// Returns the numbers of all journal files, in ascending order.
    package func numbers() throws(DiskFile.Failure) -> [UInt64] {
        try volume.names().compactMap { name in
            guard name.hasPrefix(Self.prefix), let number = UInt64(name.dropFirst(8)),
                Self.name(number) == name, number <= DiskFormat.countMax
            else { return nil }
            return number
        }.sorted()
    }

    private static func name(_ number: UInt64) -> String { "\(prefix)\(number)" }

    /// Returns the contents of a file, at most 2 GiB.
    package func read(_ number: UInt64) throws(DiskFile.Failure) -> [UInt8] {
        let file = try volume.open(Self.name(number), creates: false)
        return try file.read(Int(min(file.size(), 1 << 31)), at: 0)
    }

    /// Creates an empty file, or empties an existing one, and makes it the open one.
    package func create(_ number: UInt64) throws(DiskFile.Failure) {
        open = nil
        let file = try volume.open(Self.name(number), creates: true)
        try file.truncate(to: 0)
        try volume.sync()
        open = (number, file, 0, 0)
    }

    /// Appends bytes to the open file.
    ///
    /// A write that needs new blocks is extended with zeros, so that a sync of later appends into
    /// them has no metadata to write. The first append is not extended: it must be on the disk
    /// before anything follows it.
    package func append(_ bytes: [UInt8], to number: UInt64) throws(DiskFile.Failure) {
        let (file, start, filledEnd) = try openFile(number)
        let end = start + UInt64(bytes.count)
        if start > 0, end > filledEnd {
            let surplus =
                (preallocatedBytes - Int(end % UInt64(preallocatedBytes))) % preallocatedBytes
            try file.write((bytes + [UInt8](repeating: 0, count: surplus)).span, at: start)
            open?.filledEnd = end + UInt64(surplus)
        } else {
            try file.write(bytes.span, at: start)
        }
        open?.end = end
    }

    /// Returns once appended data is on the disk.
    package func sync(_ number: UInt64) throws(DiskFile.Failure) {
        try openFile(number).file.sync()
    }

    /// Deletes a file; errors are ignored.
    package func delete(_ number: UInt64) {
        if open?.number == number { open = nil }
        try? volume.remove(Self.name(number))
    }

    /// Returns once deletions are on the disk, so that deleted files do not reappear.
    package func syncNames() throws(DiskFile.Failure) {
        try volume.sync()
    }

    /// Returns the open file, which must be the one with this number.
    private func openFile(
        _ number: UInt64
    ) throws(DiskFile.Failure) -> (file: any VolumeFile, end: UInt64, filledEnd: UInt64) {
        guard let open, open.number == number else {
            preconditionFailure("file \(number) of the journal is not the open one")
        }
        return (open.file, open.end, open.filledEnd)
    }

    // MARK: The node's identity as a member

    /// Returns the first `count` bytes of the member file of the previous start, or fewer if it is
    /// shorter; `nil` if there is none.
    package func readMember(count: Int) throws(DiskFile.Failure) -> [UInt8]? {
        do throws(DiskFile.Failure) {
            return try volume.open(Self.memberName, creates: false).read(count, at: 0)
        } catch {
            guard error.isMissing else { throw error }
            return nil
        }
    }

    /// Writes the member file; returns once it is on the disk.
    package func writeMember(_ bytes: [UInt8]) throws(DiskFile.Failure) {
        let file = try volume.open(Self.memberName, creates: true)
        try file.write(bytes.span, at: 0)
        try file.sync()
        try volume.sync()
    }
}

/// The part of a node's disk limit that its invalidation log uses.
package struct JournalSpace: Hashable, Sendable {
    /// Maximum bytes of all its files.
    package let bytesMax: Int
    /// Approximate size of one file in bytes.
    package let fileBytes: Int
    /// Maximum bytes written ahead in each file.
    let preallocatedBytes: Int

    /// No invalidation log.
    package static let none = JournalSpace(bytesMax: 0)

    /// Creates the space for a disk limit in bytes.
    ///
    /// 1/32 of the limit, at most 768 MiB: enough for a million records or those of a day; more
    /// would be of no use.
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
    /// File system overhead in bytes: twice as many files as fit, because some wait to be deleted,
    /// and the member file.
    private var overheadBytes: Int { 33 * ((8 << 10) + preallocatedBytes) }

    /// Maximum number of marks that the journal keeps after their records are deleted.
    ///
    /// As many as one file holds, because each file begins with all of them, and as about 40 MiB of
    /// memory hold.
    package var marksMax: Int { min(fileBytes / (MarkTable.markBytes + 4), 1 << 19) }

    /// Total bytes that the log uses of the disk limit.
    package var bytes: UInt64 { bytesMax == 0 ? 0 : UInt64(bytesMax + overheadBytes) }

    /// The space for the smallest disk limit.
    package static let minimum = JournalSpace(limitBytes: 0)
}
