import Ground

/// Checksums that hide what lies behind them from a fuzzer, made right.
extension [UInt8] {
    /// A field of a structure of the peer protocol: its tag, and where its value lies.
    package typealias StructureField = (tag: UInt16, value: Range<Int>)

    /// The fields of the structure that lies in `range`, as far as they lie in it.
    package func structureFields(in range: Range<Int>) -> [StructureField] {
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

    /// Makes the hash right that the record of the invalidation log in `range` has of its content.
    package mutating func sealLogRecord(in range: Range<Int>) {
        let hashStart = range.lowerBound + 26
        guard hashStart + 8 <= range.upperBound,
            let content = structureFields(in: range).last(where: { $0.tag == 1 })?.value,
            content.lowerBound >= hashStart + 8
        else { return }
        setLittle(XXH64.hash(span.extracting(content), seed: 0), at: hashStart)
    }
}
