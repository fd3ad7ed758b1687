package import Ground
import Tiers

extension DiskLog {
    /// Deletes entries; when this returns, none of them will ever be served again, whatever
    /// happens.
    ///
    /// - Throws: that it is not on the disk. The entries are gone from this process all the same.
    package func delete(_ names: [EntryName]) throws(DiskFile.Failure) {
        guard !names.isEmpty else { return }
        for name in names {
            if let entry = view.shards.remove(name.digest) { gone(entry) }
        }
        // Of hard marks the time does not matter.
        marks.apply(names.map { .entry($0) }, isSoft: false, now: .zero)
        try writeMarks()
    }

    /// Writes the marks that were applied until now, and syncs them.
    package func writeMarks() throws(DiskFile.Failure) {
        let more = marks.takeUnwritten()
        if !more.isEmpty || marksAreBehind { try mark(more) }
    }

    /// Takes an entry out of the index; its record may be found again by a start that finds the
    /// segment not closed.
    package func forget(_ name: EntryName) {
        guard let entry = view.shards.remove(name.digest) else { return }
        gone(entry)
        // So that the segment's footer does not name it for ever.
        touched[Int(entry.location.segment)] = true
    }

    /// The marks are damaged: every entry is revalidated once, and both files are written anew, so
    /// that the next start finds nothing wrong.
    func replaceMarks() throws(DiskFile.Failure) {
        marksAreBehind = true
        try revalidateAll()
        marksAreBehind = true
        try mark([])
    }

    /// Every entry of before this start is to be held against its origin before it is served.
    func revalidateAll() throws(DiskFile.Failure) {
        let stamp = Stamp(epoch: identity.bootEpoch, count: 0)
        let everything = DiskMark(.everything, isSoft: true, stamp: stamp)
        marks.add(everything)
        try mark([everything])
    }

    /// Writes marks, which are applied, and syncs them.
    private func mark(_ more: [DiskMark]) throws(DiskFile.Failure) {
        let now = view.stamp
        let salt = dice.next()
        let before = marksLog
        // Fetches of this epoch may be under way that were begun before any mark of it.
        let least = min(leastStamp, Stamp(epoch: identity.bootEpoch, count: 0))
        var writes = marksLog.append(more, leastStamp: least, now: now, salt: salt)
        if marksAreBehind, writes.count == 1 {
            writes = marksLog.rewrite(leastStamp: least, now: now, salt: salt)
        }
        // A new generation may be without some, or be one mark in the place of all.
        if writes.count > 1 { marks.replace(with: marksLog.marks) }
        marksAreBehind = true
        do throws(DiskFile.Failure) {
            for next in writes {
                let file = try marksFile(next.file)
                try write(next.bytes, to: file, at: UInt64(next.offset))
                try file.sync()
            }
        } catch {
            marksLog.failed(since: before)
            throw error
        }
        marksAreBehind = false
    }

    /// What may be older than any mark: everything in the log and on its disk.
    private var leastStamp: Stamp {
        let onDisk = leastOnDisk.compactMap { $0 }.min()
        return min(ledger.leastStamp ?? .last, onDisk ?? .last)
    }

    private func marksFile(_ number: Int) throws(DiskFile.Failure) -> any VolumeFile {
        if marksFiles.isEmpty {
            let files = [
                try volume.open("marks-0", creates: true),
                try volume.open("marks-1", creates: true),
            ]
            for file in files {
                let bytes = UInt64(marksLog.fileBytes)
                if try file.size() > bytes { try file.truncate(to: bytes) }
                try file.allocate(bytes)
            }
            try volume.sync()
            marksFiles = files
        }
        return marksFiles[number]
    }

    /// True if the record was invalidated after its request began.
    func isDead(_ record: DiskRecord) -> Bool { view.effect(on: record) == .dead }
}
