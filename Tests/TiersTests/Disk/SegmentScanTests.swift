import Ground
import Testing
import Tiers
import Trials

@Suite("Scanning a segment that was not closed")
struct SegmentScanTests {
    private let sample = SampleSegment()

    @Test("A scan finds every record without the footer")
    func all() {
        let (records, damaged) = SampleSegment.scan(sample.bytes, sample.header)
        #expect(records == Dictionary(uniqueKeysWithValues: zip(sample.offsets, sample.records)))
        #expect(damaged.isEmpty)
    }

    @Test("A flipped bit damages its own record and no other")
    func flipped() {
        for position in stride(from: 4096, to: sample.bytes.count, by: Trials.stride(7)) {
            var bytes = sample.bytes
            bytes[position] ^= 1 << UInt8(position % 8)
            let (records, _) = SampleSegment.scan(bytes, sample.header)
            for (offset, record) in zip(sample.offsets, sample.records) {
                let extent = record.extent
                let used = Int(offset)..<Int(offset) + extent.metaBytes + Int(extent.bodyBytes)
                let isHit = used.contains(position)
                // Reserved bytes are covered, apart from the two before the checksum.
                let isUnread = (6..<8).contains(position - Int(offset))
                #expect((records[offset] == record) == (!isHit || isUnread), "byte \(position)")
            }
            #expect(records.count <= 3)
        }
    }

    @Test("A page that cannot be read costs the records on it")
    func badPage() {
        for start in stride(from: 4096, to: sample.bytes.count, by: Trials.stride(4096)) {
            let bad = start..<start + 4096
            let (records, _) = SampleSegment.scan(sample.bytes, sample.header, bad: bad)
            for (offset, record) in zip(sample.offsets, sample.records) {
                let end = Int(offset) + record.extent.metaBytes + Int(record.bodyBytes)
                let isHit = bad.overlaps(Int(offset)..<end)
                // A record's header close to the page's end is read together with the page.
                let isNear = bad.overlaps(Int(offset)..<Int(offset) + DiskRecord.fixedBytes)
                #expect(records[offset] != nil || isHit || isNear, "page \(start)")
                #expect(records[offset] == nil || !isHit, "page \(start)")
            }
        }
    }

    @Test("Records of the file's earlier use are not found")
    func otherSalt() {
        var header = sample.header
        header.salt ^= 1
        let (records, damaged) = SampleSegment.scan(sample.bytes, header)
        #expect(records.isEmpty)
        #expect(damaged == sample.offsets)
    }

    @Test("A record inside another record's body is not found")
    func smuggled() throws {
        // A hostile image may contain a record's bytes, but not the salt.
        let inner = sample.records[0].metaBytes(salt: 0, offset: 0)
        var bytes = sample.header.bytes
        bytes += inner
        bytes.pad(to: Int(SampleSegment.bytesCount))
        #expect(SampleSegment.scan(bytes, sample.header).records.isEmpty)
    }
}
