import Ground
import NIOCore
package import Tiers

/// A record whose head has been read and checked, and from which the body can be read.
package struct DiskRecordHandle: Sendable {
    package internal(set) var record: DiskRecord
    /// A mark wants the origin to be asked before it is served.
    package let isStale: Bool
    /// From the record's beginning to its body; a newer program's may be longer than ours.
    var metaBytes: Int
    var entry: DiskEntry
    var generation: SegmentSlot.Generation
    /// What was read of the record together with its head.
    var block: [UInt8] = []
}

extension DiskView {
    // MARK: Finding

    func find(_ digest: EntryDigest) -> (DiskEntry, SegmentSlot.Generation)? {
        // Where a segment's use has ended, its entries are elsewhere or gone.
        while let entry = shards.find(digest) {
            guard entry.lastAccess >= leastAccess else { return nil }
            if let use = slots[Int(entry.location.segment)].current { return (entry, use) }
            guard shards.find(digest)?.location != entry.location else { return nil }
        }
        return nil
    }

    /// True if the record that was read is where it was.
    package func isCurrent(_ reading: DiskRecordHandle) -> Bool {
        shards.find(reading.record.name.digest)?.location == reading.entry.location
            && isCurrent(reading.entry, reading.generation)
    }

    func isCurrent(_ entry: DiskEntry, _ use: SegmentSlot.Generation) -> Bool {
        slots[Int(entry.location.segment)].isCurrent(use)
    }

    // MARK: Checking

    /// `isKnown` if an answer can be made of what has this checksum.
    func record(
        in bytes: Span<UInt8>, _ entry: DiskEntry, _ use: SegmentSlot.Generation,
        isVerified: Bool = false
    ) throws(DiskFormatError) -> (DiskRecord, metaBytes: Int) {
        guard let extent = DiskRecord.extent(bytes, space: entry.bytes) else { throw .badMagic }
        guard extent.metaBytes <= bytes.count else { throw .truncated }
        let record = try DiskRecord(
            meta: bytes.extracting(0..<extent.metaBytes), salt: use.salt, offset: entry.offset)
        if !isVerified { try validate(record) }
        return (record, extent.metaBytes)
    }

    func verifyChecksum(
        _ chunk: Span<UInt8>, _ number: Int, _ record: DiskRecord, _ entry: DiskEntry,
        _ use: SegmentSlot.Generation
    ) throws(DiskFormatError) {
        let seed = DiskFormat.chunkSeed(salt: use.salt, offset: entry.offset, number: number)
        guard XXH64.hash(chunk, seed: seed) == record.chunkSums[number] else {
            throw .checksumMismatch
        }
    }

    /// Nil if it is dead.
    func handle(
        _ record: DiskRecord, _ metaBytes: Int, _ entry: DiskEntry, _ use: SegmentSlot.Generation
    ) -> DiskRecordHandle? {
        let effect = effect(on: record)
        guard effect != .purged else { return nil }
        return DiskRecordHandle(
            record: record, isStale: effect == .stale, metaBytes: metaBytes, entry: entry,
            generation: use)
    }

    // MARK: Cutting

    /// Where chunk `number` lies in `count` bytes that begin with a chunk.
    static func chunk(_ number: Int, of count: Int) -> Range<Int> {
        let start = number * DiskFormat.chunkBytes
        return start..<min(start + DiskFormat.chunkBytes, count)
    }

    /// Copies, laid out as memory wants them.
    static func buffers(_ body: Span<UInt8>) -> [ByteBuffer] {
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

    static func buffer(_ bytes: Span<UInt8>, capacity: Int) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: capacity)
        unsafe bytes.withUnsafeBytes { raw in
            _ = unsafe buffer.writeBytes(raw)
        }
        return buffer
    }
}

extension DiskRecordHandle {
    /// True if the other one is of the same answer, be it at another place.
    package func isSameResponse(as other: DiskRecordHandle) -> Bool {
        record.isSameResponse(as: other.record)
    }
}

extension DiskEntry {
    /// Where the record begins in its segment, in bytes.
    var offset: UInt64 { UInt64(location.offsetUnits) * UInt64(Self.unitBytes) }
    /// What the record takes, in bytes.
    var bytes: Int { Int(lengthUnits) * Self.unitBytes }
}

extension DiskRecord {
    /// True if the other one is a copy of this record at another place.
    func isSameResponse(as other: DiskRecord) -> Bool {
        name == other.name && invalidationVersion == other.invalidationVersion
            && times == other.times
            && bodyBytes == other.bodyBytes && head == other.head
    }
}
