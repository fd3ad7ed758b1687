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
        forgotten(name.digest, entry)
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
        let before = marksLog.place
        if !marksAreBehind, let write = marksLog.append(more) {
            return try make([write], since: before)
        }
        let rewriting = marksLog.rewrite(more, least: least, salt: dice.next())
        marks.replace(with: marksLog.marks, rewriting)
        marksAreBehind = true
        do throws(DiskFile.Failure) {
            if let file = rewriting.writes.first?.file { try size(marksFile(file)) }
        } catch {
            marksLog.failed(since: before)
            throw error
        }
        try make(rewriting.writes, since: before)
        // The other one does not count any more, whatever it holds.
        for file in marksFiles { try size(file) }
    }

    private func make(
        _ writes: [MarksLog.Write], since before: MarksLog.Place
    ) throws(DiskFile.Failure) {
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

    /// What nothing is stamped before: neither in the log and on its disk, nor in memory, nor on
    /// its way to any of them.
    ///
    /// At first it is looked at what is on its way and in memory; what has come to the log since
    /// then was still leased.
    private var least: Stamp {
        let held = marks.leastHeld()
        let onDisk = leastOnDisk.compactMap { $0 }.min()
        return min(held, ledger.leastStamp ?? .last, onDisk ?? .last)
    }

    private func marksFile(_ number: Int) throws(DiskFile.Failure) -> any VolumeFile {
        if marksFiles.isEmpty {
            let files = [
                try volume.open("marks-0", creates: true),
                try volume.open("marks-1", creates: true),
            ]
            try volume.sync()
            marksFiles = files
        }
        return marksFiles[number]
    }

    /// Gives a file of marks its size, and all of its blocks.
    private func size(_ file: any VolumeFile) throws(DiskFile.Failure) {
        let bytes = UInt64(marksLog.fileBytes)
        if try file.size() > bytes { try file.truncate(to: bytes) }
        try file.allocate(bytes)
    }

    /// True if the record was invalidated after its request began.
    func isDead(_ record: DiskRecord) -> Bool { view.effect(on: record) == .dead }
}
