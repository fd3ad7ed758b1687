import Ground
import Store
import Testing
import Tiers

@Suite("Segment files at a start")
struct SegmentFilesTests {
    private let root = TemporaryDirectory()
    private static let segmentBytes: UInt64 = 128 << 10

    private func open() throws -> NodeDirectory {
        try NodeDirectory(
            below: root.path, newID: { _ in NodeID(low: 5, high: 6) }, wall: 1_000
        ) { _ in Self.segmentBytes }
    }

    /// Writes a segment of `count` records of one chunk each.
    private func write(
        _ number: Int, in directory: NodeDirectory, count: Int, closes: Bool
    ) throws -> [SegmentFooter.Entry] {
        let file = try DiskFile(
            "\(directory.path)/\(SegmentFiles.name(number))", creates: true)
        try file.allocate(Self.segmentBytes)
        let header = SegmentHeader(
            nodeID: directory.identity.nodeID, segmentBytes: Self.segmentBytes,
            sequence: UInt64(number) + 1, salt: UInt64(number) &* 0x9E37_79B9_7F4A_7C15 | 1,
            openedAtVersion: .zero, openedWall: 0, queue: 0)
        try file.write(header.bytes.span, at: 0)
        var offset = UInt64(DiskFormat.headerBytes)
        var entries: [SegmentFooter.Entry] = []
        for index in 0..<count {
            let response = Answer(number * 16 + index, version: 1, bytes: 5_000 + index)
            var record = response.record(version: .zero, now: 0)
            let seed = DiskFormat.chunkSeed(salt: header.salt, offset: offset, number: 0)
            record.chunkSums = [XXH64.hash(response.body.span, seed: seed)]
            try file.write(
                record.metaBytes(salt: header.salt, offset: offset).span, at: offset)
            try file.write(response.body.span, at: offset + UInt64(record.extent.metaBytes))
            entries.append(SegmentFooter.Entry(record, at: offset))
            offset += UInt64(record.extent.recordBytes)
        }
        guard closes else { return entries }
        let footer = SegmentFooter(
            entries: entries, recordsEnd: offset, sequence: header.sequence)
        let bytes = footer.bytes(salt: header.salt, segmentBytes: Self.segmentBytes)
        try file.write(bytes.span, at: Self.segmentBytes - UInt64(bytes.count))
        return entries
    }

    @Test("Closed, unclosed, foreign and truncated segments are recognised as such")
    func mixed() throws {
        let (closed, unclosed, cut) = try writeMixed()
        let again = try open()
        let found = try SegmentFiles.files(in: again)
        #expect(found.map(\.number) == [0, 1, 2, 4])
        let outcomes = found.map { SegmentFiles.recover($0.file, again.identity) }
        let entries = outcomes.map { outcome -> [SegmentFooter.Entry] in
            guard case .recovered(let segment) = outcome else { return [] }
            return segment.entries
        }
        #expect(entries[0] == closed)
        #expect(entries[1] == unclosed)
        #expect(outcomes[2] == .discarded(.badMagic))
        #expect(entries[3] == Array(cut.prefix(1)))
    }

    /// The entries written by a node that is gone when this returns.
    private func writeMixed() throws -> (
        closed: [SegmentFooter.Entry], unclosed: [SegmentFooter.Entry],
        cut: [SegmentFooter.Entry]
    ) {
        let node = try open()
        let closed = try write(0, in: node, count: 7, closes: true)
        let unclosed = try write(1, in: node, count: 5, closes: false)
        let foreign = try DiskFile("\(node.path)/\(SegmentFiles.name(2))", creates: true)
        try foreign.write([UInt8](repeating: 0x41, count: 9_000).span, at: 0)
        let cut = try write(4, in: node, count: 3, closes: true)
        try DiskFile("\(node.path)/\(SegmentFiles.name(4))", creates: false).truncate(to: 12_000)
        return (closed, unclosed, cut)
    }

    @Test("Segments of another node are not read")
    func otherNode() throws {
        let node = try open()
        _ = try write(0, in: node, count: 2, closes: true)
        var other = node.identity
        other.nodeID = NodeID(low: other.nodeID.low ^ 1, high: other.nodeID.high)
        let file = try DiskFile("\(node.path)/\(SegmentFiles.name(0))", creates: false)
        #expect(SegmentFiles.recover(file, other) == .discarded(.nodeMismatch))
    }
}
