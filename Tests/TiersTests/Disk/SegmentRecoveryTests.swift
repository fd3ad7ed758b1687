import Ground
import Testing
import Tiers

@Suite("What a start makes of a segment")
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

    @Test("a closed segment is known by its footer alone")
    func closed() throws {
        var bytes = sample.bytes
        // A record that is damaged shows only when it is read.
        bytes[Int(sample.offsets[0]) + 300] ^= 1
        let segment = try segment(bytes)
        #expect(segment.entries == sample.footer.entries)
        #expect(!segment.needsFooter && segment.damaged.isEmpty)
        #expect(segment.recordsEnd == sample.footer.recordsEnd)
    }

    @Test("whatever bit of the footer is flipped, a scan finds the same entries")
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

    @Test("a segment that was being written keeps what is whole, and says what is not")
    func unclosed() throws {
        var bytes = sample.bytes
        for position in Int(sample.footer.recordsEnd)..<bytes.count { bytes[position] = 0 }
        #expect(try segment(bytes).entries == sample.footer.entries)
        // The last write came to the disk in part.
        bytes[Int(sample.offsets[1]) + 40_000] ^= 0xFF
        let torn = try segment(bytes)
        let whole = [sample.footer.entries[0], sample.footer.entries[2]]
        #expect(torn.entries == whole && torn.damaged == [sample.offsets[1]])
    }

    @Test("whatever bit of the header is flipped, nothing of the segment is believed")
    func damagedHeader() {
        for position in 0..<DiskFormat.headerBytes {
            // Not covered: the version's minor number, which promises what it adds is harmless.
            guard !(10..<12).contains(position) else { continue }
            var bytes = sample.bytes
            bytes[position] ^= 1 << UInt8(position % 8)
            guard case .discarded = recover(bytes) else {
                Issue.record("byte \(position)")
                continue
            }
        }
    }

    @Test("a file of any length is recovered or discarded, never more than it holds")
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

    @Test("a disk that cannot be read at all costs the segment, and ends")
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
