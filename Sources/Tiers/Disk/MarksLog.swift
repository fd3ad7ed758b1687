package import Ground

/// The marks of a node on disk: which file they are in, what is written where, and what a start
/// makes of the two files; see "Marks" in <doc:DiskFormat>.
///
/// One file is written, mark after mark. When it is full, the marks that may still cover something
/// are written to the other one, under the next generation: the marks first and synced, then the
/// header and synced, so that a header which checks has all its marks behind it.
///
/// **Law.** A mark whose write was synced, and which may still cover something, is found by every
/// later start, or the soft one for everything that has taken its place; or that start finds
/// damage. Whatever subset of the writes that were not synced is lost or torn.
package struct MarksLog: Sendable {
    /// One write; the next one is made when it is synced.
    package struct Write: Hashable, Sendable {
        /// 0 or 1.
        package var file: Int
        package var offset: Int
        package var bytes: [UInt8]
    }

    /// Size of each file; what follows the last mark is zeros.
    package let fileBytes: Int
    private let nodeID: NodeID
    private var file: Int
    private var generation: UInt64
    private var writer: MarkWriter
    private var end: Int
    /// Marks that may still cover something, in the order in which they were written.
    package private(set) var marks: [DiskMark]

    /// A new log, whose ``beginning(salt:)`` has yet to be written.
    package init(nodeID: NodeID, fileBytes: Int) {
        precondition(fileBytes >= Self.fileBytesMin, "files of \(fileBytes) bytes")
        self.nodeID = nodeID
        self.fileBytes = fileBytes
        file = 1
        generation = 0
        writer = MarkWriter(salt: 0)
        end = fileBytes
        marks = []
    }

    /// A file holds its header and a few marks at least.
    package static let fileBytesMin = 4096

    /// What is written for further marks: one write, or a new generation.
    ///
    /// Marks below `leastStamp` cover nothing any more, for every entry was asked for after them;
    /// a new generation is without them. If the others do not fit, one soft mark for everything,
    /// stamped `now`, takes their place: each entry is then revalidated once. `salt` is from the
    /// dice, for a new generation.
    package mutating func append(
        _ more: [DiskMark], leastStamp: Stamp, now: Stamp, salt: UInt64
    ) -> [Write] {
        var next = writer
        var bytes: [UInt8] = []
        for mark in more { next.append(mark, to: &bytes) }
        marks += more
        guard end + bytes.count <= fileBytes else {
            return rewrite(leastStamp: leastStamp, now: now, salt: salt)
        }
        defer {
            writer = next
            end += bytes.count
        }
        return [Write(file: file, offset: end, bytes: bytes)]
    }

    /// A new generation in the other file.
    package mutating func rewrite(
        leastStamp: Stamp, now: Stamp, salt: UInt64
    ) -> [Write] {
        marks.removeAll { $0.stamp < leastStamp }
        var body = Self.body(marks, salt: salt)
        if body.bytes.count > fileBytes / 2 {
            marks = [DiskMark(.everything, isSoft: true, stamp: now)]
            body = Self.body(marks, salt: salt)
        }
        file = 1 - file
        generation += 1
        writer = body.writer
        end = MarksHeader.bytesCount + body.bytes.count
        var rest = body.bytes
        rest.pad(to: fileBytes - MarksHeader.bytesCount)
        let header = MarksHeader(nodeID: nodeID, generation: generation, salt: salt)
        // The old header goes first: it must not stand before marks that are not its own.
        return [
            Write(
                file: file, offset: 0, bytes: [UInt8](repeating: 0, count: MarksHeader.bytesCount)),
            Write(file: file, offset: MarksHeader.bytesCount, bytes: rest),
            Write(file: file, offset: 0, bytes: header.bytes),
        ]
    }

    /// The writes of `more` than `before` had were not all made and synced: the marks stay, and
    /// what is on the disk is as before, so that the next ``rewrite(leastStamp:now:salt:)`` spares
    /// the one file that is whole.
    package mutating func failed(since before: MarksLog) {
        file = before.file
        generation = before.generation
        writer = before.writer
        end = before.end
    }

    private static func body(
        _ marks: [DiskMark], salt: UInt64
    ) -> (bytes: [UInt8], writer: MarkWriter) {
        var writer = MarkWriter(salt: salt)
        var bytes: [UInt8] = []
        for mark in marks { writer.append(mark, to: &bytes) }
        return (bytes, writer)
    }
}

extension MarksLog {
    /// What a start has found.
    package struct Recovered: Sendable {
        package var log: MarksLog
        /// True if a mark may be missing: everything stamped before this start is to be
        /// revalidated once, which the caller writes as a mark.
        package var isDamaged: Bool
    }

    /// What two files hold, each with its bytes or nil if it is not there.
    ///
    /// `reached` is the greatest stamp that any record or segment bears: the marks of its count
    /// were written before it.
    package static func recover(
        _ files: [[UInt8]?], nodeID: NodeID, fileBytes: Int, reached: Stamp
    ) -> Recovered {
        var log = MarksLog(nodeID: nodeID, fileBytes: fileBytes)
        // Once there is a file, one of the two has a header that checks.
        var isDamaged = files.contains { $0 != nil }
        var isHeaderDamaged = false
        var last = Stamp.zero
        for (index, file) in files.enumerated() {
            guard let bytes = file else { continue }
            guard let header = try? MarksHeader(bytes.span, nodeID: nodeID) else {
                // Zeros stand where a generation was begun and not finished.
                let start = bytes.prefix(MarksHeader.bytesCount)
                isHeaderDamaged =
                    isHeaderDamaged || start.count < MarksHeader.bytesCount
                    || start.contains { $0 != 0 }
                continue
            }
            let start = MarksHeader.bytesCount
            let reading = MarkReading(
                bytes.span.extracting(start..<bytes.count), salt: header.salt)
            last = reading.marks.map(\.stamp).reduce(last, max)
            guard header.generation > log.generation else { continue }
            // What is wrong with the older file does not matter any more.
            isDamaged = reading.damagedFrom != nil || bytes.count != fileBytes
            log.file = index
            log.generation = header.generation
            log.writer = MarkWriter(after: reading)
            log.end = start + reading.end
            log.marks = reading.marks
        }
        let isShort = last < reached && reached.count > 0
        return Recovered(log: log, isDamaged: isDamaged || isHeaderDamaged || isShort)
    }
}
