import Ground
import NIOCore
import Tiers

extension DiskRecord {
    /// Writes the record at `offset` of a segment: head and small pieces in one write, large pieces
    /// separately.
    ///
    /// - Parameters:
    ///   - body: the body, in buffers of any size; its checksums are computed here.
    ///   - file: the file of the segment.
    ///   - offset: the offset of the record in the file.
    ///   - salt: the salt of the segment.
    ///   - counters: counts the bytes.
    /// - Throws: ``DiskFile/Failure`` if a write fails; a part of the record may then be written.
    mutating func write(
        _ body: [ByteBuffer], to file: any VolumeFile, at offset: UInt64, salt: UInt64,
        _ counters: DiskCounters
    ) throws(DiskFile.Failure) {
        chunkSums = Self.checksums(body, of: bodyBytes, salt, offset)
        var bytes = metaBytes(salt: salt, offset: offset)
        var position = offset
        for piece in body {
            let span = piece.readableBytesUInt8Span
            guard bytes.count + span.count > DiskFormat.chunkBytes else {
                bytes += span.copy(0..<span.count)
                continue
            }
            try file.write(bytes.span, at: position, counters)
            position += UInt64(bytes.count)
            bytes.removeAll(keepingCapacity: true)
            try file.write(span, at: position, counters)
            position += UInt64(span.count)
        }
        let left = Int(offset) + extent.recordBytes - Int(position) - bytes.count
        bytes.append(contentsOf: repeatElement(0, count: left))
        if !bytes.isEmpty { try file.write(bytes.span, at: position, counters) }
    }

    /// Returns a checksum for each chunk of the body, which comes in pieces of any size.
    private static func checksums(
        _ body: [ByteBuffer], of bytes: UInt64, _ salt: UInt64, _ offset: UInt64
    ) -> [UInt64] {
        var sums: [UInt64] = []
        sums.reserveCapacity(DiskRecord.chunkCount(bytes))
        let start = { (number: Int) in
            XXH64(seed: DiskFormat.chunkSeed(salt: salt, offset: offset, number: number))
        }
        var sum = start(0)
        var inChunk = 0
        for piece in body {
            let span = piece.readableBytesUInt8Span
            var position = 0
            while position < span.count {
                let count = min(span.count - position, DiskFormat.chunkBytes - inChunk)
                sum.update(span.extracting(position..<position + count))
                position += count
                inChunk += count
                guard inChunk == DiskFormat.chunkBytes else { continue }
                sums.append(sum.finish())
                sum = start(sums.count)
                inChunk = 0
            }
        }
        if inChunk > 0 { sums.append(sum.finish()) }
        return sums
    }

    /// Returns the index entry of a record at this location.
    func entry(at location: DiskLocation, in queue: SegmentQueue) -> DiskEntry {
        DiskEntry(
            location: location, lengthUnits: units, lastAccess: lastAccess,
            accessCount: UInt8(min(accessCount, UInt16(UInt8.max))),
            flags: queue == .main ? .inMain : [], share: DiskShareID.number(ofKey: key.span))
    }

    /// The size of the record in units of ``Tiers/DiskFormat/unitBytes``.
    var units: UInt32 { UInt32(extent.recordBytes / DiskFormat.unitBytes) }
}

extension VolumeFile {
    /// Writes all of `bytes` at `offset` and counts them.
    func write(
        _ bytes: Span<UInt8>, at offset: UInt64, _ counters: DiskCounters
    ) throws(DiskFile.Failure) {
        counters.add(.writtenBytes, bytes.count)
        try write(bytes, at: offset)
    }
}
