import Ground
import Tiers

extension NodeID {
    static let sample = NodeID(low: 0x0123_4567_89AB_CDEF, high: 0xFEDC_BA98_7654_3210)
}

/// A closed segment with three small records, one of them of two chunks.
struct SampleSegment {
    static let bytesCount: UInt64 = 96 << 10

    let header = SegmentHeader(
        nodeID: .sample, segmentBytes: bytesCount, sequence: 41, salt: 0x5A5A_1234_0000_9999,
        openedAtVersion: InvalidationVersion(epoch: 7, count: 3), openedWall: 1_795_000_000_000,
        queue: 1)
    private(set) var records: [DiskRecord] = []
    /// The offset of each record.
    private(set) var offsets: [UInt64] = []
    private(set) var bodies: [[UInt8]] = []
    private(set) var bytes: [UInt8] = []
    private(set) var footer = SegmentFooter(entries: [], recordsEnd: 0, sequence: 41)

    init() {
        bytes = header.bytes
        append(seed: 1, bodyBytes: 1_000, tags: ["news", "front"], count: 91)
        append(seed: 2, bodyBytes: 70_000, tags: [], count: 90)
        append(seed: 3, bodyBytes: 0, tags: [], count: 92)
        footer.recordsEnd = UInt64(bytes.count)
        let end = footer.bytes(salt: header.salt, segmentBytes: Self.bytesCount)
        bytes.pad(to: Int(Self.bytesCount) - end.count)
        bytes += end
    }

    private mutating func append(seed: UInt64, bodyBytes: Int, tags: [String], count: UInt64) {
        let offset = UInt64(bytes.count)
        var dice = SplitMix64(seed: seed)
        let body = (0..<bodyBytes).map { _ in UInt8.random(in: 0...255, using: &dice) }
        let digest = (0..<32).map { UInt8($0) &+ UInt8(seed) }
        let name = EntryName(digest.span)
        let chunks = stride(from: 0, to: bodyBytes, by: DiskFormat.chunkBytes).enumerated()
        let sums = chunks.map { number, start in
            XXH64.hash(
                body.span.extracting(start..<min(start + DiskFormat.chunkBytes, bodyBytes)),
                seed: DiskFormat.chunkSeed(salt: header.salt, offset: offset, number: number))
        }
        let record = DiskRecord(
            name: name, invalidationVersion: InvalidationVersion(epoch: 6, count: count),
            times: DiskTimes(
                validated: 1_794_000_000_000, generated: 1_793_999_999_000,
                freshUntil: 1_795_000_000_000, lastModified: DiskFormat.noTime,
                date: 1_794_000_000_000),
            lastAccess: 1_794_000_100, accessCount: UInt16(seed), flags: .noCache,
            layout: DiskHeadLayout(
                partialStart: 4, multipartStart: 8, notModifiedStart: 12,
                contentType: Extent(start: 18, count: 9), entityTag: .empty),
            key: Array("http://a.example/\(seed).png".utf8),
            head: Array("etag: \"1\"\r\ncontent-type: image/png\r\n".utf8),
            tags: tags.map { Array($0.utf8) }, bodyBytes: UInt64(bodyBytes), chunkSums: sums)
        bytes += record.metaBytes(salt: header.salt, offset: offset)
        bytes += body
        bytes.pad(to: DiskFormat.rounded(bytes.count))
        records.append(record)
        offsets.append(offset)
        bodies.append(body)
        footer.entries.append(SegmentFooter.Entry(record, at: offset))
    }

    /// The offsets of the records that a scan of `bytes` finds, and of those that it finds damaged.
    ///
    /// A read that touches a byte of `bad` fails.
    static func scan(
        _ bytes: [UInt8], _ header: SegmentHeader, bad: Range<Int> = 0..<0
    ) -> (records: [UInt64: DiskRecord], damaged: [UInt64]) {
        var scan = SegmentScan(header)
        var found: [UInt64: DiskRecord] = [:]
        var damaged: [UInt64] = []
        while let part = scan.nextRead {
            let start = min(Int(part.offset), bytes.count)
            let end = min(start + part.bytes, bytes.count)
            let isBad = bad.overlaps(start..<end)
            let read = bytes.span.extracting(start..<end)
            switch isBad ? scan.readFailed() : scan.bytesRead(read) {
            case .record(let record, let offset): found[offset] = record
            case .damaged(let offset, _): damaged.append(offset)
            case nil: continue
            }
        }
        return (found, damaged)
    }
}
