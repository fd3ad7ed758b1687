package import Ground
package import NIOCore
package import Tiers

/// A record whose head has been read and checked, and from which the body can be read.
package struct DiskReading: Sendable {
    package fileprivate(set) var record: DiskRecord
    /// A mark wants the origin to be asked before it is served.
    package let isStale: Bool
    /// From the record's beginning to its body; a newer program's may be longer than ours.
    fileprivate var metaBytes: Int
    fileprivate var entry: DiskEntry
    fileprivate var use: SegmentSlot.Use
}

/// What a look at the page cache has given.
package enum DiskAtOnce: Sendable {
    /// The entry is not on disk.
    case absent
    /// A disk thread has to look.
    case later
    /// The whole record; its body in chunks.
    case whole(DiskReading, [ByteBuffer])
}

extension DiskView {
    /// Reads a record and checks all of it, without ever waiting for a disk; for an event loop.
    ///
    /// `room` is what is read into; records that do not fit are for a disk thread. `key` is the
    /// whole key, which is compared.
    package func readAtOnce(
        _ name: EntryName, key: [UInt8], room: inout [UInt8]
    ) -> DiskAtOnce {
        while let (entry, use) = find(name.digest) {
            let bytes = Int(entry.lengthUnits) * DiskFormat.unitBytes
            guard bytes <= room.count else { return .later }
            do throws(DiskFile.Failure) {
                guard try use.file.readAtOnce(bytes, at: entry.offset, into: &room) else {
                    return .later
                }
            } catch {
                lose(name.digest, entry, use, why: "\(error)")
                return .absent
            }
            guard isStill(entry, use) else { continue }
            do throws(DiskDamage) {
                let (record, metaBytes) = try self.record(
                    in: room.span.extracting(0..<bytes), entry, use)
                let body = room.span.extracting(
                    metaBytes..<metaBytes + Int(record.bodyBytes))
                for number in record.chunkSums.indices {
                    let chunk = body.extracting(Self.chunk(number, of: body.count))
                    try check(chunk, number, record, entry, use)
                }
                guard let reading = reading(record, metaBytes, name, key, entry, use) else {
                    return .absent
                }
                figures.add(.readsAtOnce)
                figures.add(.readBytes, bytes)
                return .whole(reading, Self.buffers(body))
            } catch {
                lose(name.digest, entry, use, why: "\(error)")
                return .absent
            }
        }
        return .absent
    }

    /// Reads a record's head and checks it; for a disk thread. Nil if the entry is not on disk.
    package func read(_ name: EntryName, key: [UInt8]) -> DiskReading? {
        while let (entry, use) = find(name.digest) {
            do throws(DiskFile.Failure) {
                var bytes = try use.file.read(entry.headGuess, at: entry.offset)
                if let extent = DiskRecord.extent(bytes.span, space: entry.bytes),
                    extent.metaBytes > bytes.count
                {
                    bytes = try use.file.read(extent.metaBytes, at: entry.offset)
                }
                guard isStill(entry, use) else { continue }
                figures.add(.readsByThread)
                figures.add(.readBytes, bytes.count)
                do throws(DiskDamage) {
                    let (record, metaBytes) = try self.record(in: bytes.span, entry, use)
                    return reading(record, metaBytes, name, key, entry, use)
                } catch {
                    lose(name.digest, entry, use, why: "\(error)")
                    return nil
                }
            } catch {
                lose(name.digest, entry, use, why: "\(error)")
                return nil
            }
        }
        return nil
    }

    /// Reads and checks up to `count` chunks of the body from number `first` on; for a disk thread.
    /// Nil if they are lost, or the record was given up.
    ///
    /// A record that was written again meanwhile is read where it is now.
    package func readChunks(
        _ reading: inout DiskReading, from first: Int, count: Int
    ) -> [ByteBuffer]? {
        let start = first * DiskFormat.chunkBytes
        let bytesCount = min(count * DiskFormat.chunkBytes, Int(reading.record.bodyBytes) - start)
        while true {
            let (entry, use) = (reading.entry, reading.use)
            do throws(DiskFile.Failure) {
                let bytes = try use.file.read(
                    bytesCount,
                    at: entry.offset + UInt64(reading.metaBytes + start))
                guard isStill(entry, use) else {
                    guard follow(&reading) else { return nil }
                    continue
                }
                figures.add(.readBytes, bytes.count)
                var buffers: [ByteBuffer] = []
                do throws(DiskDamage) {
                    guard bytes.count == bytesCount else { throw .truncated }
                    for number in 0..<DiskRecord.chunkCount(UInt64(bytesCount)) {
                        let chunk = bytes.span.extracting(Self.chunk(number, of: bytes.count))
                        try check(chunk, first + number, reading.record, entry, use)
                        buffers.append(Self.buffer(chunk, capacity: chunk.count))
                    }
                    return buffers
                } catch {
                    lose(reading.record.name.digest, entry, use, why: "\(error)")
                    return nil
                }
            } catch {
                lose(reading.record.name.digest, entry, use, why: "\(error)")
                return nil
            }
        }
    }

