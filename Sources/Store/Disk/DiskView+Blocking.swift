package import Ground
package import NIOCore
import Tiers

// Reads on disk threads, which may block.
extension DiskView {
    /// Reads and checks the head of the entry's record, with the start of its body; blocks.
    ///
    /// `nil` if the entry is not on disk, if a purge covers it, or if its record is damaged, which
    /// removes it from the index.
    package func read(_ name: EntryName, key: [UInt8]) -> DiskRecordHandle? {
        read(name.digest) { $0.name == name && $0.key == key }
    }

    /// Reads and checks the head of the record with this digest, the first half of its name, like
    /// ``read(_:key:)``.
    package func read(digest: EntryDigest) -> DiskRecordHandle? {
        read(digest) { $0.name.digest == digest }
    }

    private func read(
        _ digest: EntryDigest, where isMeant: (DiskRecord) -> Bool
    ) -> DiskRecordHandle? {
        while let (entry, use) = find(digest) {
            do {
                // One read for all but large records; for those, readahead of the rest starts
                // first.
                if entry.bytes > Self.blockBytes {
                    use.file.adviseReadahead(
                        min(entry.bytes, Self.readaheadBytes), at: entry.offset)
                }
                let bytes = try readBlock(entry, use, bytesMax: Self.blockBytes)
                guard isCurrent(entry, use) else { continue }
                counters.add(.threadReads)
                counters.add(.readBytes, bytes.count)
                let (record, metaBytes) = try self.record(in: bytes.span, entry, use)
                guard isMeant(record) else { return nil }
                var reading = handle(record, metaBytes, entry, use)
                // A mark is dropped once nothing on the disk is older, so the current marks apply
                // to a record only while it is in place.
                guard isCurrent(entry, use) else { continue }
                reading?.block = bytes
                return reading
            } catch {
                removeUnreadable(digest, entry, use, why: "\(error)")
                return nil
            }
        }
        return nil
    }

    /// Reads the first bytes of a record: at most `bytesMax`, but at least the whole head.
    func readBlock(
        _ entry: DiskEntry, _ use: SegmentSlot.Generation, bytesMax: Int
    ) throws(DiskFile.Failure) -> [UInt8] {
        let bytes = try use.file.read(min(entry.bytes, bytesMax), at: entry.offset)
        guard let extent = DiskRecord.extent(bytes.span, space: entry.bytes),
            extent.metaBytes > bytes.count
        else { return bytes }
        return try use.file.read(extent.metaBytes, at: entry.offset)
    }

    /// Reads and checks up to `count` chunks of the body from chunk `first` on; blocks.
    ///
    /// A record that was moved meanwhile is read at its new location, and `reading` updated. `nil`
    /// if the chunks are damaged, which removes the record from the index, or if the record was
    /// dropped.
    package func readChunks(
        _ reading: inout DiskRecordHandle, from first: Int, count: Int
    ) -> [ByteBuffer]? {
        let start = first * DiskFormat.chunkBytes
        let bytesCount = min(count * DiskFormat.chunkBytes, Int(reading.record.bodyBytes) - start)
        while true {
            let (entry, use) = (reading.entry, reading.generation)
            do {
                let bytes = try bodyBytes(of: reading, from: start, count: bytesCount)
                guard isCurrent(entry, use) else {
                    guard relocate(&reading) else { return nil }
                    continue
                }
                var buffers: [ByteBuffer] = []
                guard bytes.count == bytesCount else { throw DiskFormatError.truncated }
                for number in 0..<DiskRecord.chunkCount(UInt64(bytesCount)) {
                    let chunk = bytes.span.extracting(Self.chunk(number, of: bytes.count))
                    try verifyChecksum(chunk, first + number, reading.record, entry, use)
                    buffers.append(Self.buffer(chunk, capacity: chunk.count))
                }
                return buffers
            } catch {
                removeUnreadable(reading.record.name.digest, entry, use, why: "\(error)")
                return nil
            }
        }
    }

    /// Reads and checks the whole body, divided as in memory; `nil` if it is lost.
    ///
    /// Blocks; call it on a disk thread.
    package func readBody(_ reading: inout DiskRecordHandle) -> [ByteBuffer]? {
        var chunks: [ByteBuffer] = []
        let count = reading.record.chunkSums.count
        while chunks.count < count {
            guard let more = readChunks(&reading, from: chunks.count, count: 4) else { return nil }
            chunks += more
        }
        guard let last = chunks.popLast() else { return [] }
        return chunks + Self.buffers(last.readableBytesUInt8Span)
    }

    /// Finds the same record after it was moved; false if it was dropped.
    private func relocate(_ reading: inout DiskRecordHandle) -> Bool {
        guard let again = read(reading.record.name, key: reading.record.key),
            again.record.isSameResponse(as: reading.record)
        else { return false }
        reading.record = again.record
        reading.metaBytes = again.metaBytes
        reading.entry = again.entry
        reading.generation = again.generation
        reading.block = again.block
        return true
    }

    /// Returns body bytes from the block that was read with the head, or from the disk.
    private func bodyBytes(
        of reading: DiskRecordHandle, from start: Int, count: Int
    ) throws(DiskFile.Failure) -> [UInt8] {
        let first = reading.metaBytes + start
        if first + count <= reading.block.count {
            return Array(reading.block[first..<first + count])
        }
        let place = reading.entry.offset + UInt64(first)
        let left = Int(reading.record.bodyBytes) - start - count
        if left > 0 {
            reading.generation.file.adviseReadahead(
                min(left, Self.readaheadBytes), at: place + UInt64(count))
        }
        let bytes = try reading.generation.file.read(count, at: place)
        counters.add(.readBytes, bytes.count)
        return bytes
    }

    /// Records up to this size are read in one read with their heads.
    private static let blockBytes = 64 << 10
    /// Maximum readahead for a body that is read in parts.
    private static let readaheadBytes = 2 << 20
}
