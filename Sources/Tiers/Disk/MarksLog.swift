package import Ground

/// The marks of a node on disk: which file they are in, what is written where, and what a start
/// makes of the two files; see "Marks" in <doc:DiskFormat>.
///
/// One file is written, mark after mark. When it is full, the marks that may still cover something
/// are written to the other one, under the next generation: the marks first and synced, then the
/// header and synced, so that a header which checks has all its marks behind it.
///
/// **Law.** A mark whose write was synced is found by every later start, or a soft one for
/// everything in its place whose stamp is no less; or that start finds damage. Whatever subset of
/// the writes that were not synced is lost or torn.
package struct MarksLog: Sendable {
    /// One write; the next one is made when it is synced.
    package struct Write: Hashable, Sendable {
        /// 0 or 1.
        package var file: Int
        package var offset: Int
        package var bytes: [UInt8]
    }

    /// Where a log has come to in its files.
    package struct Place: Sendable {
        fileprivate var file = 1
        fileprivate var generation: UInt64 = 0
        fileprivate var writer = MarkWriter(salt: 0)
        fileprivate var end: Int
        /// Size of the file.
        fileprivate var fileBytes: Int
    }

    /// A new generation, and what was left out of it.
    package struct Rewriting: Sendable {
        package var writes: [Write]
        /// Marks that had become one because there was no room for them.
        package var foldedCount = 0
        /// What is stamped before is stale from now on: the stamp of that one; nil if there is
        /// none.
        package var foldedTo: Stamp?
        /// One of those that stand for marks that covered nothing any more.
        package var droppedTo: Stamp?
    }

    /// Size of the file of the next generation; what follows the last mark is zeros.
    package let fileBytes: Int
    /// By which the marks are hashed.
    package fileprivate(set) var key: MarkKey
    private let nodeID: NodeID
    /// Where the next mark goes.
    package fileprivate(set) var place: Place
    /// What the file holds, in the order in which it was written.
    package fileprivate(set) var marks: [StoredMark] = []

    /// A new log, of which nothing is written yet.
    package init(nodeID: NodeID, fileBytes: Int, key: MarkKey) {
        precondition(
            fileBytes >= Self.fileBytesMin && fileBytes <= Self.fileBytesMax,
            "files of \(fileBytes) bytes")
        self.nodeID = nodeID
        self.fileBytes = fileBytes
        self.key = key
        place = Place(end: fileBytes, fileBytes: fileBytes)
    }

    /// A file holds its header and a few marks at least.
    package static let fileBytesMin = 4096
    package static let fileBytesMax = 1 << 30

    /// Marks that there is room for in a file of the next generation.
    package var capacity: Int { (fileBytes - MarksHeader.bytesCount) / MarkWriter.markBytes }

    /// Nothing of it is on the disk yet.
    package var isNew: Bool { place.generation == 0 }

    /// The file that is written is of another size than the next one will be.
    package var isOtherSize: Bool { place.generation > 0 && place.fileBytes != fileBytes }

    /// Adds marks; gives the write that they take, nil if there is no room for it: then a
    /// ``rewrite(_:least:salt:)`` has to follow.
    package mutating func append(_ more: [DiskMark]) -> Write? {
        guard place.end + more.count * MarkWriter.markBytes <= place.fileBytes else { return nil }
        let more = more.map { StoredMark($0, key: key) }
        var bytes: [UInt8] = []
        place.writer.append(more, to: &bytes)
        marks += more
        defer { place.end += bytes.count }
        return Write(file: place.file, offset: place.end, bytes: bytes)
    }

    /// The writes since the log was at `place` were not all made and synced: the marks stay, and
    /// what is on the disk is as before, so that the next ``rewrite(_:least:salt:)`` spares the one
    /// file that is whole.
    package mutating func failed(since place: Place) { self.place = place }

    /// A new generation in the other file, with `more` marks.
    ///
    /// Nothing that is held or on its way is stamped before `least`; marks up to it are left out. A
    /// soft one for everything stands for them all the same, so that nothing turns on `least`
    /// being right but what is asked for again in vain. If the others take more than three quarters
    /// of the room, that one stands for the oldest half of them, too. `salt` is from the dice.
    package mutating func rewrite(
        _ more: [DiskMark], least: Stamp, salt: UInt64
    ) -> Rewriting {
        marks += more.map { StoredMark($0, key: key) }
        var rewriting = Rewriting(writes: [])
        rewriting.droppedTo = marks.fold(upTo: least)
        let most = capacity / 4 * 3
        if marks.count > most { marks.unite() }
        if marks.count > most {
            let before = marks.count
            let kept = min(marks.count, capacity) / 2
            let oldest = marks.map(\.stamp).sorted()[marks.count - kept - 1]
            rewriting.foldedTo = marks.fold(upTo: oldest)
            rewriting.foldedCount = before - marks.count + 1
        }
        rewriting.writes = begin(salt: salt)
        return rewriting
    }

    /// Writes all marks to the other file.
    private mutating func begin(salt: UInt64) -> [Write] {
        place.file = 1 - place.file
        place.generation += 1
        place.fileBytes = fileBytes
        place.writer = MarkWriter(salt: salt)
        var body: [UInt8] = []
        body.reserveCapacity(fileBytes - MarksHeader.bytesCount)
        place.writer.append(marks, to: &body)
        place.end = MarksHeader.bytesCount + body.count
        body.append(contentsOf: repeatElement(0, count: fileBytes - place.end))
        let header = MarksHeader(
            nodeID: nodeID, generation: place.generation, salt: salt,
            fileBytes: UInt64(fileBytes), key: key)
        let none = [UInt8](repeating: 0, count: MarksHeader.bytesCount)
        // The old header goes first: it must not stand before marks that are not its own.
        return [
            Write(file: place.file, offset: 0, bytes: none),
            Write(file: place.file, offset: MarksHeader.bytesCount, bytes: body),
            Write(file: place.file, offset: 0, bytes: header.bytes),
        ]
    }
}

