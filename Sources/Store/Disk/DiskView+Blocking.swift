package import Ground
package import NIOCore
import Tiers

/// What disk threads do.
extension DiskView {
    /// Reads a record's head and checks it; nil if the entry is not on disk.
    package func read(_ name: EntryName, key: [UInt8]) -> DiskRecordHandle? {
        read(name.digest) { $0.name == name && $0.key == key }
    }

    /// The same of an entry of which no more is known than the first half of its name.
    package func read(digest: EntryDigest) -> DiskRecordHandle? {
        read(digest) { $0.name.digest == digest }
    }

    private func read(
        _ digest: EntryDigest, where isMeant: (DiskRecord) -> Bool
    ) -> DiskRecordHandle? {
        while let (entry, use) = find(digest) {
            do {
                // One read for all but large records; the disk begins with the rest of those.
                let count = min(entry.bytes, Self.blockBytes)
                if entry.bytes > count {
                    use.file.adviseReadahead(
                        min(entry.bytes, Self.readaheadBytes), at: entry.offset)
                }
                var bytes = try use.file.read(count, at: entry.offset)
                if let extent = DiskRecord.extent(bytes.span, space: entry.bytes),
                    extent.metaBytes > bytes.count
                {
                    bytes = try use.file.read(extent.metaBytes, at: entry.offset)
                }
                guard isCurrent(entry, use) else { continue }
                counters.add(.threadReads)
                counters.add(.readBytes, bytes.count)
                let (record, metaBytes) = try self.record(in: bytes.span, entry, use)
                guard isMeant(record) else { return nil }
                var reading = handle(record, metaBytes, entry, use)
                // A mark is dropped when nothing on the disk is older, so that today's marks speak
                // of a record only while it is there.
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

    /// Reads and checks up to `count` chunks of the body from number `first` on; nil if they are
    /// lost, or the record was given up.
    ///
    /// A record that was written again meanwhile is read where it is now.
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

    /// Reads and checks the whole body, cut as memory wants it; for a disk thread.
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

    /// Finds the same record where it was written again; false if it was given up.
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

    /// From what was read with the head, or from the disk.
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

    /// Records up to this size are read whole with their heads.
    private static let blockBytes = 64 << 10
    /// How far the disk may read ahead of a body that is read part by part.
    private static let readaheadBytes = 2 << 20
}
