import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("The disk log on damaged files", .disabled(if: Trials.isReduced))
struct DiskLogDamageTests {
    private static let file = SegmentFiles.name(0)
    private static let answers = [0, 40, 700, 300].enumerated().map {
        Answer($0.offset, version: 1, bytes: $0.element)
    }

    /// The range of each of ``answers`` in the segment, without trailing zeros.
    private static let places: [Range<Int>] = {
        var start = DiskFormat.headerBytes
        return answers.map { response in
            var record = response.record(version: .zero, now: 0)
            record.chunkSums = Array(repeating: 0, count: DiskRecord.chunkCount(record.bodyBytes))
            defer { start += record.extent.recordBytes }
            return start..<start + record.extent.metaBytes + response.body.count
        }
    }()

    /// A log with ``answers`` in one segment and without a running process.
    private func rig(closed: Bool) throws -> LogRig {
        let rig = try LogRig(segments: 4, seed: 3)
        for response in Self.answers { try rig.store(response) }
        if closed { try rig.log().close() }
        rig.kill()
        return rig
    }

    /// Opens the log and returns the numbers of the responses found.
    private func survivors(_ rig: LogRig) throws -> [Int] {
        try rig.start()
        return try Self.answers.indices.filter { index in
            let found = try rig.find(index)
            let atOnce = try rig.findAtOnce(index)
            #expect(atOnce == found)
            guard let found else { return false }
            #expect(found.head == Self.answers[index].head)
            let isSame = found.body == Self.answers[index].body
            #expect(isSame)
            return true
        }
    }

    /// True if the events of the start and since name the file.
    private func isNoted(_ rig: LogRig) throws -> Bool {
        let notes = try rig.warnings + rig.log().takeRemoved()
        return notes.contains { $0.fields["file"]?.contains(Self.file) == true }
    }

    @Test("A flipped bit costs the record that contains it and no other", arguments: [true, false])
    func flippedRecords(closed: Bool) throws {
        let base = try rig(closed: closed)
        let end = Self.places.last?.upperBound ?? 0
        for position in DiskFormat.headerBytes..<end {
            let rig = LogRig(base)
            rig.volume.flip(Self.file, at: position, mask: 1 << UInt8(position % 8))
            let found = try survivors(rig)
            let wanted = Self.answers.indices.filter { index in
                let place = Self.places[index]
                // The reserved bytes before the checksum are not read.
                let isUnread = (6..<8).contains(position - place.lowerBound)
                return !place.contains(position) || isUnread
            }
            #expect(found == wanted, "byte \(position)")
            // With other sizes it may not be recognised as a record.
            let isNoRecord = !closed && Self.places.contains { $0.prefix(40).contains(position) }
            #expect(try isNoted(rig) == (found.count < 4) || isNoRecord, "byte \(position)")
            if position % 50 == 0 { try goOn(rig) }
        }
    }

    @Test(
        "A flipped bit in the header costs the segment and is reported", arguments: [true, false])
    func flippedHeader(closed: Bool) throws {
        let base = try rig(closed: closed)
        for position in 0..<DiskFormat.headerBytes {
            let rig = LogRig(base)
            rig.volume.flip(Self.file, at: position, mask: 1 << UInt8(position % 8))
            let found = try survivors(rig)
            // A newer minor version can be read.
            #expect(found.count == ((10..<12).contains(position) ? 4 : 0), "byte \(position)")
            #expect(try isNoted(rig) == found.isEmpty, "byte \(position)")
            if position % 200 == 0 { try goOn(rig) }
        }
    }

    @Test("A flipped bit in the footer costs nothing")
    func flippedFooter() throws {
        let base = try rig(closed: true)
        let size = base.volume.bytes(of: Self.file).count
        for position in size - SegmentFooter.bytesCount(of: 4)..<size {
            let rig = LogRig(base)
            rig.volume.flip(Self.file, at: position, mask: 1 << UInt8(position % 8))
            let found = try survivors(rig)
            #expect(found.count == 4, "byte \(position)")
            rig.kill()
            let again = try survivors(rig)
            #expect(again.count == 4, "byte \(position)")
            let isScanned = rig.notes.contains(
                .logOpened(path: "/simulated", entries: 4, segments: 1, scanned: 0))
            #expect(isScanned, "the footer was not rewritten")
        }
    }

    @Test(
        "Wherever a segment is truncated, whole records are found", arguments: [true, false])
    func truncated(closed: Bool) throws {
        let base = try rig(closed: closed)
        let bytes = base.volume.bytes(of: Self.file)
        let end = Self.places.last?.upperBound ?? 0
        for count in [0, 1, 4095] + Array(DiskFormat.headerBytes...end) + [bytes.count - 1] {
            let rig = LogRig(base)
            rig.volume.replace(Self.file, with: Array(bytes.prefix(count)))
            let found = try survivors(rig)
            let wanted = Self.places.indices.filter { Self.places[$0].upperBound <= count }
            #expect(found == wanted, "\(count) bytes")
            if count % 50 == 0 { try goOn(rig) }
        }
    }

    /// Stores more than the log can hold.
    private func goOn(_ rig: LogRig) throws {
        for version in 10..<20 {
            let response = Answer(version % 7, version: version, bytes: 500_000)
            try rig.store(response)
            let isThere = try rig.find(response.number)?.body == response.body
            #expect(isThere)
        }
        #expect(rig.volume.peakBytes <= rig.capBytes)
        try rig.restart()
        let isThere = try rig.find(19 % 7) != nil
        #expect(isThere)
    }
}
