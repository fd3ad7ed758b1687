import Foundation
import Ground
import Testing
import Tiers

@Suite("The disk format")
struct DiskFormatTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Vectors")

    /// Holds bytes against a vector; where it is missing it is written, and the test fails.
    private func hold(_ bytes: [UInt8], to name: String) throws {
        let file = Self.folder.appendingPathComponent(name)
        guard let vector = try? Data(contentsOf: file) else {
            try Data(bytes).write(to: file)
            Issue.record("\(name) was missing and has been written")
            return
        }
        let isSame = Array(vector) == bytes
        #expect(isSame, "\(name)")
    }

    private func vector(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    }

    @Test("an identity is written and read as the vector has it")
    func identity() throws {
        let identity = NodeIdentity(
            nodeID: .sample, bootEpoch: 7, segmentBytes: 1 << 20, newestWall: 1_795_000_000_123)
        try hold(identity.bytes, to: "identity")
        let vector = try vector("identity")
        let read = try NodeIdentity(vector.span)
        #expect(read == identity)
    }

    @Test("a segment is written and read as the vector has it")
    func segment() throws {
        let sample = SampleSegment()
        try hold(sample.bytes, to: "segment")
        let bytes = try vector("segment")
        let header = try SegmentHeader(
            bytes.span, nodeID: .sample, segmentBytes: SampleSegment.bytesCount)
        #expect(header == sample.header)
        let trailer = bytes.count - SegmentFooter.trailerBytes
        let size = try SegmentFooter.bytesCount(
            trailer: bytes.span.extracting(trailer..<bytes.count),
            segmentBytes: header.segmentBytes)
        let footer = try SegmentFooter(
            bytes.span.extracting(bytes.count - size..<bytes.count), header: header)
        #expect(footer == sample.footer)
        #expect(footer.leastStamp == Stamp(epoch: 6, count: 90))
        for (entry, record) in zip(footer.entries, sample.records) {
            let start = Int(entry.offsetUnits) * DiskFormat.unitBytes
            let meta = bytes.span.extracting(start..<start + record.extent.metaBytes)
            let read = try DiskRecord(meta: meta, salt: header.salt, offset: UInt64(start))
            #expect(read == record)
        }
    }

    @Test("marks are written and read as the vector has them")
    func marks() throws {
        let header = MarksHeader(
            nodeID: .sample, generation: 3, salt: 99, fileBytes: 512, key: Self.key)
        var bytes = header.bytes
        var writer = MarkWriter(salt: header.salt)
        for mark in Self.marks { writer.append(mark, to: &bytes) }
        bytes.pad(to: 512)
        try hold(bytes, to: "marks")
        let vector = try vector("marks")
        let read = try MarksHeader(vector.span, nodeID: .sample)
        #expect(read == header)
        let start = MarksHeader.bytesCount
        let reading = MarkReading(
            vector.span.extracting(start..<vector.count), salt: header.salt)
        #expect(reading.marks == Self.marks)
        #expect(reading.damagedFrom == nil)
    }

    @Test("marks go on where an earlier reading ended")
    func appended() {
        var bytes: [UInt8] = []
        var writer = MarkWriter(salt: 5)
        for mark in Self.marks.prefix(3) { writer.append(mark, to: &bytes) }
        var later = MarkWriter(after: MarkReading(bytes.span, salt: 5))
        for mark in Self.marks.dropFirst(3) { later.append(mark, to: &bytes) }
        let whole = MarkReading(bytes.span, salt: 5)
        #expect(whole.marks == Self.marks && whole.damagedFrom == nil)
    }

    /// Makes the checksum of the first of some marks right.
    private func seal(_ bytes: inout [UInt8], markBytes: Int = MarkWriter.markBytes) {
        let sum = XXH64.hash(bytes.span.extracting(4..<markBytes), seed: 5)
        for place in 0..<4 { bytes[place] = UInt8(truncatingIfNeeded: sum >> UInt64(8 * place)) }
    }

    @Test("a mark of a kind that is not known covers everything, softly")
    func newerMark() {
        var bytes: [UInt8] = []
        var writer = MarkWriter(salt: 5)
        writer.append(Self.marks[1], to: &bytes)
        bytes[4] = 77
        seal(&bytes)
        let reading = MarkReading(bytes.span, salt: 5)
        #expect(reading.marks == [.unknown(before: Self.marks[1].stamp)])
    }

    @Test("longer marks of a newer version are read as far as they are known")
    func longerMarks() {
        var bytes: [UInt8] = []
        var writer = MarkWriter(salt: 5)
        writer.append(Self.marks[1], to: &bytes)
        bytes += [1, 2, 3, 4, 5, 6, 7, 8]
        seal(&bytes, markBytes: 40)
        bytes.pad(to: 200)
        let reading = MarkReading(bytes.span, salt: 5, markBytes: 40)
        #expect(reading.marks == [Self.marks[1]] && reading.damagedFrom == nil)
    }

    @Test("no flipped bit in marks goes unseen, and none changes what is read before it")
    func flippedMarks() {
        var bytes: [UInt8] = []
        var writer = MarkWriter(salt: 5)
        for mark in Self.marks { writer.append(mark, to: &bytes) }
        bytes.pad(to: bytes.count + 64)
        for position in bytes.indices {
            for bit in 0..<8 {
                var flipped = bytes
                flipped[position] ^= 1 << UInt8(bit)
                let reading = MarkReading(flipped.span, salt: 5)
                let whole = min(position / MarkWriter.markBytes, Self.marks.count)
                #expect(reading.damagedFrom != nil, "bit \(bit) of byte \(position)")
                #expect(reading.marks == Array(Self.marks.prefix(whole)))
            }
        }
    }

    @Test("the first bytes of marks of format 1 are refused for their version")
    func formerMarks() {
        let header = MarksHeader(
            nodeID: .sample, generation: 3, salt: 99, fileBytes: 512, key: Self.key)
        func refusal(_ bytes: [UInt8]) -> DiskDamage? {
            do throws(DiskDamage) {
                _ = try MarksHeader(bytes.span, nodeID: .sample)
                return nil
            } catch { return error }
        }
        #expect(refusal(header.bytes) == nil)
        var former = header.bytes
        former[8] = 1
        #expect(refusal(former) == .version(major: 1))
        #expect(refusal(Array(former.prefix(64))) == .version(major: 1))
        for position in [12, 13, 16, 24, 40, 48, 56, 64, 72, 127] {
            var flipped = header.bytes
            flipped[position] ^= 1
            #expect(refusal(flipped) == .checksum, "\(position)")
        }
    }

    @Test("a number that nothing can be counted on from is damage, whatever the checksum says")
    func counts() {
        func fault(_ read: () throws(DiskDamage) -> Void) -> DiskDamage? {
            do throws(DiskDamage) { try read() } catch { return error }
            return nil
        }
        let size = SampleSegment.bytesCount
        for (count, damage) in [
            (DiskFormat.countMax, nil), (DiskFormat.countMax + 1, .count), (.max, .count),
        ] as [(UInt64, DiskDamage?)] {
            let identity = NodeIdentity(
                nodeID: .sample, bootEpoch: count, segmentBytes: size, newestWall: 0
            ).bytes
            let header = SegmentHeader(
                nodeID: .sample, segmentBytes: size, sequence: count, salt: 1, openedAt: .zero,
                openedWall: 0, queue: 0
            ).bytes
            let marks = MarksHeader(
                nodeID: .sample, generation: count, salt: 1, fileBytes: 512, key: Self.key
            ).bytes
            let identityFault = fault { () throws(DiskDamage) in
                _ = try NodeIdentity(identity.span)
            }
            #expect(identityFault == damage)
            let segmentFault = fault { () throws(DiskDamage) in
                _ = try SegmentHeader(header.span, nodeID: .sample, segmentBytes: size)
            }
            #expect(segmentFault == damage)
            let marksFault = fault { () throws(DiskDamage) in
                _ = try MarksHeader(marks.span, nodeID: .sample)
            }
            #expect(marksFault == damage)
        }
    }

    @Test("files of others, of other versions and cut ones are told apart")
    func refusals() throws {
        let sample = SampleSegment()
        let size = SampleSegment.bytesCount
        let other = NodeID(low: 1, high: 1)
        func refusal(
            _ bytes: [UInt8], _ id: NodeID = .sample, _ size: UInt64 = size
        ) -> DiskDamage? {
            do throws(DiskDamage) {
                _ = try SegmentHeader(bytes.span, nodeID: id, segmentBytes: size)
                return nil
            } catch { return error }
        }
        #expect(refusal(sample.bytes) == nil)
        #expect(refusal(sample.bytes, other) == .otherNode)
        #expect(refusal(sample.bytes, .sample, 1) == .otherSize(size))
        #expect(refusal(Array(sample.bytes.prefix(100))) == .truncated)
        #expect(refusal([UInt8](repeating: 0, count: 4096)) == .foreign)
        var newer = sample.bytes
        newer[8] = 2
        #expect(refusal(newer) == .version(major: 2))
        var flipped = sample.bytes
        flipped[3000] ^= 1
        #expect(refusal(flipped) == .checksum)
    }

    private static let key = MarkKey(first: 0x1111_2222, second: 0x3333_4444)

    private static let marks: [StoredMark] = [
        DiskMark(.everything, isSoft: true, stamp: Stamp(epoch: 1, count: 2)),
        DiskMark(
            .url(Array("a.example/1.png".utf8)), isSoft: false,
            stamp: Stamp(epoch: 1, count: 3)),
        DiskMark(
            .entry(EntryName([UInt8](repeating: 0xAB, count: 32).span)), isSoft: false,
            stamp: Stamp(epoch: 2, count: 0)),
        DiskMark(
            .prefix(Array("a.example/x/".utf8)), isSoft: true,
            stamp: Stamp(epoch: 2, count: 1)),
        DiskMark(
            .host(Array("b.example".utf8)), isSoft: false, stamp: Stamp(epoch: 2, count: 2)),
        DiskMark(.tag(Array("news".utf8)), isSoft: true, stamp: Stamp(epoch: 2, count: 3)),
    ].map { StoredMark($0, key: key) }
}
