package import Ground
package import NIOCore
import Tiers

/// What a look at the page cache has given.
package enum NonblockingDiskRead: Sendable {
    /// The entry is not on disk.
    case notFound
    /// A disk thread has to look.
    case wouldBlock
    /// The whole record; its body in chunks.
    case complete(DiskRecordHandle, [ByteBuffer])
}

/// What event loops do.
extension DiskView {
    /// Reads a record and checks all of it, without ever waiting for a disk; for an event loop.
    ///
    /// `room` is for ``roomBytes`` of what is read; larger bodies are read to where they stay.
    /// Records beyond ``atOnceBytesMax`` are for a disk thread. `key` is the whole key, which is
    /// compared.
    package func readNonblocking(
        _ name: EntryName, key: [UInt8], buffer: inout [UInt8]
    ) -> NonblockingDiskRead {
        while let (entry, use) = find(name.digest) {
            guard entry.bytes <= Self.nonblockingBytesMax else { return .wouldBlock }
            do {
                // Of a large record the head, and little that has to be copied.
                let isSmall = entry.bytes <= buffer.count
                let count = isSmall ? entry.bytes : Self.headBytes
                guard try use.file.readNonblocking(count, at: entry.offset, into: &buffer) else {
                    return .wouldBlock
                }
                guard isCurrent(entry, use) else { continue }
                let (record, metaBytes) = try self.record(
                    in: buffer.span.extracting(0..<count), entry, use)
                guard record.name == name, record.key == key,
                    let reading = handle(record, metaBytes, entry, use)
                else { return .notFound }
                let chunks =
                    isSmall
                    ? try smallBody(of: reading, in: buffer)
                    : try largeBody(of: reading, &buffer)
                guard let chunks else { return .wouldBlock }
                guard isCurrent(entry, use) else { continue }
                counters.add(.nonblockingReads)
                counters.add(.readBytes, entry.bytes)
                return .complete(reading, chunks)
            } catch DiskFormatError.truncated where entry.bytes > buffer.count {
                // A head of unusual size.
                return .wouldBlock
            } catch {
                guard isCurrent(entry, use) else { continue }
                removeUnreadable(name.digest, entry, use, why: "\(error)")
                return .notFound
            }
        }
        return .notFound
    }

    /// Bytes of room that reading at once needs.
    package static let bufferBytes = 64 << 10
    /// The largest record that is read at once: what a loop can do beside its other work.
    package static let nonblockingBytesMax = 256 << 10
    /// What is read first of a record that is larger than the room.
    private static let headBytes = 4 << 10

    /// The checked body of a record that lies in `room` as a whole.
    private func smallBody(
        of reading: DiskRecordHandle, in room: [UInt8]
    ) throws(DiskFormatError) -> [ByteBuffer]? {
        let body = room.span.extracting(
            reading.metaBytes..<reading.metaBytes + Int(reading.record.bodyBytes))
        for number in reading.record.chunkSums.indices {
            let chunk = body.extracting(Self.chunk(number, of: body.count))
            try verifyChecksum(chunk, number, reading.record, reading.entry, reading.generation)
        }
        return Self.buffers(body)
    }

    /// The checked body of a record whose first ``headBytes`` lie in `room`, read chunk by chunk to
    /// where memory keeps it; nil if not all of it is in the page cache.
    private func largeBody(
        of reading: DiskRecordHandle, _ room: inout [UInt8]
    ) throws -> [ByteBuffer]? {
        let size = Int(reading.record.bodyBytes)
        let (file, start) = (reading.generation.file, Int(reading.entry.offset) + reading.metaBytes)
        var chunks: [ByteBuffer] = []
        var known = min(Self.headBytes - reading.metaBytes, size)
        for number in reading.record.chunkSums.indices {
            let range = Self.chunk(number, of: size)
            var chunk = ByteBufferAllocator().buffer(capacity: range.count)
            if known > 0 {
                chunk.writeBytes(room[reading.metaBytes..<reading.metaBytes + known])
            }
            var isThere = false
            var failure: (any Error)?
            _ = unsafe chunk.writeWithUnsafeMutableBytes(
                minimumWritableBytes: range.count - known
            ) { place in
                do {
                    isThere = try unsafe file.readNonblocking(
                        at: UInt64(start + range.lowerBound + known),
                        into: UnsafeMutableRawBufferPointer(
                            rebasing: place[..<(range.count - known)]))
                } catch { failure = error }
                return range.count - known
            }
            if let failure { throw failure }
            guard isThere else { return nil }
            known = 0
            try verifyChecksum(
                chunk.readableBytesUInt8Span, number, reading.record, reading.entry,
                reading.generation)
            chunks.append(chunk)
        }
        guard let last = chunks.last, last.readableBytes < BodyLayout.chunkBytes else {
            return chunks
        }
        return chunks.dropLast() + Self.buffers(last.readableBytesUInt8Span)
    }
}
