import Ground
import Tiers

/// The files of a node's invalidation log, in the node's directory: `journal-` and a number.
///
/// Used by one thread at a time.
package final class JournalFiles {
    private let volume: any DiskVolume
    /// Behind what was appended each file has zeros up to a multiple of so many bytes.
    private let preallocatedBytes: Int
    private var open: (number: UInt64, file: any VolumeFile, end: UInt64, filledEnd: UInt64)?

    private static let prefix = "journal-"
    private static let memberName = "member"

    package init(_ volume: any DiskVolume, space: JournalSpace) {
        self.volume = volume
        preallocatedBytes = space.preallocatedBytes
    }

    /// The numbers of all files that there are.
    package func numbers() throws(DiskFile.Failure) -> [UInt64] {
        try volume.names().compactMap { name in
            guard name.hasPrefix(Self.prefix), let number = UInt64(name.dropFirst(8)),
                Self.name(number) == name, number <= DiskFormat.countMax
            else { return nil }
            return number
        }.sorted()
    }

    private static func name(_ number: UInt64) -> String { "\(prefix)\(number)" }

    /// All of a file.
    package func read(_ number: UInt64) throws(DiskFile.Failure) -> [UInt8] {
        let file = try volume.open(Self.name(number), creates: false)
        return try file.read(Int(min(file.size(), 1 << 31)), at: 0)
    }

    /// Makes an empty file, whatever was there.
    package func create(_ number: UInt64) throws(DiskFile.Failure) {
        open = nil
        let file = try volume.open(Self.name(number), creates: true)
        try file.truncate(to: 0)
        try volume.sync()
        open = (number, file, 0, 0)
    }

    /// What needs new blocks is written with zeros behind it: a sync of what goes into their place
    /// has no metadata to write.
    ///
    /// What comes first, which is to be on the disk before anything is behind it, has none.
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

    /// Returns when what was appended is on the disk.
    package func sync(_ number: UInt64) throws(DiskFile.Failure) {
        try openFile(number).file.sync()
    }

    /// A file that is not there does no harm.
    package func delete(_ number: UInt64) {
        if open?.number == number { open = nil }
        try? volume.remove(Self.name(number))
    }

    /// Files that were deleted do not come back from here on.
    package func syncNames() throws(DiskFile.Failure) {
        try volume.sync()
    }

    private func openFile(
        _ number: UInt64
    ) throws(DiskFile.Failure) -> (file: any VolumeFile, end: UInt64, filledEnd: UInt64) {
        guard let open, open.number == number else {
            preconditionFailure("file \(number) of the journal is not the open one")
        }
        return (open.file, open.end, open.filledEnd)
    }

    // MARK: Who the node is to others

    /// The first `count` bytes of what the start before has left, or as many as there are; nil if
    /// there is nothing.
    package func readMember(count: Int) throws(DiskFile.Failure) -> [UInt8]? {
        do throws(DiskFile.Failure) {
            return try volume.open(Self.memberName, creates: false).read(count, at: 0)
        } catch {
            guard error.isMissing else { throw error }
            return nil
        }
    }

    /// Returns when it is on the disk.
    package func writeMember(_ bytes: [UInt8]) throws(DiskFile.Failure) {
        let file = try volume.open(Self.memberName, creates: true)
        try file.write(bytes.span, at: 0)
        try file.sync()
        try volume.sync()
    }
}