extension MarksLog {
    /// Why a mark may be missing.
    package enum Doubt: Hashable, Sendable {
        case damaged
        /// Only another version knows what the files hold.
        case version
    }

    /// What a start has found.
    package struct Recovered: Sendable {
        package fileprivate(set) var log: MarksLog
        fileprivate var doubt: Doubt?
        fileprivate var last = Stamp.zero

        /// Why a mark may be missing, if one may be: everything stamped before this start is to be
        /// revalidated once, which the caller writes as a mark.
        ///
        /// `reached` is the greatest stamp that any record or segment bears: the marks of its count
        /// were written before it.
        package func doubt(reached: Stamp) -> Doubt? {
            if let doubt { return doubt }
            return last < reached && reached.count > 0 ? .damaged : nil
        }
    }

    /// What two files hold, each with its bytes or nil if it is not there.
    ///
    /// They may be of another size than `fileBytes`; `key` is for files that have none.
    package static func recover(
        _ files: [[UInt8]?], nodeID: NodeID, fileBytes: Int, key: MarkKey
    ) -> Recovered {
        var found = Recovered(log: MarksLog(nodeID: nodeID, fileBytes: fileBytes, key: key))
        // Once there is a file, one of the two has a header that checks.
        var isDamaged = files.contains { $0 != nil }
        var isHeaderDamaged = false
        var isVersion = false
        for (index, file) in files.enumerated() {
            guard let bytes = file else { continue }
            let header: MarksHeader
            do throws(DiskDamage) {
                header = try MarksHeader(bytes.span, nodeID: nodeID)
            } catch {
                if case .version = error { isVersion = true }
                // Zeros stand where a generation was begun and not finished.
                let start = bytes.prefix(MarksHeader.bytesCount)
                isHeaderDamaged =
                    isHeaderDamaged || start.count < MarksHeader.bytesCount
                    || start.contains { $0 != 0 }
                continue
            }
            let reading = MarkReading(
                bytes.span.extracting(MarksHeader.bytesCount..<bytes.count), salt: header.salt,
                markBytes: header.markBytes)
            found.last = reading.marks.map(\.stamp).reduce(found.last, max)
            guard header.generation > found.log.place.generation else { continue }
            // What is wrong with the older file does not matter any more.
            isDamaged = reading.damagedFrom != nil || bytes.count != header.fileBytes
            found.log.continues(index, header, reading, bytes.count)
        }
        if isDamaged || isHeaderDamaged { found.doubt = isVersion ? .version : .damaged }
        return found
    }

    private mutating func continues(
        _ index: Int, _ header: MarksHeader, _ reading: MarkReading, _ bytes: Int
    ) {
        key = header.key
        marks = reading.marks
        let end = MarksHeader.bytesCount + reading.end
        // A newer version's marks are longer: what comes goes into a file of this one's.
        let isOurs = header.markBytes == MarkWriter.markBytes
        place = Place(
            file: index, generation: header.generation, writer: MarkWriter(after: reading),
            end: end, fileBytes: isOurs ? bytes : end)
    }
}
