import Ground
import Tiers

/// The small files of a node's directory, each as it is and with its checksum made right: what was
/// read is the same after it was written and read again.
struct DiskFiles {
    let nodeID: NodeID

    private static let checksumStart = 16
    private static let marksFileBytes = MarksLog.fileBytesMin
    private static let key = MarkKey(first: 3, second: 4)

    func read(_ input: [UInt8]) {
        for bytes in [input, sealed(input, 24..<NodeIdentity.bytesCount, seed: 0)] {
            guard let identity = try? NodeIdentity(bytes.span) else { continue }
            let again = try? NodeIdentity(identity.bytes.span)
            precondition(again == identity, "another identity when written again")
        }
        for bytes in [input, sealedNote(input)] {
            guard let note = try? TaggingNote(bytes.span) else { continue }
            let again = try? TaggingNote(note.bytes.span)
            precondition(again == note, "another note when written again")
        }
        for bytes in [input, sealedMarks(input)] {
            guard let header = try? MarksHeader(bytes.span, nodeID: nodeID) else { continue }
            let again = try? MarksHeader(header.bytes.span, nodeID: nodeID)
            precondition(again == header, "another header of marks when written again")
        }
        readLog([input, nil])
        readLog([sealedMarks(input), nil])
        let half = input.count / 2
        readLog([sealedMarks(Array(input[..<half])), sealedMarks(Array(input[half...]))])
    }

    /// Two files of marks; what a log goes on to write holds the marks that it found.
    private func readLog(_ files: [[UInt8]?]) {
        let found = MarksLog.recover(
            files, nodeID: nodeID, fileBytes: Self.marksFileBytes, key: Self.key)
        var log = found.log
        let marks = log.marks
        let rewriting = log.rewrite([], least: .zero, salt: 9)
        var written = files
        for write in rewriting.writes {
            var file = written[write.file] ?? []
            file.pad(to: write.offset + write.bytes.count)
            file.replaceSubrange(write.offset..<write.offset + write.bytes.count, with: write.bytes)
            written[write.file] = Array(file.prefix(Self.marksFileBytes))
        }
        let again = MarksLog.recover(
            written, nodeID: nodeID, fileBytes: Self.marksFileBytes, key: Self.key)
        precondition(again.log.marks == log.marks, "other marks when written again")
        precondition(again.log.key == log.key)
        let isFolded = rewriting.foldedTo != nil || rewriting.droppedTo != nil
        precondition(isFolded || log.marks == marks, "marks are missing that nothing stands for")
    }

    // MARK: Checksums

    private func sealed(_ input: [UInt8], _ range: Range<Int>, seed: UInt64) -> [UInt8] {
        guard range.lowerBound < range.upperBound, range.upperBound <= input.count else {
            return input
        }
        var bytes = input
        bytes.setLittle(
            XXH64.hash(bytes.span.extracting(range), seed: seed), at: Self.checksumStart)
        return bytes
    }

    private func sealedNote(_ input: [UInt8]) -> [UInt8] {
        guard input.count >= 24 else { return input }
        let count = Int(input.span.little32(at: 12))
        let end = 24 + min(count, 1 << 20) * 16
        return sealed(input, 24..<end, seed: UInt64(count))
    }

    /// Header and marks, of this node.
    private func sealedMarks(_ input: [UInt8]) -> [UInt8] {
        guard input.count >= MarksHeader.bytesCount else { return input }
        var node: [UInt8] = []
        node.append(nodeID)
        var bytes = input
        bytes.replaceSubrange(24..<24 + node.count, with: node)
        let seed = UInt64(bytes.span.little32(at: 12))
        bytes = sealed(bytes, 24..<MarksHeader.bytesCount, seed: seed)
        let marks = chained(
            Array(bytes[MarksHeader.bytesCount...]), salt: bytes.span.little64(at: 48),
            markBytes: max(MarkWriter.markBytes, Int(min(seed, 4096))))
        return Array(bytes[..<MarksHeader.bytesCount]) + marks
    }
}

/// The input with the checksums of whatever looks like marks made right.
func chained(_ input: [UInt8], salt: UInt64, markBytes: Int = MarkWriter.markBytes) -> [UInt8] {
    var bytes = input
    var last = salt
    for start in stride(from: 0, through: bytes.count - markBytes, by: markBytes)
    where bytes[start + 4] > 0 {
        last = XXH64.hash(bytes.span.extracting(start + 4..<start + markBytes), seed: last)
        for place in 0..<4 {
            bytes[start + place] = UInt8(truncatingIfNeeded: last >> UInt64(8 * place))
        }
    }
    return bytes
}
