package import Ground
package import NIOCore
import Tiers

/// The outcome of a nonblocking read.
package enum NonblockingDiskRead: Sendable {
    /// The disk has no usable record of the entry: none at all, a purged or a damaged one.
    case notFound
    /// A disk thread has to read the record.
    case wouldBlock
    /// The record was read in full; carries its body in chunks.
    case complete(DiskRecordHandle, [ByteBuffer])
}

// Reads on event loops, which do not block.
extension DiskView {
    /// Reads and checks a whole record without waiting for the disk; for an event loop.
    ///
    /// - Parameters:
    ///   - name: the name of the entry.
    ///   - key: the full key, which is compared.
    ///   - buffer: scratch space of ``bufferBytes``; larger bodies are read directly into their
    ///     chunks.
    /// - Returns: ``NonblockingDiskRead/wouldBlock`` also for records larger than
    ///   ``nonblockingBytesMax``.
    package func readNonblocking(
        _ name: EntryName, key: [UInt8], buffer: inout [UInt8]
    ) -> NonblockingDiskRead {
        while let (entry, use) = find(name.digest) {
            guard entry.bytes <= Self.nonblockingBytesMax else { return .wouldBlock }
            do {
                // For a large record: the head, and few bytes that have to be copied.
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
                // A head larger than usual.
                return .wouldBlock
            } catch {
                guard isCurrent(entry, use) else { continue }
                removeUnreadable(name.digest, entry, use, why: "\(error)")
                return .notFound
            }
        }
        return .notFound
    }

    /// Size in bytes of the buffer for nonblocking reads.
    package static let bufferBytes = 64 << 10
    /// Maximum size in bytes of a record read on an event loop, which has other work to do.
    package static let nonblockingBytesMax = 256 << 10
    /// Bytes read first of a record that is larger than the buffer.
    private static let headBytes = 4 << 10

    /// Returns the checked body of a record that lies in `room` in full.
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

    /// Returns the checked body of a record whose first ``headBytes`` lie in `room`; the rest is
    /// read chunk by chunk into its final buffers.
    ///
    /// `nil` if a part is not in the page cache.
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

// Sending from the page cache to a client's socket without a copy through user space.
extension DiskView {
    /// Reads the head of a record whose body can be sent directly from the page cache: it was
    /// verified recently, and all of it is cached.
    ///
    /// `nil` if a normal read is needed, or if the entry is not on disk. For an event loop.
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

    /// Sends the body of a record that ``readHead(_:key:verified:buffer:now:)`` returned; returns
    /// the number of bytes that the socket accepted, which may be fewer than all: 0 if the record
    /// is no longer in place.
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

/// A cache of records that an event loop has recently read and verified in full.
///
/// Bytes in the page cache are not verified again within ``verificationLifetime``. It is short
/// because the kernel may drop them and read them again from a disk that has corrupted them,
/// without any notice. Fixed size, set-associative: the least recently verified record of a set is
/// replaced. Confined to one event loop.
package struct VerifiedRecordCache: Sendable {
    /// Time for which a verification remains valid.
    package static let verificationLifetime = Interval.seconds(10)

    private struct CacheSlot {
        /// The salt of the segment's generation; no two generations have the same.
        var salt: UInt64 = 0
        var checkedAt = Instant.zero
        /// Offset in units; 0 for an empty slot, since no record begins there.
        var offset: UInt32 = 0
        var metaBytes: UInt32 = 0
    }

    /// Slots in sets; a record's location on disk determines its set.
    private var slots: [CacheSlot]

    /// Number of slots in a set.
    private static let ways = 4
    /// Binary logarithm of the number of sets.
    private static let setBits = 11

    /// Creates an empty cache; with `isEmpty`, one without slots, for a node without a disk tier.
    package init(isEmpty: Bool = false) {
        let count = isEmpty ? 0 : Self.ways << Self.setBits
        slots = Array(repeating: CacheSlot(), count: count)
    }

    /// Adds a record that was read and verified in full at `now`.
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

    /// Returns the size of the record's head in bytes; `nil` if it was not verified recently.
    func metaBytes(of entry: DiskEntry, _ use: SegmentSlot.Generation, now: Instant) -> Int? {
        let offset = entry.location.offsetUnits
        for index in Self.set(use.salt, offset)
        where slots[index].salt == use.salt && slots[index].offset == offset {
            return now < slots[index].checkedAt + Self.verificationLifetime
                ? Int(slots[index].metaBytes) : nil
        }
        return nil
    }

    /// Returns the indices of the slots for a record.
    private static func set(_ salt: UInt64, _ offset: UInt32) -> Range<Int> {
        let mixed = (salt ^ UInt64(offset)) &* 0x9E37_79B9_7F4A_7C15
        let start = Int(mixed >> (64 - UInt64(setBits))) * ways
        return start..<start + ways
    }
}