    /// Reads and checks the whole body, cut as memory wants it; for a disk thread.
    package func readBody(_ reading: inout DiskReading) -> [ByteBuffer]? {
        var chunks: [ByteBuffer] = []
        let count = reading.record.chunkSums.count
        while chunks.count < count {
            guard let more = readChunks(&reading, from: chunks.count, count: 4) else { return nil }
            chunks += more
        }
        guard let last = chunks.popLast() else { return [] }
        return chunks + Self.buffers(last.readableBytesUInt8Span)
    }

    // MARK: Finding

    private func find(_ digest: EntryDigest) -> (DiskEntry, SegmentSlot.Use)? {
        // Where a segment's use has ended, its entries are elsewhere or gone.
        while let entry = shards.find(digest) {
            guard entry.lastAccess >= leastAccess else { return nil }
            if let use = slots[Int(entry.location.segment)].current { return (entry, use) }
            guard shards.find(digest)?.location != entry.location else { return nil }
        }
        return nil
    }

    private func isStill(_ entry: DiskEntry, _ use: SegmentSlot.Use) -> Bool {
        slots[Int(entry.location.segment)].isStill(use)
    }

    /// Finds the same record where it was written again; false if it was given up.
    private func follow(_ reading: inout DiskReading) -> Bool {
        guard let again = read(reading.record.name, key: reading.record.key),
            again.record.isSameAnswer(as: reading.record)
        else { return false }
        reading.record = again.record
        reading.metaBytes = again.metaBytes
        reading.entry = again.entry
        reading.use = again.use
        return true
    }

    // MARK: Checking

    private func record(
        in bytes: Span<UInt8>, _ entry: DiskEntry, _ use: SegmentSlot.Use
    ) throws(DiskDamage) -> (DiskRecord, metaBytes: Int) {
        guard let extent = DiskRecord.extent(bytes, space: entry.bytes) else { throw .foreign }
        guard extent.metaBytes <= bytes.count else { throw .truncated }
        let record = try DiskRecord(
            meta: bytes.extracting(0..<extent.metaBytes), salt: use.salt, offset: entry.offset)
        return (record, extent.metaBytes)
    }

    private func check(
        _ chunk: Span<UInt8>, _ number: Int, _ record: DiskRecord, _ entry: DiskEntry,
        _ use: SegmentSlot.Use
    ) throws(DiskDamage) {
        let seed = DiskFormat.chunkSeed(salt: use.salt, offset: entry.offset, number: number)
        guard XXH64.hash(chunk, seed: seed) == record.chunkSums[number] else { throw .checksum }
    }

    /// Nil if it is another entry's, or dead.
    private func reading(
        _ record: DiskRecord, _ metaBytes: Int, _ name: EntryName, _ key: [UInt8],
        _ entry: DiskEntry, _ use: SegmentSlot.Use
    ) -> DiskReading? {
        guard record.name == name, record.key == key else { return nil }
        let effect = effect(on: record)
        guard effect != .dead else { return nil }
        return DiskReading(
            record: record, isStale: effect == .stale, metaBytes: metaBytes, entry: entry,
            use: use)
    }

    // MARK: Cutting

    /// Where chunk `number` lies in `count` bytes that begin with a chunk.
    private static func chunk(_ number: Int, of count: Int) -> Range<Int> {
        let start = number * DiskFormat.chunkBytes
        return start..<min(start + DiskFormat.chunkBytes, count)
    }

    /// Copies, laid out as memory wants them.
    private static func buffers(_ body: Span<UInt8>) -> [ByteBuffer] {
        var buffers: [ByteBuffer] = []
        var position = 0
        while position + BodyLayout.chunkBytes <= body.count {
            let end = position + BodyLayout.chunkBytes
            buffers.append(
                buffer(body.extracting(position..<end), capacity: BodyLayout.chunkBytes))
            position = end
        }
        for capacity in BodyLayout.tail(body.count - position) {
            let end = min(body.count, position + capacity)
            buffers.append(buffer(body.extracting(position..<end), capacity: capacity))
            position = end
        }
        return buffers
    }

    private static func buffer(_ bytes: Span<UInt8>, capacity: Int) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: capacity)
        unsafe bytes.withUnsafeBytes { raw in
            _ = unsafe buffer.writeBytes(raw)
        }
        return buffer
    }
}

extension DiskEntry {
    /// Where the record begins in its segment, in bytes.
    var offset: UInt64 { UInt64(location.offsetUnits) * UInt64(Self.unitBytes) }
    /// What the record takes, in bytes.
    var bytes: Int { Int(lengthUnits) * Self.unitBytes }
    /// As much as nearly every head takes, and no more than the record.
    fileprivate var headGuess: Int { min(bytes, 4096) }
}

extension DiskRecord {
    /// True if the other one is a copy of this record at another place.
    fileprivate func isSameAnswer(as other: DiskRecord) -> Bool {
        name == other.name && stamp == other.stamp && times == other.times
            && bodyBytes == other.bodyBytes && head == other.head
    }
}
