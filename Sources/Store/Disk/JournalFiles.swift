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
