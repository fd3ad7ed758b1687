import Foundation
import Ground
import Testing
import Tiers

@Suite("The disk format")
struct DiskFormatTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Vectors")

    /// Compares bytes with a vector; a missing vector is written, and the test fails.
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

    @Test("An identity is written and read as in its vector")
    func identity() throws {
        let identity = NodeIdentity(
            nodeID: .sample, bootEpoch: 7, segmentBytes: 1 << 20, newestWall: 1_795_000_000_123)
        try hold(identity.bytes, to: "identity")
        let vector = try vector("identity")
        let read = try NodeIdentity(vector.span)
        #expect(read == identity)
    }

    @Test("A segment is written and read as in its vector")
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
        #expect(footer.leastVersion == InvalidationVersion(epoch: 6, count: 90))
        for (entry, record) in zip(footer.entries, sample.records) {
            let start = Int(entry.offsetUnits) * DiskFormat.unitBytes
            let meta = bytes.span.extracting(start..<start + record.extent.metaBytes)
            let read = try DiskRecord(meta: meta, salt: header.salt, offset: UInt64(start))
            #expect(read == record)
        }
    }

    @Test("A number so large that it cannot be incremented is damage, even with a valid checksum")
    func counts() {
        func fault(_ read: () throws(DiskFormatError) -> Void) -> DiskFormatError? {
            do throws(DiskFormatError) { try read() } catch { return error }
            return nil
        }
        let size = SampleSegment.bytesCount
        for (count, damage) in [
            (DiskFormat.countMax, nil), (DiskFormat.countMax + 1, .counterOutOfRange),
            (.max, .counterOutOfRange),
        ] as [(UInt64, DiskFormatError?)] {
            let identity = NodeIdentity(
                nodeID: .sample, bootEpoch: count, segmentBytes: size, newestWall: 0
            ).bytes
            let header = SegmentHeader(
                nodeID: .sample, segmentBytes: size, sequence: count, salt: 1,
                openedAtVersion: .zero,
                openedWall: 0, queue: 0
            ).bytes
            let identityFault = fault { () throws(DiskFormatError) in
                _ = try NodeIdentity(identity.span)
            }
            #expect(identityFault == damage)
            let segmentFault = fault { () throws(DiskFormatError) in
                _ = try SegmentHeader(header.span, nodeID: .sample, segmentBytes: size)
            }
            #expect(segmentFault == damage)
        }
    }

    @Test("Other files, other versions and truncated files give different errors")
    func refusals() throws {
        let sample = SampleSegment()
        let size = SampleSegment.bytesCount
        let other = NodeID(low: 1, high: 1)
        func refusal(
            _ bytes: [UInt8], _ id: NodeID = .sample, _ size: UInt64 = size
        ) -> DiskFormatError? {
            do throws(DiskFormatError) {
                _ = try SegmentHeader(bytes.span, nodeID: id, segmentBytes: size)
                return nil
            } catch { return error }
        }
        #expect(refusal(sample.bytes) == nil)
        #expect(refusal(sample.bytes, other) == .nodeMismatch)
        #expect(refusal(sample.bytes, .sample, 1) == .segmentSizeMismatch(size))
        #expect(refusal(Array(sample.bytes.prefix(100))) == .truncated)
        #expect(refusal([UInt8](repeating: 0, count: 4096)) == .badMagic)
        var newer = sample.bytes
        newer[8] = 2
        #expect(refusal(newer) == .unsupportedVersion(major: 2))
        var flipped = sample.bytes
        flipped[3000] ^= 1
        #expect(refusal(flipped) == .checksumMismatch)
    }
}
