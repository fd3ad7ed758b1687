import Ground
import Tiers

/// The small files of a node's directory, each verbatim and with a corrected checksum: a parsed
/// file is the same after it was written and read again.
struct DiskFiles {
    private static let checksumStart = 16

    func read(_ input: [UInt8]) {
        for bytes in [input, sealed(input, 24..<NodeIdentity.bytesCount, seed: 0)] {
            guard let identity = try? NodeIdentity(bytes.span) else { continue }
            let again = try? NodeIdentity(identity.bytes.span)
            precondition(again == identity, "another identity when written again")
        }
        for bytes in [input, sealedNote(input)] {
            guard let note = try? TagRuleFingerprints(bytes.span) else { continue }
            let again = try? TagRuleFingerprints(note.bytes.span)
            precondition(again == note, "another note when written again")
        }
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
}
