import Cluster
import Ground

/// Journal files of arbitrary bytes: each is its size in two bytes, then its content.
struct ForgedJournal {
    private var files: [UInt64: [UInt8]] = [:]

    private static let headBytes = 24

    /// Creates files; if `isSealed`, with corrected checksums of headers, of everything that looks
    /// like items, and of the contents of records.
    init(_ input: ArraySlice<UInt8>, isSealed: Bool) {
        var script = FuzzScript(input)
        while !script.isAtEnd, files.count < 4 {
            let number = UInt64(files.count) + 1
            var file = script.bytes(atMost: script.number(below: 1 << 16))
            if isSealed { Self.seal(&file, number) }
            files[number] = file
        }
    }

    func check() {
        let start = JournalStart(files)
        start.checkRecords()
        start.checkGoingOn()
    }

    private static func seal(_ file: inout [UInt8], _ number: UInt64) {
        guard file.count >= JournalHeader.bytesCount else { return }
        file.setLittle(number, at: 40)
        let sum = XXH64.hash(file.span.extracting(24..<JournalHeader.bytesCount), seed: 0)
        file.setLittle(sum, at: 16)
        let salt = file.span.little64(at: 56)
        var offset = JournalHeader.bytesCount
        while offset + headBytes <= file.count {
            let size = Int(file.span.little32(at: offset + 12))
            guard size >= headBytes, size <= file.count - offset else { return }
            sealItem(&file, offset..<offset + size, salt: salt)
            offset = (offset + size + 7) / 8 * 8
        }
    }

    private static func sealItem(_ file: inout [UInt8], _ item: Range<Int>, salt: UInt64) {
        let start = item.lowerBound
        let isRecord = file[start + 20] == 1
        // A record follows the count of invalidations applied.
        let content = start + headBytes + 8
        if isRecord, content <= item.upperBound {
            file.sealLogRecord(in: content..<item.upperBound)
        }
        let seed = salt ^ UInt64(start)
        let check = XXH64.hash(file.span.extracting(start + 12..<start + headBytes), seed: seed)
        for place in 0..<4 {
            file[start + 8 + place] = UInt8(truncatingIfNeeded: check >> UInt64(8 * place))
        }
        let sum = XXH64.hash(file.span.extracting(start + 8..<item.upperBound), seed: seed)
        file.setLittle(sum, at: start)
    }
}
