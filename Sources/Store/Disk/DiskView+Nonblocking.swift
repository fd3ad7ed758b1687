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

/// What goes from the page cache to a client's socket, past the node's own memory.
extension DiskView {
    /// Reads the head of a record whose body can be sent from where it lies: it was `checked` of
    /// late, and all of it is in the page cache.
    ///
    /// Nil if it has to be read first, or is not there; for an event loop.
    package func readHead(
        _ name: EntryName, key: [UInt8], verified: VerifiedRecordCache, buffer: inout [UInt8],
        now: Instant
    ) -> DiskRecordHandle? {
        guard let (entry, use) = find(name.digest),
            let metaBytes = verified.metaBytes(of: entry, use, now: now), metaBytes <= buffer.count,
            use.file.isCached(entry.bytes, at: entry.offset),
            (try? use.file.readNonblocking(metaBytes, at: entry.offset, into: &buffer)) == true,
            let (record, _) = try? record(
                in: buffer.span.extracting(0..<metaBytes), entry, use, isVerified: true),
            record.name == name, record.key == key,
            let reading = handle(record, metaBytes, entry, use), isCurrent(entry, use)
        else { return nil }
        return reading
    }

    /// Sends the body of a record that ``readHead(_:key:checked:room:now:)`` has found, or some of
    /// it; how many bytes the socket has taken.
    package func send(_ reading: DiskRecordHandle, to socket: CInt) -> Int {
        let (size, use) = (Int(reading.record.bodyBytes), reading.generation)
        let sent = slots[Int(reading.entry.location.segment)].withGeneration(use) {
            use.file.send(
                size, at: reading.entry.offset + UInt64(reading.metaBytes), to: socket)
        }
        if sent == size {
            counters.add(.nonblockingReads)
            counters.add(.readBytes, size)
        }
        return sent ?? 0
    }
}

/// Records that an event loop has read as a whole of late, and found good.
///
/// Bytes in the page cache are not looked at again for ``trust``. It is short because nobody can
/// tell whether the system has dropped them meanwhile and read them again from a disk that has lost
/// them. Of fixed size: where all places are taken that a record can have, the longest known goes.
package struct VerifiedRecordCache: Sendable {
    /// For how long a record is taken for what it was.
    package static let verificationLifetime = Interval.seconds(10)

    private struct CacheSlot {
        /// Of the segment's use: no two have the same one.
        var salt: UInt64 = 0
        var checkedAt = Instant.zero
        /// 0 for none: no record begins there.
        var offset: UInt32 = 0
        var metaBytes: UInt32 = 0
    }

    /// In groups; which one is a record's, its place on disk says.
    private var slots: [CacheSlot]

    private static let ways = 4
    private static let setBits = 11

    /// Knows none; without a disk tier it needs no places.
    package init(isEmpty: Bool = false) {
        let count = isEmpty ? 0 : Self.ways << Self.setBits
        slots = Array(repeating: CacheSlot(), count: count)
    }

    /// A record was read at `now`, all of it.
    package mutating func add(_ reading: DiskRecordHandle, now: Instant) {
        let (salt, offset) = (reading.generation.salt, reading.entry.location.offsetUnits)
        var chosen = Self.set(salt, offset).lowerBound
        for index in Self.set(salt, offset) {
            if slots[index].salt == salt, slots[index].offset == offset {
                chosen = index
                break
            }
            if slots[index].checkedAt < slots[chosen].checkedAt { chosen = index }
        }
        slots[chosen] = CacheSlot(
            salt: salt, checkedAt: now, offset: offset, metaBytes: UInt32(reading.metaBytes))
    }

    /// From the record's beginning to its body; nil if it was not read of late.
    func metaBytes(of entry: DiskEntry, _ use: SegmentSlot.Generation, now: Instant) -> Int? {
        let offset = entry.location.offsetUnits
        for index in Self.set(use.salt, offset)
        where slots[index].salt == use.salt && slots[index].offset == offset {
            return now < slots[index].checkedAt + Self.verificationLifetime
                ? Int(slots[index].metaBytes) : nil
        }
        return nil
    }

    private static func set(_ salt: UInt64, _ offset: UInt32) -> Range<Int> {
        let mixed = (salt ^ UInt64(offset)) &* 0x9E37_79B9_7F4A_7C15
        let start = Int(mixed >> (64 - UInt64(setBits))) * ways
        return start..<start + ways
    }
}
