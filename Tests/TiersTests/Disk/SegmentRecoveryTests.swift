import Ground
import Testing
import Tiers

@Suite("Recovering a segment at start")
struct SegmentRecoveryTests {
    private let sample = SampleSegment()

    private func recover(_ bytes: [UInt8]) -> SegmentRecovery.Outcome? {
        var recovery = SegmentRecovery(
            nodeID: .sample, segmentBytes: SampleSegment.bytesCount)
        while let part = recovery.nextRead {
            let start = min(Int(part.offset), bytes.count)
            let end = min(start + part.bytes, bytes.count)
            recovery.bytesRead(bytes.span.extracting(start..<end))
        }
        return recovery.outcome
    }

    private func segment(_ bytes: [UInt8]) throws -> SegmentRecovery.RecoveredSegment {
        guard case .recovered(let segment) = recover(bytes) else {
            throw DiskFormatError.badMagic
        }
        return segment
    }

    @Test("A closed segment is recovered from its footer alone")
    func closed() throws {
        var bytes = sample.bytes
        // A damaged record is noticed only when it is read.
        bytes[Int(sample.offsets[0]) + 300] ^= 1
        let segment = try segment(bytes)
        #expect(segment.entries == sample.footer.entries)
        #expect(!segment.needsFooter && segment.damaged.isEmpty)
        #expect(segment.recordsEnd == sample.footer.recordsEnd)
    }

    @Test("With any bit of the footer flipped, a scan finds the same entries")
    func damagedFooter() throws {
        let footer = SegmentFooter.bytesCount(of: sample.records.count)
        for position in sample.bytes.count - footer..<sample.bytes.count {
            for bit in 0..<8 {
                var bytes = sample.bytes
                bytes[position] ^= 1 << UInt8(bit)
                let segment = try segment(bytes)
                #expect(segment.needsFooter, "bit \(bit) of byte \(position)")
                #expect(segment.entries == sample.footer.entries)
                #expect(segment.recordsEnd == sample.footer.recordsEnd)
            }
        }
    }

    @Test("A segment without a footer recovers whole records and reports damaged ones")
    func unclosed() throws {
        var bytes = sample.bytes
        for position in Int(sample.footer.recordsEnd)..<bytes.count { bytes[position] = 0 }
        #expect(try segment(bytes).entries == sample.footer.entries)
        // The last write reached the disk in part.
        bytes[Int(sample.offsets[1]) + 40_000] ^= 0xFF
        let torn = try segment(bytes)
        let whole = [sample.footer.entries[0], sample.footer.entries[2]]
        #expect(torn.entries == whole && torn.damaged == [sample.offsets[1]])
    }

    @Test("With any bit of the header flipped, the whole segment is discarded")
    func damagedHeader() {
        for position in 0..<DiskFormat.headerBytes {
            // Not covered: the minor version, whose additions are compatible.
            guard !(10..<12).contains(position) else { continue }
            var bytes = sample.bytes
            bytes[position] ^= 1 << UInt8(position % 8)
            guard case .discarded = recover(bytes) else {
                Issue.record("byte \(position)")
                continue
            }
        }
    }

    @Test("A file of any length is discarded or recovered up to its end")
    func truncated() {
        for count in stride(from: 0, to: sample.bytes.count, by: 97) {
            switch recover(Array(sample.bytes.prefix(count))) {
            case .discarded: #expect(count < DiskFormat.headerBytes)
            case .recovered(let segment):
                let whole = zip(sample.footer.entries, sample.records).filter { entry, record in
                    Int(entry.offsetUnits) * 64 + record.extent.metaBytes
                        + Int(record.bodyBytes) <= count
                }
                #expect(segment.entries == whole.map(\.0), "\(count)")
            case nil: Issue.record("no outcome")
            }
        }
    }

    @Test("A disk that cannot be read costs the segment, and recovery ends")
    func unreadable() {
        var recovery = SegmentRecovery(
            nodeID: .sample, segmentBytes: SampleSegment.bytesCount)
        recovery.readFailed()
        #expect(recovery.outcome == .discarded(.truncated))
        recovery = SegmentRecovery(nodeID: .sample, segmentBytes: SampleSegment.bytesCount)
        recovery.bytesRead(sample.header.bytes.span)
        while recovery.nextRead != nil { recovery.readFailed() }
        guard case .recovered(let segment) = recovery.outcome else {
            Issue.record("\(String(describing: recovery.outcome))")
            return
        }
        #expect(segment.entries.isEmpty)
    }
}
