import Ground
import Tiers

private let segmentBytes: UInt64 = 8192
private let salt: UInt64 = 0x5EED
private let header = SegmentHeader(
    nodeID: NodeID(low: 1, high: 2), segmentBytes: segmentBytes, sequence: 3, salt: salt,
    openedAtVersion: .zero, openedWall: 0, queue: 0)

/// Segments, footers, identities, tag rule files, and chunks of marks, as a disk may contain them.
///
/// A checksum hides everything after it from a fuzzer, so each input is read verbatim, and again
/// with corrected checksums.
///
/// Invariants: reading terminates for any bytes; records are within the segment and do not overlap;
/// a parsed record is the same after it was written and read again, and so are the other
/// structures.
func fuzzDisk(_ input: [UInt8]) {
    readSegment(input)
    readSegment(sealed(input))
    readFooter(input)
    readMarks(input)
    DiskFiles().read(input)
}

/// Reads the input as the records of a segment that was not closed.
private func readSegment(_ records: [UInt8]) {
    var file = header.bytes + records
    file.pad(to: Int(segmentBytes))
    var recovery = SegmentRecovery(nodeID: header.nodeID, segmentBytes: segmentBytes)
    var steps = 0
    while let part = recovery.nextRead {
        steps += 1
        precondition(steps < 10_000, "the reading does not end")
        let end = Int(part.offset) + part.bytes
        precondition(end <= file.count, "reads past the segment's end")
        recovery.bytesRead(file.span.extracting(Int(part.offset)..<end))
    }
    guard case .recovered(let segment) = recovery.outcome else {
        preconditionFailure("a whole header was discarded")
    }
    var last = UInt64(DiskFormat.headerBytes)
    for entry in segment.entries {
        let offset = UInt64(entry.offsetUnits) * UInt64(DiskFormat.unitBytes)
        precondition(offset >= last, "records overlap")
        last = offset + UInt64(entry.units) * UInt64(DiskFormat.unitBytes)
        precondition(last <= segment.recordsEnd && last <= segmentBytes)
        check(file, at: Int(offset))
    }
}

private func check(_ file: [UInt8], at offset: Int) {
    let rest = file.span.extracting(offset..<file.count)
    guard let extent = DiskRecord.extent(rest, space: rest.count),
        let record = try? DiskRecord(
            meta: rest.extracting(0..<extent.metaBytes), salt: salt, offset: UInt64(offset))
    else { preconditionFailure("a record that was found cannot be read") }
    let again = record.metaBytes(salt: salt, offset: UInt64(offset))
    let read = try? DiskRecord(meta: again.span, salt: salt, offset: UInt64(offset))
    precondition(read == record, "a record is another after it was written again")
}

/// Returns the input with a corrected checksum for everything that looks like a record.
private func sealed(_ input: [UInt8]) -> [UInt8] {
    var bytes = input
    let base = DiskFormat.headerBytes
    for start in stride(from: 0, to: bytes.count, by: DiskFormat.unitBytes) {
        let space = bytes.count - start
        guard
            let extent = DiskRecord.extent(
                bytes.span.extracting(start..<bytes.count), space: space),
            extent.metaBytes + Int(extent.bodyBytes) <= space
        else { continue }
        let offset = UInt64(base + start)
        for number in 0..<DiskRecord.chunkCount(extent.bodyBytes) {
            let sums = start + extent.metaBytes - 8 * DiskRecord.chunkCount(extent.bodyBytes)
            let body = start + extent.metaBytes + number * DiskFormat.chunkBytes
            let end = min(
                body + DiskFormat.chunkBytes, start + extent.metaBytes + Int(extent.bodyBytes))
            let seed = DiskFormat.chunkSeed(salt: salt, offset: offset, number: number)
            bytes.setLittle(
                XXH64.hash(bytes.span.extracting(body..<end), seed: seed), at: sums + 8 * number)
        }
        let seed = DiskFormat.recordSeed(salt: salt, offset: offset)
        let sum = XXH64.hash(
            bytes.span.extracting(start + 16..<start + extent.metaBytes), seed: seed)
        bytes.setLittle(sum, at: start + 8)
    }
    return bytes
}

/// Reads the input as a footer, verbatim and with a corrected checksum.
private func readFooter(_ input: [UInt8]) {
    guard input.count >= SegmentFooter.trailerBytes else { return }
    var bytes = input
    let trailer = bytes.count - SegmentFooter.trailerBytes
    _ = try? SegmentFooter.bytesCount(
        trailer: bytes.span.extracting(trailer..<bytes.count), segmentBytes: segmentBytes)
    _ = try? SegmentFooter(bytes.span, header: header)
    var sum = XXH64(seed: salt)
    sum.update(bytes.span.extracting(0..<trailer))
    sum.update(bytes.span.extracting(trailer + 16..<bytes.count))
    bytes.setLittle(sum.finish(), at: trailer + 8)
    guard let footer = try? SegmentFooter(bytes.span, header: header) else { return }
    let again = footer.bytes(salt: salt, segmentBytes: segmentBytes)
    let read = try? SegmentFooter(again.span, header: header)
    precondition(read == footer, "a footer is another after it was written again")
}

/// Reads the input as chunks of marks, with the key of the first one.
private func readMarks(_ input: [UInt8]) {
    let size = MarkTable().encodedChunks()[0].count
    var chunks: [[UInt8]] = []
    for start in stride(from: 0, to: input.count, by: size + MarkTable.markBytes) {
        let chunk = Array(input[start..<min(input.count, start + size + MarkTable.markBytes)])
        let key = Array((chunks.first ?? chunk).prefix(16))
        chunks.append(key + Array(chunk.dropFirst(16)))
    }
    guard let table = MarkTable(encodedChunks: chunks, key: .publiclyKnown) else { return }
    let again = MarkTable(encodedChunks: table.encodedChunks(), key: .publiclyKnown)
    precondition(again?.key == table.key && again?.count == table.count, "other marks")
    for version in [InvalidationVersion.zero, InvalidationVersion(epoch: 1, count: 1), .last] {
        let key = Array("http://a.test/b".utf8)
        let effect = table.effect(on: key, tags: [input], version: version)
        precondition(again?.effect(on: key, tags: [input], version: version) == effect)
    }
}
