import Ground
import Testing
import Tiers
import Trials

@Suite("A segment that was not closed")
struct SegmentScanTests {
    private let sample = SampleSegment()

    @Test("every record is found by a scan, without the footer")
    func all() {
        let (records, damaged) = SampleSegment.scan(sample.bytes, sample.header)
        #expect(records == Dictionary(uniqueKeysWithValues: zip(sample.offsets, sample.records)))
        #expect(damaged.isEmpty)
    }

    @Test("a flipped bit costs the record it lies in and no other")
    func flipped() {
        for position in stride(from: 4096, to: sample.bytes.count, by: Trials.stride(7)) {
            var bytes = sample.bytes
            bytes[position] ^= 1 << UInt8(position % 8)
            let (records, _) = SampleSegment.scan(bytes, sample.header)
            for (offset, record) in zip(sample.offsets, sample.records) {
                let extent = record.extent
                let used = Int(offset)..<Int(offset) + extent.metaBytes + Int(extent.bodyBytes)
                let isHit = used.contains(position)
                // What is reserved is covered, apart from the two bytes before the checksum.
                let isUnread = (6..<8).contains(position - Int(offset))
                #expect((records[offset] == record) == (!isHit || isUnread), "byte \(position)")
            }
            #expect(records.count <= 3)
        }
    }

    @Test("a page that cannot be read costs the records that lie in it")
    func badPage() {
        for start in stride(from: 4096, to: sample.bytes.count, by: Trials.stride(4096)) {
            let bad = start..<start + 4096
            let (records, _) = SampleSegment.scan(sample.bytes, sample.header, bad: bad)
            for (offset, record) in zip(sample.offsets, sample.records) {
                let end = Int(offset) + record.extent.metaBytes + Int(record.bodyBytes)
                let isHit = bad.overlaps(Int(offset)..<end)
                // So close to the page's end that its beginning is not read alone.
                let isNear = bad.overlaps(Int(offset)..<Int(offset) + DiskRecord.fixedBytes)
                #expect(records[offset] != nil || isHit || isNear, "page \(start)")
                #expect(records[offset] == nil || !isHit, "page \(start)")
            }
        }
    }

    @Test("nothing of the file's earlier use is taken for its present content")
    func otherSalt() {
        var header = sample.header
        header.salt ^= 1
        let (records, damaged) = SampleSegment.scan(sample.bytes, header)
        #expect(records.isEmpty)
        #expect(damaged == sample.offsets)
    }

    @Test("a record that lies in another's body is not taken for one")
    func smuggled() throws {
        // A stranger's image may hold the bytes of a record; what it cannot know is the salt.
        let inner = sample.records[0].metaBytes(salt: 0, offset: 0)
        var bytes = sample.header.bytes
        bytes += inner
        bytes.pad(to: Int(SampleSegment.bytesCount))
        #expect(SampleSegment.scan(bytes, sample.header).records.isEmpty)
    }
}
