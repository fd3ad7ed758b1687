package import Ground
package import NIOCore
import Tiers

/// What a look at the page cache has given.
package enum DiskAtOnce: Sendable {
    /// The entry is not on disk.
    case absent
    /// A disk thread has to look.
    case later
    /// The whole record; its body in chunks.
    case whole(DiskReading, [ByteBuffer])
}

/// What event loops do.
extension DiskView {
    /// Reads a record and checks all of it, without ever waiting for a disk; for an event loop.
    ///
    /// `room` is for ``roomBytes`` of what is read; larger bodies are read to where they stay.
    /// Records beyond ``atOnceBytesMax`` are for a disk thread. `key` is the whole key, which is
    /// compared.
    package func readAtOnce(
        _ name: EntryName, key: [UInt8], room: inout [UInt8]
    ) -> DiskAtOnce {
        while let (entry, use) = find(name.digest) {
            guard entry.bytes <= Self.atOnceBytesMax else { return .later }
            do {
                // Of a large record the head, and little that has to be copied.
                let isSmall = entry.bytes <= room.count
                let count = isSmall ? entry.bytes : Self.headBytes
                guard try use.file.readAtOnce(count, at: entry.offset, into: &room) else {
                    return .later
                }
                guard isStill(entry, use) else { continue }
                let (record, metaBytes) = try self.record(
                    in: room.span.extracting(0..<count), entry, use)
                guard record.name == name, record.key == key,
                    let reading = reading(record, metaBytes, entry, use)
                else { return .absent }
                let chunks =
                    isSmall
                    ? try smallBody(of: reading, in: room)
                    : try largeBody(of: reading, &room)
                guard let chunks else { return .later }
                guard isStill(entry, use) else { continue }
                figures.add(.readsAtOnce)
                figures.add(.readBytes, entry.bytes)
                return .whole(reading, chunks)
            } catch DiskDamage.truncated where entry.bytes > room.count {
                // A head of unusual size.
                return .later
            } catch {
                guard isStill(entry, use) else { continue }
                lose(name.digest, entry, use, why: "\(error)")
                return .absent
            }
        }
        return .absent
    }

    /// Bytes of room that reading at once needs.
    package static let roomBytes = 64 << 10
    /// The largest record that is read at once: what a loop can do beside its other work.
    package static let atOnceBytesMax = 256 << 10
    /// What is read first of a record that is larger than the room.
    private static let headBytes = 4 << 10

    /// The checked body of a record that lies in `room` as a whole.
    private func smallBody(
        of reading: DiskReading, in room: [UInt8]
    ) throws(DiskDamage) -> [ByteBuffer]? {
        let body = room.span.extracting(
            reading.metaBytes..<reading.metaBytes + Int(reading.record.bodyBytes))
        for number in reading.record.chunkSums.indices {
            let chunk = body.extracting(Self.chunk(number, of: body.count))
            try check(chunk, number, reading.record, reading.entry, reading.use)
        }
        return Self.buffers(body)
    }

    /// The checked body of a record whose first ``headBytes`` lie in `room`, read chunk by chunk to
    /// where memory keeps it; nil if not all of it is in the page cache.
    private func largeBody(
        of reading: DiskReading, _ room: inout [UInt8]
    ) throws -> [ByteBuffer]? {
        let size = Int(reading.record.bodyBytes)
        let (file, start) = (reading.use.file, Int(reading.entry.offset) + reading.metaBytes)
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
                    isThere = try unsafe file.readAtOnce(
                        at: UInt64(start + range.lowerBound + known),
                        into: UnsafeMutableRawBufferPointer(
                            rebasing: place[..<(range.count - known)]))
                } catch { failure = error }
                return range.count - known
            }
            if let failure { throw failure }
            guard isThere else { return nil }
            known = 0
            try check(
                chunk.readableBytesUInt8Span, number, reading.record, reading.entry, reading.use)
            chunks.append(chunk)
        }
        guard let last = chunks.last, last.readableBytes < BodyLayout.chunkBytes else {
            return chunks
        }
        return chunks.dropLast() + Self.buffers(last.readableBytesUInt8Span)
    }
}
