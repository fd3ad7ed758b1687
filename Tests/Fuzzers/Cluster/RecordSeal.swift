import Ground

/// Corrections of checksums, which would hide the bytes after them from a fuzzer.
extension [UInt8] {
    /// A field of a structure of the peer protocol: its tag, and the range of its value.
    typealias StructureField = (tag: UInt16, value: Range<Int>)

    /// Returns the complete fields of the structure in `range`.
    func structureFields(in range: Range<Int>) -> [StructureField] {
        var fields: [StructureField] = []
        guard range.count >= 2 else { return fields }
        var position = range.lowerBound + Int(span.little16(at: range.lowerBound))
        while position + 4 <= range.upperBound {
            let end = position + 4 + Int(span.little16(at: position + 2))
            guard end <= range.upperBound else { break }
            fields.append((span.little16(at: position), position + 4..<end))
            position = end
        }
        return fields
    }

    /// Corrects the content hash of the invalidation record in `range`.
    mutating func sealLogRecord(in range: Range<Int>) {
        let hashStart = range.lowerBound + 26
        guard hashStart + 8 <= range.upperBound,
            let content = structureFields(in: range).last(where: { $0.tag == 1 })?.value,
            content.lowerBound >= hashStart + 8
        else { return }
        setLittle(XXH64.hash(span.extracting(content), seed: 0), at: hashStart)
    }
}
